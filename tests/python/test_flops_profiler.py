"""stepscope.flops in a running process: right on every model of flops_models.py, and nothing of it stays behind."""

from __future__ import annotations

import contextlib
import gc
import importlib.util
import inspect
import io
import sys
import threading
import warnings
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

if importlib.util.find_spec("torch") is None:
    pytest.skip("torch is not installed", allow_module_level=True)

import torch
from flops_models import BY_NAME, ROWS, Row
from torch import nn

import stepscope as package
from stepscope import flops
from stepscope._recording import _hooks

pytestmark = pytest.mark.usefixtures("one_thread")
PATCHED = ("linear", "conv2d", "relu", "softmax", "embedding", "scaled_dot_product_attention", "layer_norm")


class Net(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.inner = nn.Sequential(nn.Linear(8, 8), nn.ReLU())
        self.absent = None
        self.register_module("none", None)

    def forward(self, x: torch.Tensor, fails: bool = False) -> torch.Tensor:
        y = self.inner(x)
        if fails:
            raise KeyError("of the model")
        return y


X = torch.ones(4, 8)
FLOP = 2 * 4 * 8 * 8


def functions() -> list[Any]:
    of_tensors = [torch.matmul, torch.bmm, torch.addmm, torch.einsum, torch.Tensor.matmul, torch.Tensor.__matmul__]
    return [getattr(nn.functional, name) for name in PATCHED] + of_tensors


@pytest.fixture(autouse=True)
def nothing_stays_behind() -> Iterator[None]:
    """After each test: no profiler, no hook of ours, nothing of torch in another place."""
    hooks, before, forward = _hooks(), functions(), nn.Module.__call__
    yield
    gc.collect()
    assert hooks.flop_measure.moments.measured_by is None
    assert not hooks.flop_measure.other_profiler.runs()
    assert sys.modules["_stepscope_hooks.module_hooks"]._living == {}
    assert functions() == before and nn.Module.__call__ is forward


def is_bare(model: Any) -> bool:
    hooks = ("_forward_hooks", "_forward_pre_hooks", "_forward_hooks_always_called")
    ours = ("extra_repr", "__flops__", "__macs__", "__params__", "__duration__")
    return not any(getattr(one, name) for one in model.modules() for name in hooks) and not any(
        name in vars(one) for one in model.modules() for name in ours
    )


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
    assert profiler.text().rstrip().endswith("calls of modules, as memory has an end")
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


# The program goes on as it was ---------------------------------------------------------------------------------------


def failing(model: Any, of: Callable[[Any], Any]) -> None:
    profiler = flops.FlopsProfiler(model)
    profiler.start_profile()
    with pytest.raises(KeyError):
        model(X, fails=True)
    of(profiler)


def test_an_exception_leaves_nothing_behind() -> None:
    model = Net()
    failing(model, lambda profiler: profiler.end_profile())
    assert is_bare(model)
    failing(model, lambda profiler: profiler.stop_profile())
    assert is_bare(model)
    failing(model, lambda profiler: None)  # it is forgotten
    gc.collect()
    assert is_bare(model)
    with pytest.raises(KeyError), flops.FlopsProfiler(model):
        model(X, fails=True)
    assert is_bare(model)
    with pytest.raises(KeyError):
        flops.get_model_profile(model, args=[X], kwargs={"fails": True})
    assert is_bare(model)
    assert flops.get_model_profile(model, args=[X], print_profile=False)[0] == "512 ", "later counts are right"


def test_ranges_that_an_exception_left_end_with_their_caller() -> None:
    model = Net()
    profiler = flops.FlopsProfiler(model)
    with profiler:
        with contextlib.suppress(KeyError):
            model(X, fails=True)
        model(X)
    assert profiler.figures().calls(model) == 2 and profiler.get_total_flops() == 2 * FLOP
    profiler.end_profile()


def test_modes_stay_as_they_were() -> None:
    class Merges(nn.Linear):
        """As some adapters do, it changes its weight with its mode."""

        def train(self, mode: bool = True) -> Any:
            raise AssertionError("nobody asked for it")

    model = nn.Sequential(Merges(8, 8), nn.Dropout(), nn.BatchNorm1d(8))
    model[1].training = False
    running = model[2].running_mean.clone()
    flops.get_model_profile(model, input_shape=(4, 8), print_profile=False)
    assert [one.training for one in model.modules()] == [True, True, False, True]
    assert torch.equal(model[2].running_mean, running)
    with pytest.raises(RuntimeError):
        flops.get_model_profile(model, input_shape=(4, 9), print_profile=False)
    assert [one.training for one in model.modules()] == [True, True, False, True]


def test_the_result_is_the_same_to_the_bit() -> None:
    def train(profiled: bool) -> list[Any]:
        torch.manual_seed(0)
        model = BY_NAME["gpt_checkpoint"].build()
        optimizer = torch.optim.Adam(model.model.parameters())
        for step in range(3):
            profiler = flops.FlopsProfiler(model.model)
            if profiled and step == 1:
                profiler.start_profile()
            model.step()
            if profiled and step == 1:
                profiler.get_total_flops()
                profiler.end_profile()
            optimizer.step()
        return list(model.model.parameters())

    assert all(torch.equal(a, b) for a, b in zip(train(False), train(True)))


def test_a_model_is_not_kept_alive() -> None:
    import weakref

    model = Net()
    known = weakref.ref(model)
    profiler = flops.FlopsProfiler(model)
    with profiler:
        model(X)
    assert profiler.get_total_flops() == FLOP and flops.get_module_flops(model) == FLOP
    del model, profiler
    gc.collect()
    assert known() is None


def test_no_file_stays_behind(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    model = Net()
    profiler = flops.FlopsProfiler(model)
    with profiler:
        model(X)
    profiler.get_total_flops()
    assert list(tmp_path.iterdir()) == []
    with profiler:
        model(X)
    profiler.end_profile()
    assert list(tmp_path.iterdir()) == []


def test_without_files_in_memory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys.modules["_stepscope_hooks.spool"], "memory_file", lambda: None)
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    assert flops.get_model_profile(Net(), args=[X], print_profile=False)[0] == "512 "
    assert list(tmp_path.iterdir()) == []


# Where nothing can be measured ---------------------------------------------------------------------------------------


def test_figures_before_the_start_are_an_error() -> None:
    profiler = flops.FlopsProfiler(Net())
    for ask in (profiler.get_total_flops, profiler.get_total_macs, profiler.get_total_duration):
        with pytest.raises(RuntimeError, match=r"call start_profile\(\) before the forward pass"):
            ask()
    assert profiler.get_total_params() == 72
    for show in (profiler.print_model_profile, profiler.print_model_aggregated_profile):
        with pytest.warns(UserWarning, match="nothing is measured"):
            show()


def test_a_model_that_was_not_called_is_an_error() -> None:
    profiler = flops.FlopsProfiler(Net())
    with profiler:
        pass
    with pytest.raises(RuntimeError, match="the model was not called"):
        profiler.get_total_flops()
    profiler.end_profile()
    with pytest.raises(RuntimeError, match="a scripted model cannot be seen"):
        flops.get_model_profile(torch.jit.script(nn.Linear(8, 8)), args=[X], print_profile=False)


def test_two_at_once_are_an_error() -> None:
    model = Net()
    first, second = flops.FlopsProfiler(model), flops.FlopsProfiler(model)
    first.start_profile()
    with pytest.raises(RuntimeError, match="another FLOP measurement runs"):
        second.start_profile()
    model(X)
    assert first.get_total_flops() == FLOP, "the first one does not notice"
    second.start_profile()
    model(X)
    model(X)
    assert (second.get_total_flops(), first.get_total_flops()) == (2 * FLOP, FLOP)
    assert flops.get_module_flops(model) == 2 * FLOP, "what was measured last"
    first.end_profile()
    assert flops.get_module_flops(model) == 2 * FLOP
    second.end_profile()
    with pytest.raises(RuntimeError, match="nothing was measured of this module"):
        flops.get_module_flops(model)


def test_beside_a_profiler_of_the_program_s_own(tmp_path: Path) -> None:
    model = Net()
    profiler = flops.FlopsProfiler(model)
    with torch.profiler.profile(activities=[torch.profiler.ProfilerActivity.CPU]) as own:
        with pytest.raises(RuntimeError, match="a torch profiler runs already"):
            profiler.start_profile()
        model(X)
    assert any(event.name == "aten::addmm" for event in own.events()), "it is left alone"
    with package.profile(tmp_path) as recording, pytest.raises(RuntimeError, match="a torch profiler runs already"):
        profiler.start_profile()
    assert recording.run().rank_numbers == [0]


@pytest.mark.parametrize("ends", ["before", "after"])
def test_a_profiler_that_comes_meanwhile_keeps_what_it_records(ends: str) -> None:
    """torch gives it the place of ours without a word; to end ours then would be to end theirs, or a crash."""
    model = Net()
    profiler = flops.FlopsProfiler(model)
    profiler.start_profile()
    model(X)
    own = torch.profiler.profile(activities=[torch.profiler.ProfilerActivity.CPU])
    own.start()
    model(X)
    if ends == "before":
        own.stop()
    with pytest.raises(RuntimeError, match="another torch profiler took the place"):
        profiler.stop_profile()
    assert is_bare(model)
    if ends == "after":
        own.stop()
    assert sum(event.name == "aten::addmm" for event in own.events()) == 1
    with pytest.raises(RuntimeError, match="another torch profiler took the place"):
        profiler.get_total_flops()
    profiler.end_profile()


@pytest.mark.parametrize("step", [0, 1, 2])
def test_beside_a_profiler_that_waits_and_warms_up(step: int) -> None:
    model, found = Net(), []
    profiler = flops.FlopsProfiler(model)
    with torch.profiler.profile(
        activities=[torch.profiler.ProfilerActivity.CPU],
        schedule=torch.profiler.schedule(wait=1, warmup=1, active=1),
        on_trace_ready=lambda one: found.append(sum(event.name == "aten::addmm" for event in one.events())),
    ) as own:
        for number in range(3):
            if number == step == 0:
                profiler.start_profile()
            elif number == step:
                with pytest.raises(RuntimeError, match="a torch profiler runs already"):
                    profiler.start_profile()
            model(X)
            if number == step == 0:
                assert profiler.get_total_flops() == FLOP
            own.step()
    assert found == [1], "its own trace is whole"
    profiler.end_profile()


def test_a_thread_ends_what_it_began() -> None:
    model = Net()
    profiler = flops.FlopsProfiler(model)
    profiler.start_profile()
    model(X)
    told: list[Any] = []

    def elsewhere() -> None:
        try:
            profiler.get_total_flops()
        except RuntimeError as error:
            told.append(str(error))

    thread = threading.Thread(target=elsewhere)
    thread.start()
    thread.join()
    assert told == ["a measurement ends on the thread that began it"]
    assert profiler.get_total_flops() == FLOP
    profiler.end_profile()


def test_one_that_is_forgotten_elsewhere_ends_with_the_next_pass() -> None:
    model = Net()
    held = [flops.FlopsProfiler(model)]
    held[0].start_profile()
    thread = threading.Thread(target=held.clear)
    thread.start()
    thread.join()
    assert not is_bare(model), "torch's profiler ends on its own thread alone"
    model(X)
    assert is_bare(model)


def test_within_a_backward_pass_nothing_begins_or_ends() -> None:
    model = Net()
    profiler = flops.FlopsProfiler(model)
    told: list[str] = []

    def ask(_: Any) -> None:
        try:
            profiler.start_profile()
        except RuntimeError as error:
            told.append(str(error))

    y = model(X)
    y.register_hook(ask)
    y.sum().backward()
    assert len(told) == 1 and "backward pass" in told[0]
    assert is_bare(model)


@pytest.mark.parametrize(
    ("arguments", "error", "said"),
    [
        ({"model": 3}, TypeError, "a model is a torch.nn.Module, not int"),
        ({"model": Net()}, ValueError, "give input_shape, args or kwargs"),
        ({"model": Net(), "input_shape": 5}, ValueError, "input_shape is 5"),
        ({"model": Net(), "args": [X], "mode": "backward"}, ValueError, "it is one of forward, generate"),
    ],
)
def test_mistakes_are_told(arguments: dict[str, Any], error: type[Exception], said: str) -> None:
    with pytest.raises(error, match=said):
        flops.get_model_profile(**arguments)


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
