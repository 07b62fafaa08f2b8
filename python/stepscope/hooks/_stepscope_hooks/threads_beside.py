"""Other threads of Python in the process: one that computes holds the interpreter's lock, and the thread of the steps
waits for it behind each of its operators.

How long each had a core is what the kernel counts; where it was, what its frames show between the recorded steps.
"""

from __future__ import annotations

import os
import sys
import threading
import time

from . import program_code, waiting

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator
    from types import CodeType, FrameType
    from typing import Any

_OURS = "stepscope"  # how the names of our own threads begin
_DEEPEST = 40  # frames of a thread that are looked at
_TELLING = 0.02  # of the time recorded; what computes less is not noted
_MOST_LOOKS = 64  # in a part of a recording
_MOST_THREADS = 16
# A thread that stands in one of these waits, and holds nothing.
_WAIT = frozenset(("wait", "acquire", "get", "put", "join", "select", "poll", "accept", "recv", "sleep", "result"))
_PINS = "_pin_memory_loop"

Place = tuple[str, int, str, int]  # file as frames are recorded, first line of the function, its name, line


class ThreadsBeside:
    """Beside the thread that creates it, until told()."""

    def __init__(self) -> None:
        self.began_ns = time.perf_counter_ns()
        self.thread = threading.get_ident()
        self.own = waiting.core_ns()
        self.before = {int(one.ident or 0): (one, _ran_ns(one)) for one in list(_others())[:_MOST_THREADS]}
        self.looks = 0
        self.seen: dict[int, list[list[tuple[CodeType, int]]]] = {}

    def look(self) -> None:
        """Where they are now; a few microseconds for each."""
        if not self.before or self.looks == _MOST_LOOKS:
            return
        self.looks += 1
        frames = sys._current_frames()
        frames.pop(threading.get_ident(), None)  # this frame would hold itself, and all of the job's around it
        for ident in self.before:
            frame = frames.get(ident)
            if frame is not None:
                self.seen.setdefault(ident, []).append(list(_stack(frame)))

    def told(self) -> dict[str, Any] | None:
        """None: no other thread did much, or nobody counts it here. Times in ns: of what was recorded, of it those in
        which the thread of the steps neither ran nor waited for a core, and what each other thread ran."""
        if not self.before or self.own is None or threading.get_ident() != self.thread:
            return None
        now, recorded_ns = waiting.core_ns(), time.perf_counter_ns() - self.began_ns
        if now is None:
            return None
        rows = []
        for ident, (thread, before) in self.before.items():
            after = _ran_ns(thread) if thread.is_alive() else None
            if before is None or after is None or after - before < _TELLING * recorded_ns or self._only_copies(ident):
                continue
            rows.append([thread.name, after - before, *(self._place(ident) or ("", 0, "", 0))])
        if not rows:
            return None
        stood_ns = recorded_ns - sum(now) + sum(self.own)
        return {"recorded_ns": recorded_ns, "stood_ns": min(max(0, stood_ns), recorded_ns), "threads": rows}

    def _only_copies(self, ident: int) -> bool:
        """Into pinned memory, for the data loader: torch does that without the lock."""
        return any(code.co_name == _PINS for stack in self.seen.get(ident, []) for code, _ in stack)

    def _place(self, ident: int) -> Place | None:
        """Where it was most often, in the program's own code."""
        own = program_code.own_files()
        found: dict[Place, int] = {}
        stacks = self.seen.get(ident, [])
        busy = [stack for stack in stacks if stack[0][0].co_name not in _WAIT]
        for stack in busy or stacks:  # where it waits it also comes from
            for code, line in stack:
                path = own.get(os.path.abspath(code.co_filename))
                if path is not None:
                    place = program_code.shown(path), code.co_firstlineno, code.co_name, line
                    found[place] = found.get(place, 0) + 1
                    break
        return max(found, key=lambda place: found[place]) if found else None


def _others() -> Iterator[threading.Thread]:
    here = threading.get_ident()
    for one in threading.enumerate():
        if isinstance(one, threading._DummyThread):  # of C++, as autograd's are, that came by Python once
            continue
        if one.ident not in (None, here) and one.native_id is not None and not one.name.startswith(_OURS):
            yield one


def _stack(frame: FrameType | None) -> Iterator[tuple[CodeType, int]]:
    """From the innermost outwards."""
    for _ in range(_DEEPEST):
        if frame is None:
            return
        yield frame.f_code, frame.f_lineno
        frame = frame.f_back


def _ran_ns(thread: threading.Thread) -> int | None:
    counted = waiting.core_ns(f"self/task/{thread.native_id}")
    return None if counted is None else counted[0]
