"""What worker processes of a data loader are busy with: which function of the program makes their batches slow.

torch's profiler sees its own process only. A worker that was forked off has this module and some memory in common with
it: it measures its batches, profiles a few of its first ones with Python's own profiler, and leaves the result there.
Workers that were started anew (spawn) share no memory, and nothing is known of them.
"""

from __future__ import annotations

import functools
import json
import mmap
import os
import struct
import sys
import time

from . import program_code

try:
    import _lsprof  # what is behind cProfile
except ImportError:  # another Python
    _lsprof = None  # type: ignore[assignment]

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

FIRST = 1  # batch that is profiled: the one before it has what happens once
MOST_BATCHES, MOST_S = 4, 0.5  # that are profiled: Python is slower meanwhile
SLOTS, SLOT_BYTES = 64, 2048  # workers beyond these take the slots of others
MOST_FUNCTIONS = 8  # that a worker tells of
# Batches that were made as usual, ns that they took; ns in which batches were made, of these on a core, in all; length
# of what follows.
_HEAD = struct.Struct("<QQQQQI")

_shared: mmap.mmap | None = None


def watched(worker_loop: Callable[..., Any]) -> Callable[..., Any]:
    """In place of torch's function that a worker process runs."""
    global _shared
    if _shared is None:
        _shared = mmap.mmap(-1, SLOTS * SLOT_BYTES)
    maker = os.getpid()

    @functools.wraps(worker_loop)
    def loop(*args: Any, **kwargs: Any) -> Any:
        try:
            if os.getpid() != maker and os.getppid() == maker:
                _watch_batches(os.getpid() % SLOTS)
        except Exception:  # without it only nothing is known of this worker
            pass
        return worker_loop(*args, **kwargs)

    return loop


def busy_with() -> dict[str, str]:
    """Notes beside a recording, name → JSON: the function of the program that takes most of the time in which workers
    make batches, its first line, how much of that time, how much of it they have a core, how long a batch takes, and
    how much of all time they make batches. Empty: unknown."""
    usual = usual_ns = made_ns = cpu_ns = all_ns = 0
    functions: dict[tuple[str, str, int], float] = {}
    profiled_s = 0.0
    for count, took, made, cpu, lived, told in _told():
        usual, usual_ns = usual + count, usual_ns + took
        made_ns, cpu_ns, all_ns = made_ns + made, cpu_ns + cpu, all_ns + lived
        profiled_s += told.get("seconds", 0.0)
        for file, function, line, seconds in told.get("at", []):
            place = (file, function, line)
            functions[place] = functions.get(place, 0.0) + seconds
    if not all_ns:
        return {}
    notes = {"stepscope_loader_busy_permille": str(round(1000 * made_ns / all_ns))}
    if usual:
        notes["stepscope_loader_batch_ns"] = str(round(usual_ns / usual))
    if made_ns:
        notes["stepscope_loader_cpu_permille"] = str(min(1000, round(1000 * cpu_ns / made_ns)))
    if functions and profiled_s > 0:
        (file, function, line), seconds = max(functions.items(), key=lambda one: one[1])
        notes["stepscope_loader_file"] = json.dumps(program_code.shown(file))
        notes["stepscope_loader_function"] = json.dumps(function)
        notes["stepscope_loader_line"] = str(line)
        notes["stepscope_loader_permille"] = str(min(1000, round(1000 * seconds / profiled_s)))
    return notes


def _told() -> list[tuple[int, int, int, int, int, dict[str, Any]]]:
    told = []
    for start in range(0, SLOTS * SLOT_BYTES if _shared is not None else 0, SLOT_BYTES):
        assert _shared is not None
        usual, usual_ns, made, cpu, lived, length = _HEAD.unpack_from(_shared, start)
        if lived == 0 or length > SLOT_BYTES - _HEAD.size:
            continue
        text = _shared[start + _HEAD.size : start + _HEAD.size + length]
        try:
            told.append((usual, usual_ns, made, cpu, lived, json.loads(text) if text else {}))
        except ValueError:  # it is being written
            continue
    return told


# In the worker.
def _watch_batches(slot: int) -> None:
    fetch = sys.modules.get("torch.utils.data._utils.fetch")
    own = program_code.own_files()
    for name in ("_MapDatasetFetcher", "_IterableDatasetFetcher"):
        fetcher = getattr(fetch, name, None)
        if fetcher is not None:
            fetcher.fetch = _Batches(slot, own).timed(fetcher.fetch)


class _Batches:
    def __init__(self, slot: int, own: dict[str, str]) -> None:
        self.slot, self.own = slot, own
        self.count, self.made_ns, self.cpu_ns, self.profiled_s = 0, 0, 0, 0.0
        self.usual, self.usual_ns = 0, 0  # neither the first, which has what happens once, nor those that are profiled
        self.began = time.perf_counter_ns()
        self.text = b""
        self.profiler: Any = None

    def timed(self, fetch: Callable[..., Any]) -> Callable[..., Any]:
        @functools.wraps(fetch)
        def timed_fetch(*args: Any, **kwargs: Any) -> Any:
            profiles = self.begins()
            start, on_core = time.perf_counter_ns(), time.process_time_ns()
            try:
                return fetch(*args, **kwargs)
            finally:
                self.cpu_ns += time.process_time_ns() - on_core
                self.ends(time.perf_counter_ns() - start, profiles)

        return timed_fetch

    def begins(self) -> bool:
        wanted = FIRST <= self.count < FIRST + MOST_BATCHES and self.profiled_s < MOST_S
        if _lsprof is None or not wanted or sys.getprofile() is not None:
            return False
        try:
            if self.profiler is None:
                self.profiler = _lsprof.Profiler()
            self.profiler.enable()
        except Exception:  # another one profiles
            return False
        return True

    def ends(self, ns: int, profiled: bool) -> None:
        try:
            self.count += 1
            self.made_ns += ns
            if self.count > 1 and not profiled:
                self.usual, self.usual_ns = self.usual + 1, self.usual_ns + ns
            if profiled:
                self.profiler.disable()
                self.profiled_s += ns / 1e9
                self.text = self.told()
            self.tell()
        except Exception:  # the batch has nothing to do with it
            return

    def told(self) -> bytes:
        places: dict[tuple[str, str, int], float] = {}
        for entry in self.profiler.getstats():
            place = self.place(entry.code)
            if place is None:
                continue
            # With all that it calls of others: a function of a library is slow since the program asks so much of it.
            others = sum(call.totaltime for call in entry.calls or () if self.place(call.code) is None)
            places[place] = places.get(place, 0.0) + entry.inlinetime + others
        most = sorted(places.items(), key=lambda one: -one[1])
        for few in range(MOST_FUNCTIONS, -1, -1):  # long paths leave room for fewer
            at = [[*place, seconds] for place, seconds in most[:few]]
            text = json.dumps({"seconds": self.profiled_s, "at": at}).encode()
            if len(text) <= SLOT_BYTES - _HEAD.size:
                return text
        return b""

    def place(self, code: Any) -> tuple[str, str, int] | None:
        """Of a function of the program; None: another's, or one without a source."""
        file = getattr(code, "co_filename", None)
        if file is None or os.path.abspath(file) not in self.own:
            return None
        return self.own[os.path.abspath(file)], code.co_name, code.co_firstlineno

    def tell(self) -> None:
        assert _shared is not None
        start, lived = self.slot * SLOT_BYTES, time.perf_counter_ns() - self.began
        _shared[start + _HEAD.size : start + _HEAD.size + len(self.text)] = self.text
        _HEAD.pack_into(_shared, start, self.usual, self.usual_ns, self.made_ns, self.cpu_ns, lived, len(self.text))
