"""Memory comes back, streams outlive runs, and threads read beside each other."""

from __future__ import annotations

import ctypes
import gc
import os
import threading
from collections.abc import Callable
from pathlib import Path

import pytest

import stepscope
from stepscope._native import library

WriteTrace = Callable[..., Path]
PAGE_BYTES = os.sysconf("SC_PAGE_SIZE")


def resident_bytes() -> int:
    """Memory in use; what malloc keeps of freed memory (it grows with the threads that ran) is given back first."""
    gc.collect()
    ctypes.CDLL(None).malloc_trim(0)
    return int(Path("/proc/self/statm").read_text().split()[1]) * PAGE_BYTES


def big_trace(write_trace: WriteTrace, rows: int = 20_000) -> Path:
    event = {"ph": "X", "cat": "cpu_op", "pid": 7, "tid": 8, "dur": 1}
    return write_trace(events=[{**event, "name": f"op {i}", "ts": 2 * i} for i in range(rows)])


def test_a_capsule_that_nobody_takes_is_released(write_trace: WriteTrace) -> None:
    run = stepscope.open(write_trace(), cache=False)
    before = library().alive()
    capsule = run.table("slices").__arrow_c_stream__()
    assert library().alive() == before + 1
    del capsule
    gc.collect()
    assert library().alive() == before


def test_what_a_taker_took_is_released_with_it(write_trace: WriteTrace) -> None:
    pyarrow = pytest.importorskip("pyarrow")
    run = stepscope.open(write_trace(), cache=False)
    before = library().alive()
    table = pyarrow.table(run.table("slices"))
    assert library().alive() > before
    del table
    gc.collect()
    assert library().alive() == before


def test_a_stream_outlives_its_run(write_trace: WriteTrace) -> None:
    pyarrow = pytest.importorskip("pyarrow")
    run = stepscope.open(big_trace(write_trace), cache=False)
    table = run.table("slices")
    reader = pyarrow.RecordBatchReader.from_stream(table)
    run.close()
    del run, table
    gc.collect()
    assert reader.read_all().column("start_ns").to_pylist() == [2000 * i for i in range(20_000)]


def test_opening_again_and_again_does_not_grow(write_trace: WriteTrace) -> None:
    path = big_trace(write_trace)

    def once() -> None:
        run = stepscope.open(path, cache=False)
        run.table("slices").to_pylist(10)
        run.table("slices").__arrow_c_stream__()
        run.report("overview")

    before_alive = library().alive()
    for _ in range(10):
        once()
    before = resident_bytes()
    for _ in range(40):
        once()
    grown = resident_bytes() - before
    # One open holds about 1 MB of columns and 1 MB of names; a leak of them would be 40 times that.
    assert grown < 8 << 20, f"{grown} bytes more after 40 openings"
    assert library().alive() == before_alive


def test_threads_read_one_run_beside_each_other(write_trace: WriteTrace) -> None:
    run = stepscope.open(big_trace(write_trace, 3_000), cache=False)
    wanted = run.table("slices").to_pylist()
    answer = run.answer("overview")
    failures: list[str] = []

    def read() -> None:
        for _ in range(5):
            if run.table("slices").to_pylist() != wanted:
                failures.append("another table")
            if run.answer("overview") != answer:
                failures.append("another answer")

    threads = [threading.Thread(target=read) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert failures == []


def test_closing_beside_a_call_does_not_cut_it_short(write_trace: WriteTrace) -> None:
    path = big_trace(write_trace, 3_000)
    outcomes: set[str] = set()

    def read(run: stepscope.Run) -> None:
        try:
            while True:
                assert len(run.table("slices").to_pylist(10)) == 10
        except stepscope.StepscopeError as closed:
            outcomes.add(closed.message)

    for _ in range(5):
        run = stepscope.open(path, cache=False)
        thread = threading.Thread(target=read, args=(run,))
        thread.start()
        run.close()
        thread.join()
    assert outcomes == {"this run was closed"}
