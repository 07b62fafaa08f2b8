"""Programs that only answer: they have no steps, so the clock says when they are recorded."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

from jobs import Job, Place, measured, needs_torch, read, rows

pytestmark = needs_torch

SERVICE = """
    import time, torch
    torch.manual_seed(0)
    net = torch.nn.Sequential(*[torch.nn.Linear(16, 16) for _ in range(3)])
    def serve(requests, pause):
        for _ in range(requests):
            net(torch.ones(4, 16))
            time.sleep(pause)
"""
WITHOUT_GRADIENTS = SERVICE.replace("def serve", "@torch.no_grad()\n    def serve")


def served(place: Place, text: str, *options: str) -> Job:
    job = place.run(sys.executable, place.script(text), options=options)
    assert job.code == 0, job.stderr
    (process,) = job.manifest()["processes"]
    assert [window["kind"] for window in process["windows"]] == ["seconds", "stacks"], job.stderr
    return job


def functions(place: Place, job: Job) -> set[str]:
    done = place.plain(str(place.stepscope), "report", str(job.folder), "--json")
    answer: dict[str, Any] = json.loads(done.stdout)["answers"]["stacks"]
    return {row["function"] for row in rows(answer, "functions")}


def passes(trace: Path) -> tuple[int, float]:
    """How many there are, and how many seconds they take."""
    found = [one for one in read(trace)["traceEvents"] if one.get("name") == "aten::linear"]
    starts = [float(one["ts"]) for one in found]
    return len(found) // 3, (max(starts) - min(starts)) / 1e6


@measured
def test_frames_follow_the_seconds_of_a_service(place: Place) -> None:
    job = served(place, WITHOUT_GRADIENTS + "    serve(400, 0.01)\n", "--seconds", "1:2")
    assert "serve" in functions(place, job)


@measured
def test_a_service_that_keeps_gradients_is_recorded_soon_and_with_frames(place: Place) -> None:
    job = served(place, SERVICE + "    serve(220, 0.01)\n")
    assert "serve" in functions(place, job)


@measured
def test_of_short_requests_a_hundred_will_do(place: Place) -> None:
    job = served(place, SERVICE + "    serve(6000, 0.0005)\n")
    (trace,) = job.traces()
    count, seconds = passes(trace)
    assert count >= 100
    assert seconds < 0.75 or count < 200  # a slow machine has few passes in a second


def test_a_window_that_begins_while_the_model_runs_goes_on_in_parts(place: Place) -> None:
    """Where a forward pass has ended no range of the model is open any more, so a part can end there."""
    text = """
        import time, torch
        class Net(torch.nn.Module):
            def __init__(self):
                super().__init__()
                self.layer = torch.nn.Linear(16, 16)
            def forward(self, x):
                time.sleep(0.02)
                return self.layer(x)
        net = Net()
        with torch.no_grad():
            until = time.monotonic() + 8
            while time.monotonic() < until:
                net(torch.ones(4, 16))
    """
    job = place.run(sys.executable, place.script(text), options=("--seconds", "1:6.5"))
    assert job.code == 0, job.stderr
    (process,) = job.manifest()["processes"]
    parts = [window for window in process["windows"] if window["kind"] == "seconds"]
    assert [part["part"] for part in parts] == [0, 1], process["problems"]
    assert all(part["complete"] for part in parts)


@measured
def test_a_service_is_recorded_when_its_model_is_warm(place: Place) -> None:
    text = """
        import time, torch
        class Net(torch.nn.Module):
            def __init__(self):
                super().__init__()
                self.layer, self.cold = torch.nn.Linear(16, 16), True
            def forward(self, x):
                if self.cold:  # as a device is set up, kernels are loaded
                    for _ in range(200):
                        x.sort()
                        time.sleep(0.01)
                    self.cold = False
                return self.layer(x)
        net = Net()
        for _ in range(150):
            net(torch.ones(4, 16))
            time.sleep(0.01)
    """
    (trace,) = served(place, text).traces()
    names = [one.get("name") for one in read(trace)["traceEvents"]]
    assert names.count("aten::linear") > 10
    assert "aten::sort" not in names


@measured
def test_what_prepares_a_training_is_not_recorded(place: Place) -> None:
    job = place.run(
        sys.executable,
        place.script("""
            import pathlib, sys, tempfile, time, torch
            folder = tempfile.mkdtemp()
            pathlib.Path(folder, "slow_to_import.py").write_text("import time; time.sleep(3.5)")
            sys.path.insert(0, folder)
            import slow_to_import
            net, seen, end = torch.nn.Linear(16, 16), False, time.monotonic() + 3.5
            while time.monotonic() < end:  # as one that splits words for a cache of its own
                torch.ones(100).sort()
                seen = seen or torch.autograd._profiler_enabled()
            print("seen", seen)
            optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
            for _ in range(20):
                net(torch.ones(4, 16)).sum().backward()
                optimizer.step()
                optimizer.zero_grad()
        """),
    )
    assert job.code == 0, job.stderr
    assert "seen False" in job.stdout
    (process,) = job.manifest()["processes"]
    assert [window["kind"] for window in process["windows"]] == ["steps", "stacks"]


@measured
def test_a_window_of_very_many_operators_ends_soon(place: Place) -> None:
    """Each takes memory while it is recorded, and time when it is written."""
    text = """
        import time, torch
        class Net(torch.nn.Module):
            def __init__(self):
                super().__init__()
                self.layer = torch.nn.Linear(16, 16)
            def forward(self, x):
                parts = [x] * 256  # a busy machine, too, has recorded much in half a second
                for _ in range(500):
                    torch.cat(parts)
                return self.layer(x)
        net, served_s = Net(), 0.0
        while served_s < 4:
            start = time.monotonic()
            net(torch.ones(4, 16))
            served_s += min(time.monotonic() - start, 0.1)  # a call that waits for what is written serves no longer
    """
    (trace,) = served(place, text).traces()
    found = [float(one["ts"]) for one in read(trace)["traceEvents"] if one.get("name") == "aten::cat"]
    assert len(found) > 500
    assert max(found) - min(found) < 0.65e6
