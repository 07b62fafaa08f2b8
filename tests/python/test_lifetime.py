"""Memory comes back, streams outlive runs, and threads read beside each other."""

from __future__ import annotations

import gc
import os
import subprocess
import sys
import threading
from collections.abc import Callable
from pathlib import Path

import pytest

import stepscope
from stepscope._native import library

WriteTrace = Callable[..., Path]
PACKAGE = Path(__file__).resolve().parents[2] / "python"
PAGE_BYTES = os.sysconf("SC_PAGE_SIZE")


# Run in a process of its own: what other tests left in malloc would be measured too. malloc_trim gives back what malloc
# keeps of freed memory, which grows with the threads that ran.
REPEAT = """
import ctypes, gc, sys
from pathlib import Path
sys.path.insert(0, sys.argv[1])
import stepscope
from stepscope._native import library

def resident_bytes():
    gc.collect()
    ctypes.CDLL(None).malloc_trim(0)
    return int(Path("/proc/self/statm").read_text().split()[1]) * int(sys.argv[3])

def repeat(times):
    for _ in range(times):
        run = stepscope.open(sys.argv[2], cache=False)
        run.table("slices").to_pylist(10)
        run.table("slices").__arrow_c_stream__()
        run.report("overview")
    return resident_bytes()

before = repeat(20)
print(repeat(60) - before, library().alive())
"""


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
    command = [sys.executable, "-c", REPEAT, str(PACKAGE), str(path), str(PAGE_BYTES)]
    said = subprocess.run(command, capture_output=True, text=True, check=True).stdout.split()
    grown, alive = int(said[0]), int(said[1])
    # One opening holds about 2 MB of columns and names: 120 MB if they leaked; malloc's own noise is a few MB.
    assert grown < 16 << 20, f"{grown} bytes more after 60 openings"
    assert alive == 0


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
