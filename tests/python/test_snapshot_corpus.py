"""Real memory snapshots and memory timelines of other projects, against a plain replay in Python.

All snapshots that lie in the corpus are taken, whatever they are called; that of facebookresearch/mosaic is one.
"""

from __future__ import annotations

import gzip
import json
import pickle
from collections import Counter
from itertools import groupby
from pathlib import Path
from typing import Any

import pytest
from allocator import dump, replayed

import stepscope


class PlainData(pickle.Unpickler):
    def find_class(self, module: str, name: str) -> Any:
        raise pickle.UnpicklingError(f"{module}.{name}")


def snapshots(corpus: Path) -> list[tuple[Path, dict[str, Any]]]:
    found = []
    for path in sorted(corpus.rglob("*.pickle")):
        with path.open("rb") as file:
            snapshot = PlainData(file).load()
        if isinstance(snapshot, dict) and "device_traces" in snapshot:
            found.append((path, snapshot))
    return found


def test_every_snapshot_as_a_plain_replay_has_it(corpus: Path, tmp_path: Path) -> None:
    all_of_them = snapshots(corpus)
    assert all_of_them
    for path, snapshot in all_of_them:
        run = stepscope.open(path, cache=False)
        for device in run.table("answers.snapshot.devices").to_pylist():
            number = int(device["device"].removeprefix("cuda:"))
            truth = replayed(snapshot, number)
            peak, moment = truth.peak
            told = {name: device[name] for name in ("peak_bytes", "static_bytes", "end_bytes", "events")}
            assert told == {
                "peak_bytes": peak,
                "static_bytes": sum(block["size"] for block in truth.static.values()),
                "end_bytes": truth.held[-1],
                "events": len(truth.held) - 1,
            }, path
            assert device["peak_event"] == (moment - 1 if moment else None), path
        check_inferred_sizes(snapshot, tmp_path)


def check_inferred_sizes(snapshot: dict[str, Any], folder: Path) -> None:
    """Without the sizes of blocks at the end they follow from the events, and are those of the file."""
    sizes = {}
    for segment in snapshot["segments"]:
        for block in segment["blocks"]:
            if block["state"] != "inactive":
                sizes[block["address"]] = block["size"]
                block["size"] = None
    run = stepscope.open(dump(snapshot, folder / "without sizes"), cache=False)
    rows = run.query(
        "select address, block_bytes from snapshot_allocations where alloc_event is not null and end_event is null"
    ).to_pylist()
    assert [row for row in rows if row["address"] in sizes and sizes[row["address"]] != row["block_bytes"]] == []


def test_the_file_of_mosaic(corpus: Path) -> None:
    """Its peak to the byte; its classes are what was being compiled, for its stacks are made up and say nothing."""
    run = stepscope.open(corpus / "mosaic" / "output.pickle", cache=False)
    scalars = run.snapshot().scalars
    assert scalars["peak_bytes"] == 2_255_398_132
    assert scalars["static_bytes"] == 8_704
    assert scalars["unknown_share"] <= 0.1
    assert scalars["uncategorized_share"] == 1
    (device,) = run.table("answers.snapshot.devices").to_pylist()
    assert device["peak_t_ns"] == 1_759_252_840_749_560_000
    classes = {row["class"]: row["bytes"] for row in run.table("answers.snapshot.peak_classes").to_pylist()}
    assert classes == {
        "compiled: context1": 528_274_631,
        "compiled: context2": 1_212_434_191,
        "compiled: context3": 514_689_310,
        "unknown": sum(block["requested_size"] for block in replayed(mosaic(corpus)).static.values()),
    }
    evidence = run.table("answers.snapshot.peak_evidence").to_pylist()
    assert {row["class"]: row["why"] for row in evidence if row["class"] != "unknown"} == dict.fromkeys(
        ("compiled: context1", "compiled: context2", "compiled: context3"), "compile context"
    )


def mosaic(corpus: Path) -> dict[str, Any]:
    with (corpus / "mosaic" / "output.pickle").open("rb") as file:
        snapshot: dict[str, Any] = PlainData(file).load()
    return snapshot


def test_the_timeline_of_hta(corpus: Path) -> None:
    path = corpus / "hta" / "memory_analysis" / "memory_timeline.raw.gz"
    with gzip.open(path) as file:
        rows = sorted(json.load(file), key=lambda row: row[0])
    now: Counter[int] = Counter()
    peak, when, held = 0, 0, Counter(now)
    for time, changes in groupby(rows, key=lambda row: row[0]):
        for _, _, size, category in changes:
            now[category] += size
        if sum(now.values()) > peak:
            peak, when, held = sum(now.values()), time, Counter(now)
    run = stepscope.open(path, cache=False)
    scalars = run.snapshot().scalars
    assert (scalars["timeline_peak_bytes"], scalars["timeline_peak_t_ns"]) == (peak, when)
    names = ["PARAMETER", "OPTIMIZER_STATE", "INPUT", "TEMPORARY", "ACTIVATION", "GRADIENT", "AUTOGRAD_DETAIL", "none"]
    table = run.table("answers.snapshot.timeline").to_pylist()
    assert {row["recorded_as"]: row["at_peak_bytes"] for row in table} == {
        name: held[i] for i, name in enumerate(names) if any(row[3] == i for row in rows)
    }
    assert {row["recorded_as"]: row["last_bytes"] for row in table} == {
        name: now[i] for i, name in enumerate(names) if any(row[3] == i for row in rows)
    }


def test_a_timeline_of_this_torch(tmp_path: Path) -> None:
    """Both forms that torch.profiler writes say the same."""
    torch = pytest.importorskip("torch")
    model = torch.nn.Linear(64, 64)
    with torch.profiler.profile(profile_memory=True, record_shapes=True, with_stack=True) as profiler:
        for _ in range(3):
            model(torch.randn(8, 64)).sum().backward()
            model.zero_grad()
    raw, levels = tmp_path / "memory.raw.json.gz", tmp_path / "memory.json"
    try:
        profiler.export_memory_timeline(str(raw), device="cpu")
        profiler.export_memory_timeline(str(levels), device="cpu")
    except Exception as error:
        pytest.skip(f"this torch does not export it: {error}")
    first, second = (stepscope.open(path, cache=False).snapshot() for path in (raw, levels))
    assert first.scalars["timeline_peak_bytes"] > 0
    last = [
        {row["recorded_as"]: row["last_bytes"] for row in one.tables["timeline"].to_pylist()} for one in (first, second)
    ]
    assert last[0] == last[1]
