"""Memory snapshots from a modeled allocator (allocator.py), against a plain replay of the same file in Python.

No GPU is needed: form, sizes, holes and the order of events are those of torch's allocator, which the model follows
rule by rule; that real files of real GPUs are read alike is in test_snapshot_corpus.py. What stays unproven without a
GPU: snapshots with real out-of-memory entries and with expandable segments, of which no public file was found.
"""

from __future__ import annotations

import gzip
import json
import random
import subprocess
from pathlib import Path
from typing import Any

import pytest
from allocator import GIB, MIB, Allocator, OutOfMemory, dump, free_runs, replayed
from jobs import needs_torch

import stepscope

Rows = list[dict[str, Any]]


def frame(name: str, line: int = 1, file: str = "/home/me/train.py") -> dict[str, Any]:
    return {"filename": file, "line": line, "name": name}


def opened(snapshot: object, folder: Path, name: str = "snapshot.pickle", protocol: int = 4) -> stepscope.Run:
    return stepscope.open(dump(snapshot, folder / name, protocol), cache=False)


def table(run: stepscope.Run, name: str) -> Rows:
    return run.table(f"answers.snapshot.{name}").to_pylist()


def scalars(run: stepscope.Run) -> dict[str, Any]:
    return run.snapshot().scalars


def cli(stepscope: Path, *words: object, code: int = 0) -> str:
    done = subprocess.run([str(stepscope), *map(str, words)], text=True, capture_output=True, check=False)
    assert done.returncode == code, done.stderr
    return done.stdout if code == 0 else done.stderr


def reports(stepscope: Path, path: Path) -> dict[str, Any]:
    report: dict[str, Any] = json.loads(cli(stepscope, "memory", path, "--json"))
    return report


def busy(
    allocator: Allocator, turns: int, seed: int = 0, *, largest: int = 40 * MIB, keep: float = 0.3, streams: int = 1
) -> None:
    """Random work: sizes of both pools, of several streams, some freed while a stream still uses them."""
    chance = random.Random(seed)
    stacks = [[frame(f"leaf{i}", i), frame("step", 9), frame("main", 1)] for i in range(1, 30)]
    live: list[int] = []
    pending: list[int] = []
    for _ in range(turns):
        allocator.stream = chance.choice(range(streams))
        if live and chance.random() > keep + 0.25:
            address = live.pop(chance.randrange(len(live)))
            if streams > 1 and chance.random() < 0.2:
                allocator.free(address, stacks[0], pending=True)
                pending.append(address)
            else:
                allocator.free(address, stacks[0])
        elif pending and chance.random() < 0.3:
            allocator.complete(pending.pop(0), stacks[1])
        else:
            size = chance.choice((chance.randint(1, 4000), chance.randint(1, MIB), chance.randint(1, largest)))
            live.append(allocator.malloc(size, chance.choice(stacks)))
    allocator.stream = 0


def by_stack(alive: dict[int, tuple[int, Any]]) -> dict[str, tuple[int, int]]:
    """Bytes and blocks by the name of the innermost function."""
    sums: dict[str, tuple[int, int]] = {}
    for size, frames in alive.values():
        name = frames[0]["name"] if frames else "older"
        known = sums.get(name, (0, 0))
        sums[name] = (known[0] + size, known[1] + 1)
    return sums


def told_by_stack(rows: Rows) -> dict[str, tuple[int, int]]:
    def name(where: str) -> str:
        return "older" if where.startswith("older") else where.split(" < ")[0].split(" ")[1]

    return {name(row["where"]): (row["bytes"], row["blocks"]) for row in rows}


@pytest.mark.parametrize("expandable", [False, True])
@pytest.mark.parametrize("newest", [None, 500])
def test_peak_and_state_are_those_of_a_plain_replay(tmp_path: Path, expandable: bool, newest: int | None) -> None:
    allocator = Allocator(expandable=expandable)
    busy(allocator, 3000, streams=3)
    snapshot = allocator.snapshot(newest)
    truth = replayed(snapshot, states=True)
    run = opened(snapshot, tmp_path)
    (device,) = table(run, "devices")
    peak, moment = truth.peak
    assert device["peak_bytes"] == peak
    assert device["peak_event"] == (moment - 1 if moment else None)
    assert device["static_bytes"] == sum(block["size"] for block in truth.static.values())
    assert device["end_bytes"] == truth.held[-1]
    assert device["events"] == len(truth.held) - 1
    if newest:
        assert truth.older and truth.static, "the ring must have lost allocations of both kinds"
    else:
        assert not truth.older and not truth.static
        assert told_by_stack(table(run, "peak_stacks")) == by_stack(truth.alive[moment])
    assert not run.issues


def test_the_state_after_any_event(tmp_path: Path, stepscope: Path) -> None:
    allocator = Allocator()
    busy(allocator, 1500, streams=2)
    snapshot = allocator.snapshot(1200)
    path = dump(snapshot, tmp_path / "snapshot.pickle")
    truth = replayed(snapshot, states=True)
    static = sum(block["requested_size"] for block in truth.static.values())
    for event in (0, 1, 77, 640, 1199):
        report = json.loads(cli(stepscope, "memory", path, "--at", event, "--by", "stack", "--json"))
        (moment,) = rows_of(report, "moment", "moment")
        assert moment["bytes"] == truth.held[event + 1] + static
        assert moment["blocks"] == len(truth.alive[event + 1]) + len(truth.static)
        told = {
            row["where"] if "where" in row else row["stack"]: row for row in rows_of(report, "moment", "held_by_stack")
        }
        assert sum(row["bytes"] for row in told.values()) == moment["bytes"]


def rows_of(report: dict[str, Any], answer: str, name: str) -> Rows:
    found = report["answers"][answer]["tables"][name]
    names = [column["name"] for column in found["columns"]]
    return [dict(zip(names, row)) for row in found["rows"]]


@needs_torch
@pytest.mark.parametrize("plot", ["trace_plot", "segment_plot"])
def test_pages_of_the_official_viewer(tmp_path: Path, stepscope: Path, plot: str) -> None:
    from torch.cuda import _memory_viz

    allocator = Allocator()
    busy(allocator, 600)
    snapshot = allocator.snapshot()
    page = tmp_path / "plot.html"
    page.write_text(getattr(_memory_viz, plot)(snapshot))
    of_page = reports(stepscope, page)
    assert of_page["input"]["files"][0]["format"] == "cuda_snapshot"
    assert of_page["issues"] == []
    of_pickle = reports(stepscope, dump(snapshot, tmp_path / "snapshot.pickle"))
    name = len(of_page["answers"]["snapshot"]["tables"]["devices"]["columns"]) - 1  # the file
    for report in (of_page, of_pickle):
        report["answers"]["snapshot"]["tables"]["devices"]["rows"][0].pop(name)
    assert of_page["answers"] == of_pickle["answers"]
    page.write_text(page.read_text()[:20_000])
    assert "cut" in cli(stepscope, "memory", page, code=1)


@pytest.mark.parametrize("protocol", [2, 3, 4, 5])
@pytest.mark.parametrize("packed", [False, True])
def test_every_protocol_plain_and_packed(tmp_path: Path, protocol: int, packed: bool) -> None:
    allocator = Allocator()
    busy(allocator, 600)
    snapshot = allocator.snapshot()
    path = dump(snapshot, tmp_path / "nothing in the name", protocol)
    if packed:
        path.write_bytes(gzip.compress(path.read_bytes()))
    run = stepscope.open(path, cache=False)
    assert scalars(run)["peak_bytes"] == replayed(snapshot).peak[0]
    assert run.files[0]["format"] == "cuda_snapshot"
    assert run.files[0]["compressed"] == packed


def test_the_oldest_form_a_list_of_segments(tmp_path: Path) -> None:
    """torch 1.12 to 2.0: no events, blocks without addresses, what lay in them as history."""
    allocator = Allocator()
    busy(allocator, 600)
    segments = allocator.snapshot()["segments"]
    for segment in segments:
        for old in ("requested_size", "segment_pool_id", "is_expandable", "frames"):
            segment.pop(old)
        for block in segment["blocks"]:
            frames = block.pop("frames")
            block.pop("address")
            if block["state"] != "inactive":
                block["history"] = [{"addr": 1, "real_size": block["requested_size"], "frames": frames}]
            block.pop("requested_size")
    run = opened(segments, tmp_path)
    held = sum(block["size"] for one in segments for block in one["blocks"] if block["state"] != "inactive")
    (device,) = table(run, "devices")
    assert (device["static_bytes"], device["peak_bytes"], device["events"]) == (held, None, 0)
    assert any(row["where"].startswith("train.py:") for row in table(run, "peak_stacks"))
    assert any("No events were recorded" in note for note in run.snapshot().notes)


def test_blocks_that_were_gone_have_the_sizes_that_the_allocator_gave_them(tmp_path: Path) -> None:
    """No event says them: they follow from how free blocks are split."""
    allocator = Allocator()
    given: dict[int, int] = {}
    take = allocator._take

    def noted(block: Any, wanted: int, requested: int, frames: Any) -> None:
        take(block, wanted, requested, frames)
        given[len(allocator.events)] = block.size

    allocator._take = noted  # type: ignore[method-assign]
    busy(allocator, 3000, streams=2)
    run = opened(allocator.snapshot(), tmp_path)
    rows = run.query("select alloc_event, bytes, block_bytes from snapshot_allocations").to_pylist()
    assert len(rows) == len(given)
    assert {row["alloc_event"]: row["block_bytes"] for row in rows} == given
    assert any(row["block_bytes"] > (row["bytes"] + 511) // 512 * 512 for row in rows), "some took a whole free block"


@pytest.mark.parametrize("expandable", [False, True])
def test_what_is_reserved_at_any_event(tmp_path: Path, stepscope: Path, expandable: bool) -> None:
    allocator = Allocator(6 * GIB, expandable=expandable)
    reserved = []
    for turn in range(8):
        busy(allocator, 120, seed=turn, largest=300 * MIB, keep=0.05)
        if turn % 3 == 2:
            allocator.empty_cache()
        event = allocator.remember()
        reserved.append((event, allocator.reserved(), sorted(free_runs(allocator.states[event]))))
    path = dump(allocator.snapshot(), tmp_path / "snapshot.pickle")
    actions = {event["action"] for event in allocator.events}
    assert actions >= ({"segment_map", "segment_unmap"} if expandable else {"segment_alloc", "segment_free"})
    for event, held, runs in reserved:
        report = json.loads(cli(stepscope, "memory", path, "--at", event, "--json"))
        (moment,) = rows_of(report, "moment", "moment")
        assert moment["reserved_bytes"] == held
        assert moment["free_bytes"] == sum(runs)
        assert moment["largest_run_bytes"] == max(runs, default=0)
        assert moment["segments"] == len(allocator.states[event])


def fragmented() -> tuple[Allocator, list[dict[str, Any]]]:
    """Half of the memory is free, in pieces of 100 MiB between blocks of 10 MiB that `cache` keeps."""
    allocator = Allocator(2 * GIB)
    keeper = [frame("put", 7), frame("cache", 3)]
    segments = [allocator.malloc(990 * MIB, [frame("fill")]) for _ in range(2)]
    for address in segments:
        allocator.free(address)
    free_after = []
    for _ in range(18):
        free_after.append(allocator.malloc(100 * MIB, [frame("temporary")]))
        allocator.malloc(10 * MIB, keeper)
    for address in free_after:
        allocator.free(address)
    return allocator, keeper


def test_out_of_memory_in_pieces(tmp_path: Path) -> None:
    allocator, _ = fragmented()
    state = allocator._segment_infos()
    with pytest.raises(OutOfMemory):
        allocator.malloc(400 * MIB, [frame("attention", 88)])
    run = opened(allocator.snapshot(), tmp_path)
    (oom,) = table(run, "ooms")
    assert oom["cause"] == "fragmented"
    assert oom["wanted_bytes"] == 400 * MIB
    assert oom["free_bytes"] == sum(free_runs(state))
    assert oom["largest_run_bytes"] == max(free_runs(state))
    assert oom["device_free_bytes"] == allocator.device_free()
    assert oom["reserved_bytes"] == allocator.reserved()
    assert oom["where"].startswith("train.py:88 attention")
    # 400 MiB in one piece: four pieces of 100 MiB with three blocks between them, or three with two and their ends
    assert (oom["to_free_bytes"], oom["to_free_blocks"]) == cheapest(state, 400 * MIB)
    assert oom["to_free_where"].startswith("train.py:7 put < train.py:3 cache")
    blockers = [row for row in table(run, "blockers") if row["moment"] == "oom"]
    assert blockers[0]["free_bytes"] == 200 * MIB
    assert (blockers[0]["live_bytes"], blockers[0]["run_bytes"]) == (10 * MIB, 210 * MIB)
    assert blockers[0]["where"].startswith("train.py:7 put")
    held = {row["where"].split(" < ")[0]: row["bytes"] for row in table(run, "oom_stacks")}
    assert held == {"train.py:7 put": 180 * MIB}
    (finding,) = (one for one in run.snapshot().findings if one["id"] == "out_of_memory")
    assert "in pieces" in finding["sentence"]
    assert "expandable_segments" in finding["next"]


def cheapest(infos: Rows, wanted: int) -> tuple[int, int]:
    """By looking at every stretch of blocks: the fewest live bytes, and how many blocks they are."""
    best = (1 << 62, 0)
    for info in infos:
        blocks = info["blocks"]
        for first in range(len(blocks)):
            length = live = count = 0
            for block in blocks[first:]:
                length += block["size"]
                live += block["size"] if block["state"] != "inactive" else 0
                count += block["state"] != "inactive"
                if length >= wanted:
                    best = min(best, (live, count))
                    break
    return best


def test_out_of_memory_because_all_is_in_use(tmp_path: Path) -> None:
    allocator = Allocator(GIB)
    allocator.malloc(900 * MIB, [frame("weights", 2)])
    with pytest.raises(OutOfMemory):
        allocator.malloc(200 * MIB, [frame("batch", 5)])
    run = opened(allocator.snapshot(), tmp_path)
    (oom,) = table(run, "ooms")
    assert oom["cause"] == "full"
    assert oom["held_bytes"] == 900 * MIB
    assert scalars(run)["oom_count"] == 1


def test_out_of_memory_because_more_was_asked_for_than_there_is(tmp_path: Path) -> None:
    """Without the size of the device, that is what torch held and the driver still had."""
    allocator = Allocator(GIB)
    allocator.malloc(100 * MIB, [frame("weights", 2)])
    with pytest.raises(OutOfMemory):
        allocator.malloc(500 * GIB, [frame("scores", 5)])
    run = opened(allocator.snapshot(), tmp_path)
    (oom,) = table(run, "ooms")
    assert oom["cause"] == "more than the device"
    (finding,) = [one for one in run.snapshot().findings if one["id"] == "out_of_memory"]
    assert "more was asked for" in finding["sentence"]
    assert finding["confidence"] == "medium"
    assert finding["next"].startswith("Look at the sizes")


def test_out_of_memory_while_another_stream_has_it(tmp_path: Path) -> None:
    allocator = Allocator(GIB)
    allocator.stream = 7
    kept = allocator.malloc(700 * MIB)
    allocator.malloc(20 * MIB)
    allocator.free(kept)
    small = allocator.malloc(400 * MIB)  # splits the segment, so that it cannot be given back
    allocator.stream = 0
    with pytest.raises(OutOfMemory):
        allocator.malloc(500 * MIB)
    allocator.stream = 7
    allocator.free(small)
    run = opened(allocator.snapshot(), tmp_path)
    (oom,) = table(run, "ooms")
    assert oom["cause"] == "free elsewhere"
    assert oom["free_bytes"] == 0
    assert oom["free_elsewhere_bytes"] >= 300 * MIB


def test_out_of_memory_because_of_others(tmp_path: Path) -> None:
    """The size of the device is in the trace of the same rank."""
    allocator = Allocator(16 * GIB, outside=10 * GIB)
    allocator.malloc(5 * GIB)
    with pytest.raises(OutOfMemory):
        allocator.malloc(2 * GIB)
    dump(allocator.snapshot(), tmp_path / "rank0_snapshot.pickle")
    event = {"ph": "X", "cat": "cpu_op", "name": "aten::mm", "pid": 1, "tid": 1, "ts": 1, "dur": 2}
    (tmp_path / "rank0.json").write_text(
        json.dumps({"deviceProperties": [{"id": 0, "totalGlobalMem": 16 * GIB}], "traceEvents": [event]})
    )
    run = stepscope.open(tmp_path, cache=False)
    (oom,) = table(run, "ooms")
    assert (oom["cause"], oom["outside_bytes"]) == ("held outside of torch", 10 * GIB)
    assert run.rank_numbers == [0]
    assert len(run.files) == 2


def test_private_pools_streams_and_settings(tmp_path: Path) -> None:
    allocator = Allocator(expandable=True)
    allocator.malloc(30 * MIB, [frame("weights")])
    allocator.pool, allocator.stream = (0, 4), 9
    allocator.malloc(3 * MIB, [frame("graph")])
    run = opened(allocator.snapshot(), tmp_path)
    pools = {(row["pool"], row["stream"]): row for row in table(run, "segments")}
    assert set(pools) == {("default", "0"), ("private 0:4", "9")}
    assert pools["default", "0"]["reserved_bytes"] == 40 * MIB
    assert pools["private 0:4", "9"]["held_bytes"] == 3 * MIB
    assert all(row["expandable"] for row in pools.values())
    classes = {row["class"]: row["bytes"] for row in table(run, "peak_classes")}
    assert classes["private pool 0:4"] == 3 * MIB
    settings = {row["setting"]: row["value"] for row in table(run, "settings")}
    assert settings["expandable_segments"] == "True"
    assert settings["PYTORCH_CUDA_ALLOC_CONF"] == "expandable_segments:True"


def test_the_rank_that_stands_out(tmp_path: Path) -> None:
    for rank in range(8):
        allocator = Allocator()
        for _ in range(10):
            allocator.malloc(100 * MIB + rank * 512, [frame("layer", 4)])
        if rank == 5:
            for _ in range(3):
                allocator.malloc(50 * MIB, [frame("hoard", 66)])
        dump(allocator.snapshot(), tmp_path / f"rank-{rank}_snapshot.pickle")
    run = stepscope.open(tmp_path, cache=False)
    ranks = table(run, "ranks")
    assert [row["rank"] for row in ranks] == list(range(8))
    assert [row["rank"] for row in ranks if row["stands_out"]] == [5]
    first = next(row for row in table(run, "rank_differences") if row["by"] == "stack")
    assert first["what"].startswith("train.py:66 hoard")
    assert (first["more_bytes"], first["usual_bytes"]) == (150 * MIB, 0)
    (finding,) = (one for one in run.snapshot().findings if one["id"] == "memory_outlier")
    assert finding["where"]["rank"] == 5


def test_the_difference_of_two_snapshots(tmp_path: Path, stepscope: Path) -> None:
    before, after = Allocator(), Allocator()
    for allocator, line in ((before, 10), (after, 12)):
        allocator.malloc(64 * MIB, [frame("same", 3), frame("main", 1)])
        allocator.malloc(32 * MIB if line == 10 else 48 * MIB, [frame("moved", line), frame("main", 1)])
    before.malloc(5 * MIB, [frame("gone", 7)])
    after.malloc(9 * MIB, [frame("new", 8)])
    paths = [dump(one.snapshot(), tmp_path / name) for one, name in ((before, "a.pickle"), (after, "b.pickle"))]
    report = json.loads(cli(stepscope, "memory", paths[0], "--diff", paths[1], "--json"))
    rows = {row["where"].split(" ")[1]: row for row in rows_of(report, "memory_diff", "stacks_changed")}
    assert {name: (row["change_bytes"], row["pairing"]) for name, row in rows.items()} == {
        "moved": (16 * MIB, "lines moved"),
        "gone": (-5 * MIB, "only in A"),
        "new": (9 * MIB, "only in B"),
    }
    assert report["answers"]["memory_diff"]["scalars"]["change_bytes"]["value"] == 20 * MIB


def test_damage_is_told_and_nothing_is_made_up(tmp_path: Path) -> None:
    allocator = Allocator()
    busy(allocator, 400)
    snapshot = allocator.snapshot()
    (events,) = snapshot["device_traces"]
    again = next(
        event for i, event in enumerate(events) if event["action"] == "alloc" and made(events[:i], event["addr"]) == 1
    )
    whole = scalars(opened(snapshot, tmp_path))["peak_bytes"]
    freed = [event for event in events if event.get("addr") == again["addr"] and event["action"].startswith("free")][:2]
    snapshot["device_traces"] = [[event for event in events if event not in freed]]
    run = opened(snapshot, tmp_path)
    assert [(issue["code"], issue["count"]) for issue in run.issues] == [("snapshot_lost_frees", 1)]
    assert scalars(run)["peak_bytes"] >= whole
    last = [event for event in events if event["action"] == "alloc"][-1]
    snapshot["device_traces"] = [[event for event in events if event is not last]]
    codes = {issue["code"] for issue in opened(snapshot, tmp_path).issues}
    assert codes <= {"snapshot_lost_allocations"}


def alloc_event(size: int = 30 * MIB) -> dict[str, Any]:
    return {"action": "alloc", "addr": 1 << 40, "size": size, "stream": 0, "time_us": 7, "frames": [frame("main")]}


def test_segments_and_events_that_do_not_fit_together(tmp_path: Path) -> None:
    allocator = Allocator()
    allocator.malloc(2 * MIB)
    snapshot = allocator.snapshot()
    held = allocator.snapshot()["segments"]
    event = alloc_event(sum(segment["total_size"] for segment in held) + MIB)
    gone = event | {"action": "free_completed"}
    run = opened(snapshot | {"device_traces": [[*snapshot["device_traces"][0], event, gone]]}, tmp_path)
    assert scalars(run)["peak_bytes"] >= event["size"]
    assert scalars(run)["peak_reserved_bytes"] is None
    rows = {row["moment"]: row for row in table(run, "fragmentation")}
    assert [rows["peak"][name] for name in ("reserved_bytes", "free_bytes", "fragmentation", "runs")] == [None] * 4
    assert rows["end"]["reserved_bytes"] == sum(segment["total_size"] for segment in held)
    assert not any(name.startswith("reserved") for name in run.snapshot().series)
    assert any("do not fit together" in note for note in run.snapshot().notes)
    whole = opened(snapshot, tmp_path)
    assert any(name.startswith("reserved") for name in whole.snapshot().series)
    assert not any("do not fit together" in note for note in whole.snapshot().notes)


def test_what_was_not_recorded_is_unknown(tmp_path: Path) -> None:
    allocator = Allocator()
    allocator.malloc(2 * MIB)
    run = opened(allocator.snapshot() | {"device_traces": [[]]}, tmp_path)
    assert scalars(run)["static_bytes"] == 2 * MIB
    for name in ("peak_bytes", "peak_block_bytes", "peak_reserved_bytes"):
        assert scalars(run)[name] is None
    assert table(run, "devices")[0]["peak_bytes"] is None
    assert any("the peak is unknown" in note for note in run.snapshot().notes)
    empty = opened({"segments": [], "device_traces": []}, tmp_path)
    assert any("Nothing was recorded" in note and "_record_memory_history" in note for note in empty.snapshot().notes)


def made(events: Rows, address: int) -> int:
    return sum(event["action"] == "alloc" and event["addr"] == address for event in events)


def test_the_other_answers_stay_well(tmp_path: Path) -> None:
    run = opened(Allocator().snapshot() | {"device_traces": [[]]}, tmp_path)
    report = run.report()
    assert not report["failed"]
    assert all(answer["notes"] or answer["scalars"] or answer["tables"] for answer in report["answers"].values())


def test_refusals(tmp_path: Path, stepscope: Path) -> None:
    class Harmful:
        def __reduce__(self) -> Any:
            return (print, ("run",))

    path = dump({"segments": [], "device_traces": [[Harmful()]]}, tmp_path / "harmful.pickle")
    message = cli(stepscope, "memory", path, code=1)
    assert "STACK_GLOBAL" in message
    assert "[byte " in message or "byte" in message
    assert "run" not in message.split("nothing was run")[0].split("harmful")[1].split("opcode")[0]
    plain = dump({"loss": [1, 2]}, tmp_path / "plain.pickle")
    assert "pickle" in cli(stepscope, "memory", plain, code=1)
    whole = dump(fragmented()[0].snapshot(), tmp_path / "whole.pickle")
    cut = tmp_path / "cut.pickle"
    cut.write_bytes(whole.read_bytes()[:2000])
    assert "cut" in cli(stepscope, "memory", cut, code=1)
    assert "no event 999" in cli(stepscope, "memory", whole, "--at", 999, code=2)
    assert "never ran out" in cli(stepscope, "memory", whole, "--oom", 1, code=2)
    oom = {"action": "oom", "device_free": MIB, "size": GIB, "stream": 0, "time_us": 8, "frames": []}
    once = dump({"segments": [], "device_traces": [[alloc_event(), oom]]}, tmp_path / "once.pickle")
    assert "fewer than 2 times" in (told := cli(stepscope, "memory", once, "--oom", 2, code=2))
    assert "It did once: --oom 1" in told
    assert "neither 'segments' nor 'device_traces'" in cli(stepscope, "memory", plain, code=1)
    empty = dump({"segments": [], "device_traces": []}, tmp_path / "empty.pickle")
    assert "nothing was recorded" in cli(stepscope, "memory", empty, "--peak", code=1)
    timeline = tmp_path / "timeline.raw.json"
    timeline.write_text(json.dumps([[1, 1, 4096, 2], [2, 2, 4096, 2]]))
    assert "memory timeline: bytes by category" in cli(stepscope, "memory", timeline, "--at", 5, code=1)
    assert "holds no memory snapshot" in cli(stepscope, "memory", "tests/traces/tiny_cpu.json", "--end", code=1)
    cli(stepscope, "convert", whole, "--to", "perfetto", "-o", tmp_path / "x", code=1)
    cli(stepscope, "memory", whole, "-o", whole, code=2)


def test_a_run_folder(tmp_path: Path) -> None:
    """Of what --memory-history leaves, the newest snapshot of a rank is opened, and where memory ran out."""
    folder = tmp_path / "run"
    (folder / "memory").mkdir(parents=True)
    (folder / "telemetry").mkdir()
    (folder / "run.json").write_text('{"schema_version": 1}')
    allocator = fragmented()[0]
    for step in (1, 100, 200):
        allocator.malloc(MIB, [frame("log", step)])
        dump(allocator.snapshot(), folder / "memory" / f"rank-3_step-{step}_snapshot.pickle")
    with pytest.raises(OutOfMemory):
        allocator.malloc(GIB)
    dump(allocator.snapshot(), folder / "memory" / "oom_rank-3_snapshot.pickle")
    run = stepscope.open(folder, cache=False)
    assert sorted(Path(file["path"]).name for file in run.files) == [
        "oom_rank-3_snapshot.pickle",
        "rank-3_step-200_snapshot.pickle",
    ]
    assert {file["rank"] for file in run.files} == {3}
    (issue,) = (issue for issue in run.issues if issue["code"] == "other_snapshots")
    assert issue["count"] == 2


def test_the_page_and_csv(tmp_path: Path, stepscope: Path) -> None:
    path = dump(fragmented()[0].snapshot(), tmp_path / "snapshot.pickle")
    text = cli(stepscope, "memory", path, "--csv")
    assert "# snapshot.peak_classes" in text
    assert "fill" in cli(stepscope, "memory", path, "--stacks")
    cli(stepscope, "memory", path, "--html", tmp_path / "memory.html")
    assert b"snapshot" in (tmp_path / "memory.html").read_bytes()
    report = json.loads(cli(stepscope, "memory", path, "--json"))
    series = report["answers"]["snapshot"]["series"]["held_snapshot0_cuda:0"]
    assert len(series["event"]) == len(series["t_ns"]) == len(series["v"])
    assert max(series["v"]) == replayed(fragmented()[0].snapshot()).peak[0]
