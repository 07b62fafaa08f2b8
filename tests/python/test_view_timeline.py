"""The timeline of `stepscope view`: its lanes, tiles, links, layers, and the predicted run beside the recorded one."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

from conftest import kernel, op
from viewer import Viewer, read_tile

WriteTrace = Callable[..., Path]


def test_the_timeline_of_two_ranks(view: Callable[..., Viewer], write_trace: WriteTrace) -> None:
    events = [op("aten::linear", 100, 50), op("aten::addmm", 110, 20), kernel("gemm", 130, 40, 1)]
    paths = [str(write_trace(f"rank{rank}.json", rank, events)) for rank in range(2)]
    viewer = view(*paths)
    scene = viewer.json("api/timeline?run=r1")
    assert [rank["rank"] for rank in scene["ranks"]] == [0, 1]
    assert [lane["kind"] for lane in scene["lanes"]] == ["thread", "stream"] * 2
    assert scene["end"] == 70_000
    assert [(rank["first_ns"], rank["first"], rank["rate"]) for rank in scene["ranks"]] == [("100000", 0, 1)] * 2
    status, body = viewer.get(f"api/tiles?run=r1&from=0&to={scene['end']}&px=1000&lanes=0,1,2,3")
    assert status == 200
    tile = read_tile(body)
    assert [count for _, count in tile["lanes"]] == [3, 1, 3, 1]  # the launch is a slice of the thread
    named = [tile["names"].get(str(name)) for name in tile["name"]]
    assert named[:2] == ["aten::linear", "aten::addmm"] and tile["row"][:2] == [0, 1]
    assert tile["start"][0] == 0 and tile["duration"][0] == 50_000

    where = viewer.json("api/search?run=r1&q=GEMM")
    assert where["total"] == 2
    found = where["found"][1]
    assert (found["rank"], found["name"]) == (1, "gemm")
    detail = viewer.json(f"api/slice?run=r1&rank=1&slice={found['slice']}")
    assert detail["links"][0]["kind"] == "launch" and detail["links"][0]["name"] == "cudaLaunchKernel"
    assert json.loads(detail["args"])["args"]["stream"] == 7
    sums = viewer.json("api/selection?run=r1&from=0&to=30000&lanes=0")["rows"]
    assert {row["name"]: (row["count"], row["total_ns"], row["self_ns"]) for row in sums}["aten::linear"] == (
        1,
        30_000,
        10_000,
    )


def link_kinds(viewer: Viewer, rank: int, name: str) -> list[tuple[str, int, str]]:
    found = viewer.json(f"api/search?run=r1&q={name}")["found"]
    slices = [one["slice"] for one in found if one["rank"] == rank and one["name"] == name]
    detail = viewer.json(f"api/slice?run=r1&rank={rank}&slice={slices[0]}")
    assert detail["links_total"] == len(detail["links"])
    return [(link["kind"], link["rank"], link["name"]) for link in detail["links"]]


def test_links_over_passes_ranks_and_arrows(view: Callable[..., Viewer], write_trace: WriteTrace) -> None:
    comm = {"Collective name": "allreduce", "In msg nelems": 8, "Out msg nelems": 8, "Group size": 2, "dtype": "Float"}

    def arrow(phase: str, ts: float, tid: int) -> dict[str, Any]:
        return {"ph": phase, "cat": "async", "id": 3, "name": "hand over", "pid": 7, "tid": tid, "ts": ts, "bp": "e"}

    def events(rank: int) -> list[dict[str, Any]]:
        work = kernel("ncclDevKernel_AllReduce", 300 + rank, 40 - rank, 2)
        work["both"][1]["args"].update(comm)
        return [
            op("aten::mm", 100, 20, **{"Sequence number": 5, "Fwd thread id": 0}),
            {**op("MmBackward0", 200, 20, **{"Sequence number": 5, "Fwd thread id": 1}), "tid": 9},
            work,
            op("sender", 400, 10),
            {**op("receiver", 420, 10), "tid": 9},
            arrow("s", 405, 8),
            arrow("f", 421, 9),
        ]

    viewer = view(*(str(write_trace(f"rank{rank}.json", rank, events(rank))) for rank in range(2)))
    viewer.json("api/timeline?run=r1")
    assert link_kinds(viewer, 0, "aten::mm") == [("backward", 0, "MmBackward0")]
    assert link_kinds(viewer, 0, "MmBackward0") == [("forward", 0, "aten::mm")]
    assert link_kinds(viewer, 1, "ncclDevKernel_AllReduce") == [
        ("launch", 1, "cudaLaunchKernel"),
        ("collective", 0, "ncclDevKernel_AllReduce"),
    ]
    assert link_kinds(viewer, 0, "sender") == [("arrow_to", 0, "receiver")]
    assert link_kinds(viewer, 0, "receiver") == [("arrow_from", 0, "sender")]


def test_a_kernel_tells_the_code_that_launched_it(view: Callable[..., Viewer], write_trace: WriteTrace) -> None:
    def frame(name: str, ts: float, dur: float) -> dict[str, Any]:
        return {"ph": "X", "cat": "python_function", "name": name, "pid": 7, "tid": 8, "ts": ts, "dur": dur}

    hostile = "<img src=x>.py(2): f"
    events = [frame("a.py(1): main", 0, 90), frame(hostile, 10, 80), kernel("gemm", 30, 9, 1)]
    viewer = view(str(write_trace(events=events)))
    viewer.json("api/timeline?run=r1")
    (found,) = viewer.json("api/search?run=r1&q=gemm")["found"]
    stack = viewer.json(f"api/slice?run=r1&rank=0&slice={found['slice']}")["stack"]
    assert stack == {"of": "cudaLaunchKernel", "own": False, "frames": [hostile, "a.py(1): main"]}
    none = view(str(write_trace("other.json", events=[op("aten::mm", 0, 10)])))
    none.json("api/timeline?run=r1")
    assert none.json("api/slice?run=r1&rank=0&slice=0")["stack"]["frames"] == []


def test_the_critical_path_and_phases_in_view(view: Callable[..., Viewer], write_trace: WriteTrace) -> None:
    def mark(name: str, ts: float, dur: float) -> dict[str, Any]:
        return {**op(name, ts, dur), "cat": "user_annotation"}

    events = [mark("ProfilerStep#1", 0, 200), op("aten::mm", 10, 20), kernel("gemm", 50, 100, 1)]
    events += [mark("Optimizer.step#SGD.step", 160, 30)]
    viewer = view(str(write_trace(events=events)))
    scene = viewer.json("api/timeline?run=r1")
    path = viewer.json("api/path?run=r1&from=0&to=200000&px=1000&ranks=0,7")
    (rank,) = path["ranks"]
    assert rank["rank"] == 0 and rank["of"] == "steps"
    columns = ("start", "end", "lane", "row", "slice", "count", "class", "evidence")
    assert len({len(rank[column]) for column in columns}) == 1
    assert len(path["classes"]) == len(path["class_meanings"]) > max(rank["class"])
    # at every instant of the step something is on it
    assert rank["start"][0] == 0 and rank["end"][-1] == 200_000 and rank["start"][1:] == rank["end"][:-1]
    assert set(rank["lane"]) <= {lane["id"] for lane in scene["lanes"]}
    classes = {path["classes"][one] for one in rank["class"]}
    assert "host_op" in classes or "compute" in classes
    near = viewer.json("api/path?run=r1&from=60000&to=61000&px=1000&ranks=0")["ranks"][0]
    assert len(near["start"]) == 1
    assert viewer.json("api/path?run=r1&from=0&to=200000&px=1&ranks=0")["ranks"][0]["start"]
    phases = viewer.json("api/phases?run=r1&from=0&to=200000&px=1000&ranks=0")
    (strip,) = phases["ranks"]
    named = [phases["phases"][one] for one in strip["phase"]]
    assert named == ["optimizer"] and (strip["start"], strip["end"]) == ([160_000], [190_000])
    assert viewer.json("api/phases?run=r1&from=0&to=200000&px=1000&ranks=")["ranks"] == []


def test_steps_and_memory_are_those_of_the_report(view: Callable[..., Viewer], write_trace: WriteTrace) -> None:
    """The device lags behind the host, and the allocator of the host gives no totals."""

    def step(number: int, ts: float) -> list[dict[str, Any]]:
        mark = {**op(f"ProfilerStep#{number}", ts, 100), "cat": "user_annotation"}
        return [mark, op("aten::mm", ts + 5, 20), kernel("gemm", ts + 50, 150, number)]

    def memory(ts: float, byte_count: int) -> dict[str, Any]:
        args = {"Bytes": byte_count, "Addr": 4096, "Device Type": 0, "Device Id": -1}
        return {"ph": "i", "cat": "cpu_instant_event", "name": "[memory]", "pid": 7, "tid": 8, "ts": ts, "args": args}

    steps = [event for number in range(3) for event in step(number, 200 * number)]
    viewer = view(str(write_trace(events=[*steps, memory(20, 512), memory(30, -512)])))
    scene = viewer.json("api/timeline?run=r1")
    answers = viewer.json("api/answers?run=r1")["answers"]
    drawn = scene["ranks"][0]["steps"]
    table = answers["steps"]["tables"]["steps"]
    wall = [column["name"] for column in table["columns"]].index("wall_ns")
    assert [end - start for start, end in zip(drawn["start"], drawn["end"])] == [row[wall] for row in table["rows"]]
    assert drawn["host_start"] == [0, 200_000, 400_000]
    assert drawn["end"] == [200_000, 400_000, 600_000]
    devices = answers["memory"]["tables"]["devices"]
    peak = [column["name"] for column in devices["columns"]].index("peak_bytes")
    (lane,) = [one for one in scene["lanes"] if one["kind"] == "counter"]
    assert (lane["name"], lane["high"]) == ("CPU: bytes allocated", devices["rows"][0][peak])


def test_counters_are_lanes_with_gaps(view: Callable[..., Viewer], write_trace: WriteTrace) -> None:
    def counter(ts: float, value: float | None) -> dict[str, Any]:
        return {"ph": "C", "name": "queue", "pid": 7, "tid": 8, "ts": ts, "args": {"depth": value}}

    events = [op("aten::mm", 0, 1000), *(counter(100 + i, i % 5) for i in range(500)), counter(800, 70)]
    viewer = view(str(write_trace(events=events)))
    scene = viewer.json("api/timeline?run=r1")
    (lane,) = [one for one in scene["lanes"] if one["kind"] == "counter"]
    assert (lane["name"], lane["rank"], lane["low"], lane["high"]) == ("queue · depth", 0, 0, 70)
    assert scene["counters_left_out"] == 0
    asked = f"api/counters?run=r1&from=0&to=1000000&lanes={lane['id']},0,4000000"
    (coarse,) = viewer.json(f"{asked}&px=100")["lanes"]
    assert len(coarse["start"]) < 60 and coarse["start"][0] == 100_000
    assert (min(coarse["low"][:9]), max(coarse["high"][:9]), coarse["high"][-1]) == (0, 4, 70)
    (fine,) = viewer.json(f"api/counters?run=r1&from=0&to=2000000&px=8192&lanes={lane['id']}")["lanes"]
    assert fine["low"][-1] is None and fine["start"][-1] == 1_000_000  # nothing is known after the recording
    status, body = viewer.get(f"api/tiles?run=r1&from=0&to=5&px=10&lanes={lane['id']}")
    assert status == 200 and read_tile(body)["lanes"] == []


def test_a_slice_without_category_or_track_is_told(view: Callable[..., Viewer], write_trace: WriteTrace) -> None:
    bare = {"ph": "X", "name": "a", "ts": 1, "dur": 5, "pid": 1, "tid": 1}
    viewer = view(str(write_trace(events=[bare, {"ph": "X", "name": "b", "ts": 3, "dur": 1}])))
    viewer.json("api/timeline?run=r1")
    assert viewer.json("api/slice?run=r1&rank=0&slice=0")["category"] == ""
    viewer.get("api/slice?run=r1&rank=0&slice=1")
    assert viewer.get("api/runs")[0] == 200


def test_moments_far_apart_are_one_axis(view: Callable[..., Viewer], write_trace: WriteTrace) -> None:
    viewer = view(str(write_trace(events=[op("early", 0, 10), op("late", 1_700_000_000_000_000, 10)])))
    end = viewer.json("api/timeline?run=r1")["end"]
    status, body = viewer.get(f"api/tiles?run=r1&from=0&to={end}&px=1000&lanes=0")
    assert status == 200 and sum(read_tile(body)["count"]) == 2
    assert viewer.json(f"api/selection?run=r1&from=0&to={end}&lanes=all")["rows"]


def test_the_predicted_run_stands_beside_the_recorded(view: Callable[..., Viewer], write_trace: WriteTrace) -> None:
    viewer = view(*(str(write_trace(f"rank{rank}.json", rank)) for rank in range(2)))
    half = "&changes=scale%20kernel:gemm%3D0.5"
    scene = viewer.json(f"api/timeline?run=r1{half}")
    assert [(rank["rank"], rank["predicted"]) for rank in scene["ranks"]] == [
        (rank, predicted) for predicted in (False, True) for rank in range(2)
    ]
    order = [lane["rank"] for lane in scene["lanes"] if lane["slices"]]
    assert sorted(set(order), key=order.index) == [0, 2, 1, 3]
    found = viewer.json(f"api/search?run=r1&q=gemm{half}")["found"]
    assert {one["rank"]: one["duration"] for one in found} == {0: 50_000, 1: 50_000, 2: 25_000, 3: 25_000}
    paths = viewer.json(f"api/path?run=r1&from=0&to={scene['end']}&px=1000&ranks=all{half}")
    assert {one["rank"] for one in paths["ranks"]} == {0, 1}
    assert len(viewer.json("api/timeline?run=r1")["ranks"]) == 2
    status, body = viewer.get("api/timeline?run=r1&changes=faster")
    assert status == 400 and "is no change" in json.loads(body)["error"]["message"]


def test_steps_and_spans_of_the_recorder_are_predicted_too(
    view: Callable[..., Viewer], write_trace: WriteTrace
) -> None:
    def mark(name: str, ts: float, dur: float, **more: Any) -> dict[str, Any]:
        return {**op(name, ts, dur), "cat": "user_annotation", **more}

    events = [mark("ProfilerStep#1", 0, 1000), op("aten::mm", 10, 10), kernel("gemm", 20, 800, 1)]
    wait = {**op("cudaDeviceSynchronize", 100, 725, correlation=9), "cat": "cuda_runtime"}
    events += [wait, op("aten::add", 900, 20)]
    events += [mark("ProfilerStep#2", 1000, 500), op("aten::sub", 1100, 100)]
    events += [mark("PyTorch Profiler (0)", 0, 1500, cat="Trace", pid="Spans", tid="PyTorch Profiler")]
    viewer = view(str(write_trace(events=events)))
    scene = viewer.json("api/timeline?run=r1&changes=scale%20kernel:gemm%3D0.5")
    recorded, predicted = (rank["steps"] for rank in scene["ranks"])
    assert predicted["end"][1] <= recorded["end"][1] - 350_000
    assert predicted["end"][0] == predicted["start"][1]
    found = viewer.json("api/search?run=r1&q=PyTorch%20Profiler&changes=scale%20kernel:gemm%3D0.5")["found"]
    spans = {one["rank"]: one["duration"] for one in found}
    assert spans[0] == 1_500_000 and spans[0] - spans[1] == recorded["end"][1] - predicted["end"][1]
