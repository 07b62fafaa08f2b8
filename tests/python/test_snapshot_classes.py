"""What allocations are for, told from stacks, ranges and lifetimes, against what the training knows of its tensors.

The training is real and runs on the CPU; its tensors are allocated in a modeled allocator (recorded_step.py).
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from allocator import MIB, Allocator, OutOfMemory, dump
from jobs import needs_torch

import stepscope

pytestmark = [needs_torch, pytest.mark.usefixtures("one_thread")]

NAMES = {"gpu": "Python's stacks and our ranges, as stepscope run records them", "cpu": "a stack for each allocation"}


def recorded(folder: Path, *, like_gpu: bool, newest: int | None = None, **wanted: Any) -> tuple[stepscope.Run, Any]:
    from recorded_step import Recording, train

    recording = Recording(Allocator(), like_gpu=like_gpu)
    train(recording, **wanted)
    snapshot = recording.at_end
    if newest:
        snapshot["device_traces"] = [snapshot["device_traces"][0][-newest:]]
    path = dump(snapshot, folder / "rank-0_step-4_snapshot.pickle")
    return stepscope.open(path, cache=False), recording


def told_categories(run: stepscope.Run) -> dict[int, tuple[str, int, str]]:
    """(category, bytes, evidence) by number of the event that allocated it."""
    rows = run.query("select alloc_event, category, bytes, why from snapshot_allocations where alloc_event is not null")
    return {row["alloc_event"]: (row["category"], row["bytes"], row["why"]) for row in rows.to_pylist()}


@pytest.mark.parametrize("source", NAMES)
def test_categories_are_those_of_the_training(tmp_path: Path, source: str) -> None:
    like_gpu = source == "gpu"
    run, recording = recorded(tmp_path, like_gpu=like_gpu, ranges=like_gpu)
    told = told_categories(run)
    right: dict[str, int] = {}
    known: dict[str, int] = {}
    for event, truth in recording.truth.items():
        category, size, _ = told[event]
        known[truth] = known.get(truth, 0) + size
        right[truth] = right.get(truth, 0) + (size if category == truth else 0)
    assert set(known) == {"parameter", "gradient", "optimizer state", "activation", "input"}
    for truth, size in known.items():
        assert right[truth] >= 0.99 * size, truth
    # And nothing else is taken for one of them: what the training does not know is at most what is kept of the loss.
    for category in ("parameter", "gradient", "optimizer state"):
        taken = sum(
            size for event, (name, size, _) in told.items() if name == category and event not in recording.truth
        )
        assert taken <= 0.01 * known[category], category
    scalars = run.snapshot().scalars
    assert scalars["unknown_share"] <= 0.1
    assert all(why for category, _, why in told.values() if category != "unknown")


def test_what_has_no_evidence_stays_unknown(tmp_path: Path) -> None:
    """On a GPU with Python's stacks alone, and no ranges, nothing tells of what the backward pass allocates."""
    run, recording = recorded(tmp_path, like_gpu=True, ranges=False)
    events = recording.allocator.events
    silent = {event: found for event, found in told_categories(run).items() if not events[event]["frames"]}
    assert silent
    # But who frees a gradient has a stack, and that is evidence too.
    assert {(category, why) for category, _, why in silent.values()} == {
        ("unknown", ""),
        ("gradient", "lifetime: freed by zero_grad"),
    }
    gradients = {event for event, truth in recording.truth.items() if truth == "gradient"}
    assert {event for event, found in silent.items() if found[0] == "gradient"} == gradients
    assert run.snapshot().scalars["unknown_share"] > 0


def test_a_ring_that_lost_the_beginning(tmp_path: Path) -> None:
    """Blocks older than the ring keep the stack that the allocator has of them at the end."""
    run, recording = recorded(tmp_path, like_gpu=True, newest=600)
    classes = {row["class"]: row["bytes"] for row in run.table("answers.snapshot.peak_classes").to_pylist()}
    for truth in ("optimizer state", "parameter"):
        events = [event for event, what in recording.truth.items() if what == truth and event in recording.alive_at_end]
        assert classes[truth] == sum(recording.allocator.events[event]["size"] for event in events)
    assert run.snapshot().scalars["static_bytes"] > 0


@pytest.mark.parametrize("where", ["forward", "backward", "step"])
def test_memory_that_runs_out_within_a_pass(tmp_path: Path, where: str) -> None:
    from recorded_step import Recording, train

    recording = Recording(Allocator(), like_gpu=True)
    full = Allocator.malloc
    seen = {"forward": 0, "backward": 0, "step": 0}

    def malloc(allocator: Allocator, size: int, frames: Any = None, **said: Any) -> int:
        open_range = allocator.annotations[-1] if allocator.annotations else {"stage": "", "name": ""}
        now = {"forward": "forward", "backward": "backward", "Optimizer.step#AdamW.step": "step"}.get(
            open_range["name"], ""
        )
        if open_range["stage"] == "START" and now == where and size > MIB:
            seen[now] += 1
            if seen[now] == 6:
                allocator.capacity = allocator.reserved()
                size += 1 << 40
        return full(allocator, size, frames, **said)

    recording.allocator.malloc = malloc.__get__(recording.allocator)  # type: ignore[method-assign]
    with pytest.raises(OutOfMemory):
        train(recording, steps=1, width=256)
    recording.ended = True
    snapshot = recording.allocator.snapshot()
    run = stepscope.open(dump(snapshot, tmp_path / "oom_rank-0_snapshot.pickle"), cache=False)
    (oom,) = run.table("answers.snapshot.ooms").to_pylist()
    assert oom["range"] == {"step": "Optimizer.step#AdamW.step"}.get(where, where)
    rows = run.table("answers.snapshot.oom_classes").to_pylist()
    classes = {row["class"]: row["bytes"] for row in rows}
    parameters = sum(
        recording.allocator.events[event]["size"] for event, truth in recording.truth.items() if truth == "parameter"
    )
    assert classes["parameter"] == parameters
    assert classes.get("unknown", 0) <= 0.1 * sum(classes.values())
    expected = {"forward": "activation", "backward": "backward pass, not over", "step": "optimizer state"}[where]
    assert classes[expected] > 0


def test_a_leak_is_found_with_the_stack_that_keeps_it(tmp_path: Path) -> None:
    kept: list[Any] = []
    run, _ = recorded(tmp_path, like_gpu=True, steps=7, keep=kept)
    (finding,) = (one for one in run.snapshot().findings if one["id"] == "snapshot_growth")
    assert finding["confidence"] == "high"
    growth = run.table("answers.snapshot.growth").to_pylist()
    assert growth[0]["steady"]
    assert growth[0]["where"].startswith("recorded_step.py")
    steps = run.table("answers.snapshot.steps").to_pylist()
    assert len(steps) == 7
    ends = [row["end_bytes"] for row in steps]
    assert ends == sorted(ends)
    assert finding["evidence"][0]["value"] == ends[-1] - ends[1]


def test_no_leak_where_there_is_none(tmp_path: Path) -> None:
    run, _ = recorded(tmp_path, like_gpu=True, steps=7)
    assert not [one for one in run.snapshot().findings if one["id"] == "snapshot_growth"]
