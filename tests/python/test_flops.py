"""The answer flops against the truth of flops_models.py: every model, recorded by torch and read back."""

from __future__ import annotations

import importlib.util
import json
from pathlib import Path
from typing import Any

import pytest

if importlib.util.find_spec("torch") is None:
    pytest.skip("torch is not installed", allow_module_level=True)

import flops_models as models
import flops_nets as nets
import torch
from flops_models import BY_NAME, ROWS, Row, record_step
from jobs import rows as table

import stepscope as package
from stepscope.hooks._stepscope_hooks.modules import ModuleRanges

pytestmark = pytest.mark.usefixtures("one_thread")
TOLERANCE = 1e-3
PARTS = ("forward", "backward", "recompute")


def record(row: Row, path: Path, warm: int = 2) -> Path:
    """As torch.profiler does with record_shapes, with the ranges of modules that `stepscope run` adds."""
    torch.compiler.reset()
    made = row.job()
    ranges = ModuleRanges([made.model])
    try:
        return record_step(made, path, warm)
    finally:
        ranges.remove()


def answer(path: Path) -> dict[str, Any]:
    with package.open(path, cache=False) as run:
        return run.answer("flops")


def is_right(measured: int, expected: int) -> bool:
    return abs(measured - expected) <= TOLERANCE * expected


def wrong(found: dict[str, Any], truth: models.Truth) -> list[str]:
    """What differs from the truth, as sentences."""
    out = []

    def check(what: str, measured: int, expected: int) -> None:
        if not is_right(measured, expected):
            out.append(f"{what}: {measured} for {expected}")

    by_part = {row["part"]: row for row in table(found, "by_part")}
    for part in PARTS:
        expected = getattr(truth, part)
        row = by_part.get(part, {"flop": 0, "causal_flop": 0})
        check(part, row["flop"], expected.full)
        check(f"{part}, causal", row["causal_flop"], expected.causal)
        check(f"{part} of all", found["scalars"][f"{part}_flop"]["value"], expected.full)
        check(f"{part} of the step", sum(row[f"{part}_flop"] for row in table(found, "steps")), expected.full)
    for name in ("by_op", "by_dtype"):
        check(name, sum(row["flop"] for row in table(found, name)), sum(getattr(truth, part).full for part in PARTS))
    return out


@pytest.fixture(scope="module")
def traces() -> dict[str, Path]:
    return {}


@pytest.fixture
def recorded(
    request: pytest.FixtureRequest, traces: dict[str, Path], tmp_path_factory: pytest.TempPathFactory
) -> tuple[Row, Path]:
    """A row and its trace: each is recorded once."""
    row: Row = request.param
    if row.name not in traces:
        traces[row.name] = record(row, tmp_path_factory.mktemp(row.name) / "trace.json")
    return row, traces[row.name]


def each_row(rows: list[Row]) -> pytest.MarkDecorator:
    return pytest.mark.parametrize("recorded", rows, indirect=True, ids=lambda row: row.name)


@each_row(ROWS)
def test_every_part_is_as_the_model_says(recorded: tuple[Row, Path]) -> None:
    row, trace = recorded
    assert wrong(answer(trace), row.truth()) == []


@each_row([row for row in ROWS if row.name != "gpt_compiled"])  # within a compiled module no module is called
def test_every_module_is_as_the_model_says(recorded: tuple[Row, Path]) -> None:
    row, trace = recorded
    truth, found = row.truth(), {line["module"]: line for line in table(answer(trace), "by_module")}
    root = type(row.job().model).__name__
    for path, expected in truth.modules.items():
        assert is_right(found[path or root]["forward_flop"], expected), path or root
    # Gradients belong to the module of the forward operator, and nothing is left over.
    assert is_right(found[root]["backward_flop"], truth.backward.full)
    assert is_right(found[root]["recompute_flop"], truth.recompute.full)
    assert None not in found


@each_row([BY_NAME[name] for name in ("mlp", "cnn", "gpt", "gpt_checkpoint", "lstm")])
def test_a_truth_that_is_a_little_off_is_told(recorded: tuple[Row, Path]) -> None:
    row, trace = recorded
    found, truth = answer(trace), row.truth()
    for part in PARTS:
        flops = getattr(truth, part)
        for factor in (1 - 2 * TOLERANCE, 1 + 2 * TOLERANCE) if flops.full else ():
            off = models.Flops(round(flops.full * factor), round(flops.causal * factor))
            assert wrong(found, models.Truth(**{**vars(truth), part: off})), (part, factor)


def test_what_the_compiler_does_is_none_of_the_step(tmp_path: Path) -> None:
    row = BY_NAME["gpt_compiled"]
    assert wrong(answer(record(row, tmp_path / "trace.json", warm=0)), row.truth()) == []


def test_every_share_of_the_time_is_told(tmp_path: Path) -> None:
    found = answer(record(BY_NAME["gpt"], tmp_path / "trace.json"))
    shares = {name: found["scalars"][f"{name}_share"]["value"] for name in ("counted", "no_formula", "no_sizes")}
    assert sum(shares.values()) == pytest.approx(1)
    assert shares["counted"] > 0 and shares["no_formula"] > 0 and shares["no_sizes"] == 0
    assert sum(row["share"] for row in table(found, "uncounted")) == pytest.approx(1 - shares["counted"])


def without(path: Path, key: str) -> Path:
    document = json.loads(path.read_text())
    for event in document["traceEvents"]:
        event.get("args", {}).pop(key, None)
    path.write_text(json.dumps(document))
    return path


def test_without_sizes_all_is_unknown(tmp_path: Path) -> None:
    found = answer(without(record(BY_NAME["mlp"], tmp_path / "trace.json"), "Input Dims"))
    for name in ("forward_flop", "backward_flop", "recompute_flop", "total_flop", "causal_flop", "step_flop"):
        assert found["scalars"][name]["value"] is None
    assert found["scalars"]["no_sizes_share"]["value"] > 0
    assert any("record_shapes" in note for note in found["notes"])


def test_older_recordings_have_no_arguments(tmp_path: Path) -> None:
    """Forward convolutions follow from the gradients of their outputs; which gradients ran is not known."""
    row = BY_NAME["cnn"]
    found = answer(without(record(row, tmp_path / "trace.json"), "Concrete Inputs"))
    assert found["scalars"]["forward_flop"]["value"] == row.truth().forward.full
    fc = 2 * 2 * 256 * 7 * 7 * 100
    assert found["scalars"]["backward_flop"]["value"] == 2 * fc
    assert any("3 calls" in note and "lower bounds" in note for note in found["notes"])


def test_rules_and_ranges_tell_what_torch_does_not_see(tmp_path: Path) -> None:
    job = models.Job(nets.OutsideNet(), (torch.rand(4, 16),))
    ranges = ModuleRanges([job.model])
    try:
        trace = record_step(job, tmp_path / "trace.json")
    finally:
        ranges.remove()
    rules = tmp_path / "own.rules"
    rules.write_text("outside | ^Outside$ | 2*prod(d0)*d1[0] | 2*forward | - | the product above\n")
    with package.open(trace, cache=False, flop_rules=rules) as run:
        found = run.answer("flops")
    outside = 2 * 4 * 32 * 8
    rows = {(row["op"], row["part"]): row for row in table(found, "by_op")}
    assert {key: row["flop"] for key, row in rows.items()} == {
        ("Outside", "forward"): outside,
        ("Outside", "backward"): 2 * outside,
        ("said", "forward"): 1000,
        ("said", "backward"): 2500,
    }
    assert all(row["dtype"] == "float32" and row["time_ns"] > 0 for row in rows.values())
    modules = {row["module"]: row for row in table(found, "by_module")}
    assert modules["OutsideNet"]["forward_flop"] == 1000 + outside
    assert modules["OutsideNet"]["backward_flop"] == 2500 + 2 * outside
    with package.open(trace, cache=False) as run:  # without the rule: what torch saw
        assert run.answer("flops")["scalars"]["total_flop"]["value"] == 3500
