"""Small Kineto files made by hand, for the tests of the Python package."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from jobs import Place
from viewer import Viewer

Event = dict[str, Any]
WriteTrace = Callable[..., Path]


def op(name: str, ts: float, dur: float, **args: Any) -> Event:
    return {"ph": "X", "cat": "cpu_op", "name": name, "pid": 7, "tid": 8, "ts": ts, "dur": dur, "args": args}


def kernel(name: str, ts: float, dur: float, correlation: int) -> Event:
    launch = {"ph": "X", "cat": "cuda_runtime", "name": "cudaLaunchKernel", "pid": 7, "tid": 8, "ts": ts - 5, "dur": 2}
    args = {"device": 0, "stream": 7, "correlation": correlation, "grid": [1, 1, 1], "block": [32, 1, 1]}
    work = {"ph": "X", "cat": "kernel", "name": name, "pid": 0, "tid": 7, "ts": ts, "dur": dur, "args": args}
    return {"both": [{**launch, "args": {"correlation": correlation}}, work]}


def default_events() -> list[Event]:
    step = {"ph": "X", "cat": "user_annotation", "name": "ProfilerStep#1", "pid": 7, "tid": 8, "ts": 0, "dur": 200}
    return [
        step,
        op("aten::mm", 10, 20.125, **{"External id": 1, "Input Dims": [[8, 8], [8, 8]]}),
        op("aten::empty", 12, 1, **{"External id": 2}),
        kernel("gemm", 30, 50, 11),
        kernel("übergröße", 90, 5.5, 12),
    ]


@pytest.fixture
def view(place: Place) -> Iterator[Callable[..., Viewer]]:
    viewers: list[Viewer] = []

    def start(*arguments: str) -> Viewer:
        viewers.append(Viewer(place.stepscope, *arguments))
        return viewers[-1]

    yield start
    for viewer in viewers:
        if viewer.process.poll() is None:
            viewer.process.kill()
        viewer.process.wait()


@pytest.fixture(scope="module")
def one_thread() -> Iterator[None]:
    """Several such processes, with a thread for each core, wait for one another in small operators."""
    import torch

    before = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(before)


@pytest.fixture
def write_trace(tmp_path: Path) -> WriteTrace:
    """write_trace(name, rank, events): a file in the test's folder; events as op() and kernel() make them."""

    def write(name: str = "trace.json", rank: int | None = None, events: list[Event] | None = None) -> Path:
        flat: list[Event] = []
        for event in default_events() if events is None else events:
            flat.extend(event.get("both", [event]))
        document: dict[str, Any] = {"schemaVersion": 1, "traceEvents": flat}
        if rank is not None:
            document["distributedInfo"] = {"backend": "nccl", "rank": rank, "world_size": 2}
        path = tmp_path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(json.dumps(document, ensure_ascii=False), encoding="utf-8")
        return path

    return write


@pytest.fixture
def place(stepscope: Path, tmp_path: Path) -> Place:
    """A folder to run jobs in."""
    return Place(stepscope, tmp_path)
