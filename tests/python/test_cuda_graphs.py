"""CUDA graphs of a job, with torch's own class on a stand-in for what it calls: there is no GPU here."""

from __future__ import annotations

import sys

import pytest
from jobs import Place, needs_torch
from rings import rings, steps_of

pytestmark = needs_torch

GRAPH = """
    import torch
    base = torch._C._CUDAGraph
    base.capture_begin = lambda self, *args, **kwargs: None
    base.capture_end = lambda self: None
    base.replay = lambda self: torch.addmm(model.bias, data, model.weight)
    model, data = torch.nn.Linear(8, 8), torch.ones(4, 8)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    def forward_and_backward():
        optimizer.zero_grad()
        model(data).sum().backward()
    kept = []
    def step():
        forward_and_backward()
        optimizer.step()
    def captured(what):
        graph = object.__new__(torch.cuda.CUDAGraph)
        kept.append(graph)
        graph._tracker = None
        graph.capture_begin()
        what()
        graph.capture_end()
        return graph
"""
WHOLE = """
    for _ in range(3): step()
    graph = captured(step)
    for _ in range(20): graph.replay()
    print("done")
"""
PART = """
    graph = captured(forward_and_backward)
    for _ in range(20):
        graph.replay()
        optimizer.step()
    print("done")
"""
FAILED = """
    def refuse(self, *args, **kwargs): raise RuntimeError("no capture")
    base.capture_begin = refuse
    try: captured(step)
    except RuntimeError as error: print(error)
    for _ in range(20): step()
"""


def steps(place: Place, text: str) -> list[int]:
    """Numbers of all steps of the job, which is as without us."""
    script = place.script(GRAPH + text)
    plain = place.plain(sys.executable, script)
    job = place.run(sys.executable, script)
    assert (job.code, job.stdout) == (plain.returncode, plain.stdout)
    ((_, marks),) = rings(job)
    return steps_of(marks)


def test_a_replay_that_holds_a_step_is_a_step(place: Place) -> None:
    """Three before the capture, none in it, one for each of twenty replays."""
    assert steps(place, WHOLE) == list(range(23))


@pytest.mark.parametrize("window", ["10:12", "3:5"])
def test_steps_of_replays_are_recorded(place: Place, window: str) -> None:
    """The fourth that the job asks for is captured: nothing is computed, and no window begins in there."""
    script = place.script(GRAPH + WHOLE)
    job = place.run(sys.executable, script, options=("--steps", window))
    first, _, end = window.partition(":")
    assert job.code == 0
    assert job.recorded_steps() == [list(range(int(first), int(end)))]


def test_a_graph_without_the_optimizer_is_no_step_of_its_own(place: Place) -> None:
    assert steps(place, PART) == list(range(20))


def test_a_capture_that_fails_is_over(place: Place) -> None:
    assert steps(place, FAILED) == list(range(20))


LONG = """
    import time
    runs, in_capture = torch.autograd.profiler, []
    def slowly():
        end = time.monotonic() + 4
        while time.monotonic() < end:
            step()
            in_capture.append(runs._is_profiler_enabled)
    graph = captured(slowly)
    for _ in range(100):
        graph.replay()
        time.sleep(0.01)
    print(set(in_capture))
"""


def test_no_window_begins_or_ends_in_a_capture(place: Place) -> None:
    """Starting and stopping ask the device for something, which ends a capture, and the job with it."""
    job = place.run(sys.executable, place.script(GRAPH + LONG), options=("--seconds", "1:2"))
    assert (job.code, job.stdout) == (0, "{False}\n")


BESIDE = """
    other = torch.optim.SGD(torch.nn.Linear(2, 2).parameters(), lr=0.1)
    graph = captured(step)
    for _ in range(60):
        graph.replay()
        other.step()
    print("done")
"""


def test_an_optimizer_beside_the_graph_counts_no_steps(place: Place) -> None:
    assert steps(place, BESIDE) == list(range(60))
