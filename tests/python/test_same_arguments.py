"""Functions that are given the same in each step, as the hooks see it while the job runs."""

from __future__ import annotations

import json
import re
import sys
from pathlib import Path
from typing import Any

import pytest
from jobs import Job, Place, needs_torch

pytestmark = [
    needs_torch,
    pytest.mark.skipif(sys.version_info < (3, 11), reason="Python's trace of calls changes variables before 3.11"),
]

JOB = """
    import sys, torch
    torch.manual_seed(0)
    nodes = 400
    near = torch.rand(nodes, nodes).gt(0.98).float()
    seen = near.clone().numpy()
    near_seen = torch.from_numpy(seen)

    def normalized(near):
        both = near + near.T + torch.eye(near.shape[0])
        scale = both.sum(1).rsqrt()
        return scale[:, None] * both * scale[None]

    def mask(x, window):
        at = torch.arange(x.shape[0])
        return ((at[:, None] - at[None]).abs() < window).float()

    def debugger(frame, event, argument):
        return None

    def squared(x):
        return torch.square(x)

    class Graph(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.layers = torch.nn.ModuleList([torch.nn.Linear(16, 16) for _ in range(3)])
        def forward(self, x, near):
            for layer in self.layers:
                x = layer(normalized(near) @ x).relu() + mask(x, 30) @ squared(x.detach())
            return x

    net = Graph()
    optimizer = torch.optim.SGD(net.parameters(), lr=1e-5)
    for step in range(STEPS):
        x = torch.randn(nodes, 16)
        pass
        optimizer.zero_grad()
        net(x, near).mean().backward()
        optimizer.step()
    print("traced by", getattr(sys.gettrace(), "__name__", None))
"""


def recorded(
    place: Place, each_step: str = "pass", by: str = "None", steps: int = 24
) -> tuple[Job, dict[str, Any], set[str]]:
    """The job, what its process noted, and the functions that were given the same. `by`: who traces calls at its end;
    empty: whoever does."""
    text = JOB.replace("        pass\n", f"        {each_step}\n").replace("STEPS", str(steps))
    file = Path(place.script(text))
    job = place.run(sys.executable, str(file))
    assert job.code == 0, job.stderr
    assert not by or job.stdout.strip() == f"traced by {by}"
    (process,) = job.manifest()["processes"]
    assert process["problems"] == []
    source = file.read_text().splitlines()
    names = (re.search(r"def (\w+)", source[line - 1]) for _, line in process.get("given_the_same", []))
    return job, process, {name.group(1) for name in names if name is not None}


def test_a_function_that_is_given_the_same_in_each_step_is_told(place: Place) -> None:
    job, process, functions = recorded(place)
    assert functions == {"normalized", "mask"}
    said = json.loads(place.plain(str(place.stepscope), "advise", str(job.folder), "--json").stdout)
    found = {one["sentence"]: one for one in said["findings"] if one["id"] == "constant_in_steps"}
    told = next(one for sentence, one in found.items() if "normalized()" in sentence)
    assert told["where"]["function"] == "forward"
    assert "was seen in two steps" in told["confidence_reason"]
    assert process["steps_seen"] == 24


@pytest.mark.parametrize(
    "each_step",
    [
        "near[0, step] = 1",
        "near.data.mul_(0.99)",
        "seen[0, step] += 1; near = near_seen",
        "near = near.clone()",
        "near = near.requires_grad_()",
    ],
    ids=["changed in place", "changed without a version", "changed by numpy", "another one", "learned"],
)
def test_what_may_differ_is_not(place: Place, each_step: str) -> None:
    assert recorded(place, each_step)[2] == {"mask"}


def test_the_same_view_of_it_is_the_same(place: Place) -> None:
    assert recorded(place, "near = near[:]")[2] == {"mask", "normalized"}


def test_a_debugger_is_left_alone(place: Place) -> None:
    assert recorded(place, "sys.settrace(debugger)", by="debugger")[2] == set()


@pytest.mark.parametrize("steps", [7, 8, 16, 17])
def test_where_the_job_ends_what_was_seen_before_stays(place: Place, steps: int) -> None:
    """Frames are those of step 6, and of step 15, or of a later one where the early ones are still being written."""
    job, process, functions = recorded(place, by="", steps=steps)
    with_frames = [step for window in process["windows"] if window["kind"] == "stacks" for step in window["steps"]]
    assert with_frames[-1:] == [6] if steps < 9 else with_frames[-1] >= 6
    by = "_called" if with_frames[-1] == steps - 1 else "None"  # for a while, since the next step does not come
    assert job.stdout.strip() == f"traced by {by}"
    assert functions == (set() if steps == 7 else {"normalized", "mask"})


def test_a_training_that_is_over_is_not_traced_for_long(place: Place) -> None:
    rest = """
    import time
    time.sleep(3.2)
    debugger(None, "", None)
    print("then by", getattr(sys.gettrace(), "__name__", None))
    """
    job = place.run(sys.executable, place.script(JOB.replace("STEPS", "16") + rest))
    assert job.stdout.splitlines() == ["traced by _called", "then by None"]


def test_a_debugger_that_begins_within_a_step_stays(place: Place) -> None:
    assert recorded(place, "sys.settrace(debugger) if step == 15 else None", by="debugger")[2] == set()
