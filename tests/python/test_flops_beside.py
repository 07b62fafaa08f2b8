"""stepscope.flops beside the program: it leaves nothing behind, and beside other profilers it gives way."""

from __future__ import annotations

import contextlib
import gc
import importlib.util
import math
import sys
import threading
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

if importlib.util.find_spec("torch") is None:
    pytest.skip("torch is not installed", allow_module_level=True)

import torch
from flops_models import BY_NAME
from flops_profiled import FLOP, Net, X, is_bare, nothing_stays_behind  # noqa: F401 -- the last one is a fixture
from torch import nn

import stepscope as package
from stepscope import flops
from stepscope._recording import _hooks

pytestmark = pytest.mark.usefixtures("one_thread")


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
        ({"model": Net(), "args": X}, TypeError, "args is of type Tensor; give a list, such as"),
        ({"model": Net(), "input_shape": 5}, ValueError, "input_shape is 5"),
        ({"model": Net(), "args": [X], "mode": "backward"}, ValueError, "it is one of forward, generate"),
    ],
)
def test_mistakes_are_told(arguments: dict[str, Any], error: type[Exception], said: str) -> None:
    with pytest.raises(error, match=said):
        flops.get_model_profile(**arguments)


def test_a_profiler_of_no_model_is_refused_at_once() -> None:
    with pytest.raises(TypeError, match=r"a model is a torch\.nn\.Module, not NoneType"):
        flops.FlopsProfiler(None)


def test_where_it_is_for_stepscope_run_the_program_goes_on(monkeypatch: pytest.MonkeyPatch) -> None:
    """The same program would measure without it: no error, and no number that is not known."""

    class Recordings:
        active = object()  # on another thread, say

        def give_way(self) -> None: ...

    notes = SimpleNamespace(guard=lambda _: contextlib.nullcontext())
    capture = SimpleNamespace(detached=False, recordings=Recordings(), notes=notes)
    monkeypatch.setattr(_hooks(), "_capture", capture)
    profiler = flops.FlopsProfiler(Net())
    with pytest.warns(UserWarning, match="measures nothing: `stepscope run` records this step"):
        profiler.start_profile()
    profiler.model(X)
    profiler.stop_profile()
    assert math.isnan(profiler.get_total_flops()) and profiler.get_total_macs(as_string=True) == "n/a MACs"
    text = profiler.text()
    assert "fwd latency:".ljust(70) + "  n/a s   \n" in text
    assert text.endswith("n/a: `stepscope run` records this step\n")
    profiler.end_profile()
