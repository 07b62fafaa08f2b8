"""The report of stepscope.flops against DeepSpeed's own: line by line, with the values left out."""

from __future__ import annotations

import importlib.util
import json
import os
import re
from pathlib import Path
from typing import Any

import pytest

if importlib.util.find_spec("torch") is None:
    pytest.skip("torch is not installed", allow_module_level=True)

import torch
from flops_engine import Engine
from torch import nn

from stepscope import flops

ROOT = Path(__file__).resolve().parents[2]
REFERENCE = Path(os.environ.get("STEPSCOPE_REFERENCE", ROOT.parent / "shared" / "reference"))
MACS = 32 * (256 * 512 + 512 * 10)
BACKWARD = 2 * 32 * (256 * 512 + 2 * 512 * 10)  # nothing needs the gradient of the data
pytestmark = pytest.mark.usefixtures("one_thread")

SUMMARY = """
-------------------------- DeepSpeed Flops Profiler --------------------------
Profile Summary at step #:
Notations:
data parallel size (dp_size), model parallel size(mp_size),
number of parameters (params), number of multiply-accumulate operations(MACs),
number of floating-point operations (flops), floating-point operations per second (FLOPS),
fwd latency (forward propagation latency), bwd latency (backward propagation latency),
step (weights update latency), iter latency (sum of fwd, bwd and step latency)

world size: =
data parallel size: =
model parallel size: =
batch size per GPU: =
params per GPU: =
params of model = params per GPU * mp_size: =
fwd MACs per GPU: =
fwd flops per GPU: =
fwd flops of model = fwd flops per GPU * mp_size: =
fwd latency: =
fwd FLOPS per GPU = fwd flops per GPU / fwd latency: =
bwd latency: =
bwd FLOPS per GPU = {bwd} / bwd latency: =
fwd+bwd FLOPS per GPU = {both} / (fwd+bwd latency): =
step latency: =
iter latency: =
FLOPS per GPU = {all} / iter latency: =
samples/second: =
"""
OF_ENGINE = (
    "world size",
    "data parallel size:",
    "model parallel size:",
    "batch size",
    "bwd ",
    "fwd+bwd ",
    "step latency",
    "iter ",
    "FLOPS ",
    "samples",
)
BY_FACTOR = {"bwd": "# * fwd flops per GPU", "both": "# * fwd flops per GPU", "all": "# * fwd flops per GPU"}
MEASURED = {
    "bwd": "measured bwd flops per GPU",
    "both": "measured fwd+bwd flops",
    "all": "measured fwd+bwd flops per GPU",
}
VALUE = re.compile(r"\d+(?:\.\d+)?(?: ?[TGMKBmu]?(?:MACs|FLOPS|s)\b| [TGMKB](?= =))?")


class MLP(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.a, self.b = nn.Linear(256, 512), nn.Linear(512, 10)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.b(torch.relu(self.a(x)))


def masked(text: str) -> list[str]:
    """Its lines without values; a line of the summary is checked to be padded as it must be."""
    return [_masked(line) for line in text.split("\n")]


def _masked(line: str) -> str:
    if re.fullmatch(r"\S.{68} {2}.{8,}", line) and line[:70].rstrip().endswith(":"):
        assert line[72:] == line[72:].strip().ljust(8), f"not padded to 8: {line!r}"
        line = line[:70].rstrip() + " ="
    return VALUE.sub("#", re.sub(r": '[^']*'", ": '#'", line))


def without_deepest(lines: list[str]) -> list[str]:
    """DeepSpeed never prints the deepest level."""
    at = max(i for i, line in enumerate(lines) if line == "depth #:")
    assert [line.split(" - ")[0].strip() for line in lines[at + 1 : at + 4]] == ["params", "MACs", "fwd latency"]
    return lines[:at] + lines[at + 4 :]


def of_engine(strict: bool, **values: Any) -> tuple[str, flops.FlopsProfiler]:
    """The report as an engine asks for it: after forward it is stopped, and shown when the step is over."""
    model = MLP()
    engine = Engine(**values)
    profiler = flops.FlopsProfiler(model, engine, 1.0, strict=strict)
    profiler.start_profile(ignore_list=None)
    loss = model(torch.ones(32, 256)).sum()
    profiler.stop_profile()
    loss.backward()
    engine.ms = {"fwd": 1.0, "bwd": 2.0, "step": 1.0}
    return profiler.text(profile_step=3, top_modules=2), profiler


def alone() -> str:
    model = MLP()
    profiler = flops.FlopsProfiler(model)
    with profiler:
        model(torch.ones(32, 256))
    return profiler.text(top_modules=2)


def reference(name: str) -> list[str]:
    path = REFERENCE / name
    if not path.exists():
        pytest.skip(f"no sample of DeepSpeed's at {path} (set STEPSCOPE_REFERENCE)")
    return masked(path.read_text())


def test_the_engine_s_sample_line_by_line() -> None:
    text, profiler = of_engine(strict=True)
    profiler.end_profile()
    assert without_deepest(masked(text)) == reference("deepspeed_report_engine.txt")


def test_the_sample_without_an_engine_line_by_line() -> None:
    report, left_out = re.split(r"(?m)^not counted: ", alone(), maxsplit=1)
    assert without_deepest(masked(report)) == reference("deepspeed_report_standalone.txt")
    assert left_out.startswith("operators with ")  # the one line that theirs has not


@pytest.mark.parametrize("strict", [True, False])
def test_the_summary_has_every_line_in_its_order(strict: bool) -> None:
    text, profiler = of_engine(strict)
    profiler.end_profile()
    expected = SUMMARY.format(**(BY_FACTOR if strict else MEASURED)).split("\n")
    assert masked(text)[: len(expected)] == expected
    plain = [line for line in expected if not line.endswith(" =") or not line.startswith(OF_ENGINE)]
    assert masked(alone())[: len(plain)] == plain


def value(text: str, label: str) -> str:
    found = [line[72:].strip() for line in text.split("\n") if line.startswith(label)]
    assert len(found) == 1, label
    return found[0]


def test_figures_are_measured() -> None:
    text, profiler = of_engine(strict=False)
    assert profiler.get_total_macs() == MACS and profiler.get_total_flops() == 2 * MACS
    assert profiler.get_total_backward_flops() == BACKWARD
    assert value(text, "bwd FLOPS per GPU") == flops.flops_to_string(BACKWARD / 2e-3)
    assert value(text, "fwd+bwd FLOPS") == flops.flops_to_string((2 * MACS + BACKWARD) / 3e-3)
    assert value(text, "FLOPS per GPU") == flops.flops_to_string((2 * MACS + BACKWARD) / 4e-3)
    assert value(text, "samples/second") == str(32 / 4e-3)
    profiler.end_profile()


def test_strict_takes_deepspeed_s_factor() -> None:
    text, profiler = of_engine(strict=True)
    assert "bwd FLOPS per GPU = 3 * fwd flops per GPU / bwd latency: " in text
    assert value(text, "bwd FLOPS per GPU") == flops.flops_to_string(3 * 2 * MACS / 2e-3)
    assert value(text, "FLOPS per GPU = 4 * ") == flops.flops_to_string(4 * 2 * MACS / 4e-3)
    profiler.end_profile()


def test_timers_that_ran_before_do_not_count() -> None:
    """Those of an engine go on over the micro-batches of a step."""
    text, profiler = of_engine(strict=False, ms={"fwd": 0.75, "bwd": 1.0, "step": 0.5})
    assert [value(text, f"{name} latency: ") for name in ("fwd", "bwd", "step", "iter")] == [
        "250 us",
        "1 ms",
        "500 us",
        "1.75 ms",
    ]
    profiler.end_profile()


def test_the_root_s_latency_is_that_of_its_calls() -> None:
    text = alone()
    seconds = [float(found) for found in re.findall(r"([\d.]+) [mu]s = 100% latency", text)]
    assert len(seconds) == 1, "in milliseconds or less, and the whole is the root's"
    shares = [float(found) for found in re.findall(r"s = ([\d.]+)% latency", text)]
    assert shares[0] == 100 and 0 < sum(shares[1:]) < 100


def test_experts_are_counted_for_the_model() -> None:
    """DeepSpeed marks the parameters of experts that are spread over ranks."""
    model = MLP()
    for parameter in model.b.parameters():
        parameter.group_name = "ep_size_4"
    profiler = flops.FlopsProfiler(model, Engine(has_moe_layers=True, mp_world_size=2, dp_world_size=None))
    profiler.start_profile()
    model(torch.ones(1, 256))
    text = profiler.text()
    profiler.end_profile()
    common, expert = 256 * 512 + 512, 512 * 10 + 10
    assert value(text, "params per GPU") == flops.params_to_string(common + expert)
    assert value(text, "params of model: ") == flops.params_to_string(2 * common + 4 * expert)
    assert value(text, "   non-expert params of model: ") == flops.params_to_string(2 * common)
    assert value(text, "   expert params of model: ") == flops.params_to_string(4 * expert)
    assert value(text, "expert tensor parallelism enabled") == "False"
    assert value(text, "data parallel size: ") == "n/a"
    assert value(text, "bwd FLOPS per GPU") == "n/a FLOPS", "no backward was measured"


def test_what_is_not_seen_is_not_known() -> None:
    model = nn.Sequential(nn.Linear(8, 8), torch.compile(nn.Sequential(nn.Linear(8, 8), nn.ReLU()), backend="eager"))
    profiler = flops.FlopsProfiler(model)
    model(torch.ones(2, 8))
    with profiler:
        model(torch.ones(2, 8))
    text = profiler.text()
    assert profiler.get_total_macs() == 2 * 2 * 8 * 8
    assert flops.get_module_macs(model[1]) == 2 * 8 * 8
    assert flops.get_module_macs(model[1]._orig_mod[0]) is None
    assert "(0): Linear(72 = 50% Params, n/a MACs = n/a MACs, n/a s = n/a latency, n/a FLOPS, in_features=8" in text
    assert text.rstrip().split("\n")[-2].startswith("n/a: within a compiled")
    profiler.end_profile()


# Depths and widths ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("depth", "levels"), [(-1, 2), (0, 0), (1, 1), (2, 2), (99, 2)])
def test_as_many_levels_as_there_are(depth: int, levels: int, capsys: pytest.CaptureFixture[str]) -> None:
    model = MLP()
    profiler = flops.FlopsProfiler(model)
    with profiler:
        model(torch.ones(32, 256))
    profiler.print_model_aggregated_profile(module_depth=depth, top_modules=50)
    out = capsys.readouterr().out
    assert re.findall(r"depth (\d+):", out) == [str(number) for number in range(levels)]
    profiler.end_profile()


def test_children_that_are_not_there_and_names_that_come_twice() -> None:
    layer = nn.Linear(4, 4)
    model = nn.Sequential(layer, nn.Sequential(layer, nn.ReLU()))
    model.register_module("absent", None)
    model.forward = lambda x: model[1](model[0](x))
    profiler = flops.FlopsProfiler(model)
    with profiler:
        model(torch.ones(1, 4))
    text = profiler.text(top_modules=3)
    assert profiler.get_total_params() == 20 and profiler.get_total_macs() == 2 * 16
    assert text.count("Linear(20 = 100% Params, 32 MACs = 100% MACs") == 2, "a shared layer has what all its calls did"
    assert "(absent): None" in text
    profiler.end_profile()


def test_a_class_that_draws_itself_keeps_its_way(tmp_path: Path) -> None:
    class Own(nn.Linear):
        def __repr__(self) -> str:
            return f"mine.{super().__repr__()}"

        def extra_repr(self) -> str:
            return "of my own"

    model = nn.Sequential(Own(4, 4))
    model[0].__dict__["extra_repr"] = lambda: "of this one"
    profiler = flops.FlopsProfiler(model)
    with profiler:
        model(torch.ones(1, 4))
    file = tmp_path / "not" / "there" / "report.txt"
    profiler.print_model_profile(output_file=str(file))
    assert "(0): mine.Own(20 = 100% Params, 16 MACs = 100% MACs" in file.read_text()
    assert "FLOPS, of this one)" in file.read_text()
    assert model[0].extra_repr() == "of this one" and "extra_repr" not in vars(model)
    profiler.end_profile()


def test_a_class_that_fails_to_draw_itself_leaves_nothing_behind() -> None:
    class Bad(nn.Linear):
        def extra_repr(self) -> str:
            raise KeyError("no")

    model = nn.Sequential(nn.Linear(4, 4), Bad(4, 4))
    profiler = flops.FlopsProfiler(model)
    with profiler:
        model(torch.ones(1, 4))
    with pytest.raises(KeyError):
        profiler.text()
    assert not any("extra_repr" in vars(module) for module in model.modules())
    profiler.end_profile()


# Numbers --------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (flops.number_to_string(8732672), "8.73 M"),
        (flops.number_to_string(0), "0 "),
        (flops.number_to_string(12), "12 "),
        (flops.number_to_string(2.5e13), "25 T"),
        (flops.number_to_string(1234567, units="K"), "1234.57 K"),
        (flops.number_to_string(1234, units="", precision=0), "1234 "),
        (flops.number_to_string(None), "n/a "),
        (flops.macs_to_string(4358144), "4.36 MMACs"),
        (flops.macs_to_string(0), "0 MACs"),
        (flops.flops_to_string(44.02e9), "44.02 GFLOPS"),
        (flops.flops_to_string(26e9), "26 GFLOPS"),
        (flops.params_to_string(136714), "136.71 K"),
        (flops.params_to_string(7.24e9), "7.24 B"),
        (flops.params_to_string(7.24e9, units="B", precision=1), "7.2 B"),
        (flops.params_to_string(0), "0"),
        (flops.duration_to_string(0.00033522), "335.22 us"),
        (flops.duration_to_string(0.0021), "2.1 ms"),
        (flops.duration_to_string(1.5), "1.5 s"),
        (flops.duration_to_string(2e-9), "0 us"),
        (flops.bytes_to_string(2e9), "2 GB"),
    ],
)
def test_numbers_read_as_deepspeed_s(text: str, expected: str) -> None:
    assert text == expected


@pytest.mark.skipif(importlib.util.find_spec("deepspeed") is None, reason="deepspeed is not installed")
def test_numbers_read_as_the_installed_deepspeed_writes_them() -> None:
    theirs = importlib.import_module("deepspeed.profiling.flops_profiler.profiler")
    names = ("number", "macs", "flops", "params", "duration", "bytes")
    for number in (0, 1, 999, 1000, 1e6 - 1, 4358144, 1e9, 7.24e9, 1e12, 1e15, 0.5, 1e-3, 3.3522e-4, 1e-9):
        for name in names:
            for more in ({}, {"units": "G"}, {"units": "m", "precision": 4}, {"units": "", "precision": 0}):
                function = f"{name}_to_string"
                assert getattr(flops, function)(number, **more) == getattr(theirs, function)(number, **more)


# The configuration ----------------------------------------------------------------------------------------------------


def test_the_block_of_a_configuration(tmp_path: Path) -> None:
    default = flops.FlopsConfig()
    assert flops.FlopsConfig.read({}) == default
    assert (default.enabled, default.recompute_fwd_factor, default.profile_step) == (False, 0.0, 1)
    assert (default.module_depth, default.top_modules, default.detailed, default.output_file) == (-1, 1, True, None)
    block = {"enabled": True, "profile_step": 5, "top_modules": 3, "output_file": "r.txt", "recompute_fwd_factor": 1}
    path = tmp_path / "ds_config.json"
    path.write_text(json.dumps({"train_batch_size": 8, "flops_profiler": block}))
    read = flops.FlopsConfig.read(path)
    assert read == flops.FlopsConfig(True, 1, 5, -1, 3, True, "r.txt")


@pytest.mark.parametrize(
    ("block", "said"),
    [
        ({"profile_steps": 3}, "flops_profiler has no 'profile_steps'; did you mean profile_step?"),
        ({"sizes": 3}, "flops_profiler has no 'sizes'; it knows enabled, recompute_fwd_factor"),
        ({"profile_step": "3"}, "flops_profiler.profile_step is '3'; it wants a whole number of 0 or more"),
        ({"profile_step": True}, "flops_profiler.profile_step is True; it wants"),
        ({"module_depth": -2}, "flops_profiler.module_depth is -2; it wants a whole number of -1 or more"),
        ({"top_modules": 0}, "flops_profiler.top_modules is 0; it wants a whole number of 1 or more"),
        ({"enabled": 1}, "flops_profiler.enabled is 1; it wants true or false"),
        ({"output_file": 3}, "flops_profiler.output_file is 3; it wants a path or null"),
        ({"recompute_fwd_factor": -1}, "flops_profiler.recompute_fwd_factor is -1; it wants a number of 0 or more"),
        ([], "flops_profiler is []; it is a block"),
    ],
)
def test_mistakes_in_it_are_told(block: Any, said: str, tmp_path: Path) -> None:
    path = tmp_path / "ds_config.json"
    path.write_text(json.dumps({"flops_profiler": block}))
    with pytest.raises(ValueError, match=re.escape(said)) as told:
        flops.FlopsConfig.read(path)
    assert str(told.value).startswith(f"{path}: ")


def test_a_file_that_is_no_configuration_is_told(tmp_path: Path) -> None:
    path = tmp_path / "ds_config.json"
    path.write_text("{'single': 'quotes'}")
    with pytest.raises(ValueError, match="this is no JSON"):
        flops.FlopsConfig.read(path)
    path.write_text("[]")
    with pytest.raises(ValueError, match="is an object"):
        flops.FlopsConfig.read(path)
