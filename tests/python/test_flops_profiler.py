"""stepscope.flops in a running process: right on every model of flops_models.py and on others, by DeepSpeed's names."""

from __future__ import annotations

import contextlib
import importlib.util
import inspect
import io
import warnings
from typing import Any

import pytest

if importlib.util.find_spec("torch") is None:
    pytest.skip("torch is not installed", allow_module_level=True)

import torch
from flops_models import BY_NAME, ROWS, Row
from flops_profiled import FLOP, Net, X, is_bare, nothing_stays_behind  # noqa: F401 -- the last one is a fixture
from torch import nn

from stepscope import flops
from stepscope._recording import _hooks

pytestmark = pytest.mark.usefixtures("one_thread")


# Right ---------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("row", ROWS, ids=lambda row: row.name)
def test_every_model_is_as_the_truth_says(row: Row) -> None:
    torch.compiler.reset()
    made, truth = row.job(), row.truth()
    for _ in range(2):
        made.step()
    profiler = flops.FlopsProfiler(made.model)
    profiler.start_profile()
    made.step()
    profiler.stop_profile()
    assert is_bare(made.model)
    assert profiler.get_total_flops() == truth.forward.full
    assert profiler.get_total_macs() == truth.forward.full // 2
    assert profiler.get_total_backward_flops() == truth.backward.full + truth.recompute.full
    assert profiler.get_total_duration() > 0
    modules = dict(made.model.named_modules())
    for path, expected in truth.modules.items() if row.name != "gpt_compiled" else ():
        assert flops.get_module_flops(modules[path]) == expected, path or "the model"
    profiler.end_profile()


@pytest.mark.parametrize("row", ROWS, ids=lambda row: row.name)
def test_one_pass_is_as_the_truth_says(row: Row) -> None:
    torch.compiler.reset()
    made, truth = row.job(), row.truth()
    arguments: dict[str, Any] = {"args": list(made.inputs), "print_profile": False}
    flop, macs, params = flops.get_model_profile(made.model, as_string=False, **arguments)
    assert (flop, macs) == (truth.forward.full, truth.forward.full // 2)
    assert params == sum(parameter.numel() for parameter in made.model.parameters())
    assert is_bare(made.model)
    as_string = flops.get_model_profile(made.model, **arguments)
    assert as_string == (flops.number_to_string(flop), flops.macs_to_string(macs), flops.params_to_string(params))


def test_a_function_that_was_imported_before_counts() -> None:
    from torch.nn.functional import linear

    class Imported(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.weight = nn.Parameter(torch.ones(8, 8))

        def forward(self, x: torch.Tensor) -> torch.Tensor:
            return linear(input=x, weight=self.weight)

    assert flops.get_model_profile(Imported(), (4, 8), print_profile=False)[0] == flops.number_to_string(FLOP)


def test_calls_add_up_and_each_start_begins_anew() -> None:
    model = Net()
    profiler = flops.FlopsProfiler(model)
    for calls in (1, 3, 2):
        profiler.start_profile()
        for _ in range(calls):
            model(X)
        profiler.stop_profile()
        assert profiler.get_total_flops() == calls * FLOP
    profiler.start_profile()
    model(X)
    profiler.reset_profile()
    model(X)
    assert profiler.get_total_flops() == FLOP, "a figure ends the measurement"
    profiler.end_profile()


def test_generating_counts_every_pass() -> None:
    made = BY_NAME["hf_gpt2"].job()
    made.model.generation_config.pad_token_id = 0
    ids = made.inputs[0][:1, :4]
    words = {"max_new_tokens": 4, "min_new_tokens": 4, "do_sample": False, "attention_mask": torch.ones_like(ids)}
    flop, macs, _ = flops.get_model_profile(
        made.model, args=[ids], kwargs=words, mode="generate", print_profile=False, as_string=False
    )
    # 7 rows pass the blocks, 4 at once and then 3 alone. Of each of the 4 passes the last row is led to the words.
    # Scores: 4 rows meet 4 keys, then one row meets 5, 6 and 7.
    head = 4 * 128 * 1000
    blocks = 2 * 7 * 12 * 128 * 128 + 2 * 2 * 128 * (4 * 4 + 5 + 6 + 7)
    assert macs == blocks + head and flop == 2 * macs


def test_long_inference_is_read_in_parts(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(_hooks().flop_measure, "PART_CALLS", 50)
    model = Net()
    profiler = flops.FlopsProfiler(model)
    with torch.no_grad(), profiler:
        for _ in range(100):
            model(X)
    assert profiler.get_total_flops() == 100 * FLOP and profiler.figures().calls(model) == 100
    profiler.end_profile()


def test_a_training_that_is_measured_for_too_long_is_cut_off(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(_hooks().flop_measure, "PART_CALLS", 50)
    monkeypatch.setattr(_hooks().flop_measure, "MOST_CALLS", 50)
    model = Net()
    profiler = flops.FlopsProfiler(model)
    with profiler:
        for _ in range(100):
            model(X).sum().backward()
        assert is_bare(model)
    assert 0 < profiler.get_total_flops() < 20 * FLOP
    assert "calls of modules, as memory has an end\n" in profiler.text()
    profiler.end_profile()


# The same as DeepSpeed's ---------------------------------------------------------------------------------------------


@pytest.mark.skipif(importlib.util.find_spec("deepspeed") is None, reason="deepspeed is not installed")
def test_signatures_are_the_installed_deepspeed_s() -> None:
    theirs = importlib.import_module("deepspeed.profiling.flops_profiler.profiler")
    pairs: list[tuple[Any, Any]] = [
        (flops.get_model_profile, theirs.get_model_profile),
        (flops.FlopsProfiler, theirs.FlopsProfiler),
    ]
    names = [name for name in vars(theirs.FlopsProfiler) if not name.startswith("_") and name != "flops"]
    pairs += [
        (getattr(flops.FlopsProfiler, name), getattr(theirs.FlopsProfiler, name))
        for name in names
        if name != "is_expert_tensor_parallelism_enabled"
    ]
    for ours, their in pairs:
        wanted = inspect.signature(their).parameters
        found = {
            name: parameter
            for name, parameter in inspect.signature(ours).parameters.items()
            if parameter.kind is not parameter.KEYWORD_ONLY
        }
        assert list(found) == list(wanted)
        assert [one.default for one in found.values()] == [one.default for one in wanted.values()]


def test_signatures() -> None:
    names = list(inspect.signature(flops.get_model_profile).parameters)
    assert names == [
        *("model", "input_shape", "args", "kwargs", "print_profile", "detailed", "module_depth", "top_modules"),
        *("warm_up", "as_string", "output_file", "ignore_modules", "mode", "strict"),
    ]
    assert list(inspect.signature(flops.FlopsProfiler).parameters) == [
        *("model", "ds_engine", "recompute_fwd_factor", "strict")
    ]
    assert list(inspect.signature(flops.FlopsProfiler.print_model_profile).parameters) == [
        *("self", "profile_step", "module_depth", "top_modules", "detailed", "output_file")
    ]


def test_their_own_example(capsys: pytest.CaptureFixture[str]) -> None:
    model = Net()
    profiler = flops.FlopsProfiler(model)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for step in range(4):
        if step == 2:
            profiler.start_profile()
        loss = model(X).sum()
        if step == 2:
            assert profiler.get_total_flops(as_string=True) == "512 "
            assert profiler.get_total_params(as_string=True) == "72"
            profiler.print_model_profile(profile_step=step)
            profiler.end_profile()
        loss.backward()
        optimizer.step()
    assert "Profile Summary at step 2:" in capsys.readouterr().out
    assert (profiler.flops, profiler.macs, profiler.params) == (FLOP, FLOP // 2, 72)


def test_modules_left_out_count_as_part_of_what_calls_them() -> None:
    model = nn.Sequential(nn.Linear(8, 8), nn.Sequential(nn.Linear(8, 8)))
    profiler = flops.FlopsProfiler(model)
    profiler.start_profile(ignore_list=[nn.Linear])
    model(X)
    profiler.stop_profile()
    assert profiler.get_total_flops() == 2 * FLOP
    assert (flops.get_module_flops(model[1]), flops.get_module_flops(model[0])) == (FLOP, 0)
    profiler.end_profile()


# All kinds of models ------------------------------------------------------------------------------------------------


class Products(nn.Module):
    def forward(self, x: torch.Tensor) -> Any:
        return x @ x, {"as well": [x]}


@pytest.mark.parametrize("context", [torch.no_grad, torch.inference_mode, torch.enable_grad])
def test_without_gradients_and_without_parameters(context: Any) -> None:
    with context():
        found = flops.get_model_profile(Products(), input_shape=(8, 8), print_profile=False, as_string=False)
    assert found == (2 * 8**3, 8**3, 0)
    assert flops.get_model_profile(nn.ReLU(), (8, 8), print_profile=False) == ("0 ", "0 MACs", "0")


def test_a_model_on_the_meta_device_costs_nothing() -> None:
    model = nn.Linear(100_000, 100_000, device="meta")
    found = flops.get_model_profile(model, input_shape=(8, 100_000), print_profile=False)
    assert found == ("160 G", "80 GMACs", "10 B")


@pytest.mark.parametrize("where", ["around", "in place", "inside"])
def test_compiled_models(where: str) -> None:
    torch.compiler.reset()
    model = nn.Sequential(nn.Linear(8, 8), nn.ReLU())
    run: Any = model
    if where == "around":
        run = torch.compile(model, backend="aot_eager")
    elif where == "in place":
        model.compile(backend="aot_eager")
    else:
        run = nn.Sequential(torch.compile(model, backend="aot_eager"), nn.Linear(8, 8))
    profiler = flops.FlopsProfiler(run)
    run(X).sum().backward()
    frames = dict(torch._dynamo.utils.counters["frames"])
    with profiler:
        run(X).sum().backward()
    times = 2 if where == "inside" else 1
    assert profiler.get_total_flops() == times * FLOP
    assert profiler.get_total_backward_flops() == (3 if where == "inside" else 1) * FLOP
    assert profiler.get_total_duration() > 0
    assert dict(torch._dynamo.utils.counters["frames"]) == frames, "nothing is compiled anew"
    run(X)
    assert dict(torch._dynamo.utils.counters["frames"]) == frames
    profiler.end_profile()


def test_started_from_within_the_forward_pass() -> None:
    """As DeepSpeed's engine does it, in a hook of the model."""
    model = Net()
    profiler = flops.FlopsProfiler(model)
    handle = model.register_forward_pre_hook(lambda *_: profiler.start_profile())
    model(X).sum().backward()
    handle.remove()
    profiler.stop_profile()
    assert profiler.get_total_flops() == FLOP
    assert profiler.get_total_duration() >= flops.get_module_duration(model.inner)
    assert profiler.figures().calls(model) == 1
    profiler.end_profile()


def test_no_warning_and_no_line(capfd: pytest.CaptureFixture[str]) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        found = io.StringIO()
        with contextlib.redirect_stdout(found):
            flops.get_model_profile(Net(), args=[X], print_profile=False)
    assert found.getvalue() == ""
    assert capfd.readouterr() == ("", "")
