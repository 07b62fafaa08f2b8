"""Moments at which torch's profiler must neither start nor stop: it would harm the job, or lose what it recorded."""

from __future__ import annotations

import sys

from jobs import Place, measured, needs_torch, read

pytestmark = needs_torch


def test_ranges_around_steps_end_before_the_next_recording_starts(place: Place) -> None:
    """torch would write their end into memory that it gave back when the recording before stopped."""
    text = """
    import torch
    net = torch.nn.Linear(8, 8)
    optimizer = torch.optim.SGD(net.parameters(), lr=0.01)
    for number in range(12):
        with torch.profiler.record_function("whole step"):
            net(torch.ones(4, 8)).sum().backward()
            optimizer.step()
            optimizer.zero_grad()
    """
    job = place.run(sys.executable, place.script(text), options=("--steps", "3:6"))
    assert (job.code, job.others) == (0, [])
    assert job.recorded_steps() == [[3, 4, 5]]
    (note,) = job.manifest()["processes"]
    assert note["problems"] == []
    assert [(window["kind"], window["steps"]) for window in note["windows"]] == [("steps", [3, 4, 5]), ("stacks", [7])]


def test_a_range_of_many_steps_keeps_the_next_recording_away(place: Place) -> None:
    text = """
    import torch
    net = torch.nn.Linear(8, 8)
    optimizer = torch.optim.SGD(net.parameters(), lr=0.01)
    for number in range(30):
        if number == 4:
            epoch = torch.profiler.record_function("epoch")
            epoch.__enter__()
        net(torch.ones(4, 8)).sum().backward()
        optimizer.step()
        if number == 20:
            epoch.__exit__(None, None, None)
            del epoch
    """
    job = place.run(sys.executable, place.script(text), options=("--steps", "3:5,10:12,24:26"))
    assert (job.code, job.others) == (0, [])
    (note,) = job.manifest()["processes"]
    windows = [(window["kind"], window["steps"]) for window in note["windows"]]
    assert windows == [("steps", [3, 4]), ("steps", [24, 25]), ("stacks", [26])]
    assert "step 10 was not recorded: a range was still open" in note["problems"][0]


def test_an_optimizer_that_backward_steps(place: Place) -> None:
    text = """
    import torch
    net = torch.nn.Sequential(torch.nn.Linear(8, 8), torch.nn.Linear(8, 8))
    optimizer = torch.optim.SGD(net.parameters(), lr=0.01)
    def step(parameter):
        optimizer.step()
        optimizer.zero_grad()
    net[0].bias.register_post_accumulate_grad_hook(step)
    for number in range(12):
        net(torch.ones(4, 8)).sum().backward()
    """
    job = place.run(sys.executable, place.script(text), options=("--steps", "3:6"))
    assert (job.code, job.others) == (0, [])
    assert job.recorded_steps() == [[3, 4, 5]]
    assert job.manifest()["processes"][0]["problems"] == []


@measured
def test_the_clock_waits_for_what_saves_the_state_of_the_thread(place: Place) -> None:
    """Start and end of the window fall into a function that torch calls while it dispatches."""
    text = """
    import time, torch
    from torch.utils._python_dispatch import TorchDispatchMode
    class Slow(TorchDispatchMode):
        def __torch_dispatch__(self, function, types, args=(), kwargs=None):
            until = time.monotonic() + 2
            while time.monotonic() < until:
                pass
            return function(*args, **(kwargs or {}))
    for _ in range(2):
        with Slow():
            torch.ones(4)
        for _ in range(1000):  # long enough for a machine with much else to do
            torch.ones(4).sin()
            time.sleep(0.001)
    print("done")
    """
    job = place.run(sys.executable, place.script(text), options=("--seconds", "1:2"))
    assert (job.code, job.stdout, job.others) == (0, "done\n", [])
    (note,) = job.manifest()["processes"]
    assert note["problems"] == []
    window = note["windows"][0]
    assert (window["kind"], window["complete"]) == ("seconds", True)
    (trace,) = job.traces()
    assert sum(event.get("name") == "aten::sin" for event in read(trace)["traceEvents"]) >= 40
