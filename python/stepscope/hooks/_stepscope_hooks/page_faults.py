"""How often the process waits for a page of new memory, in steps that nobody records and in those of a recording.

What is made anew comes from the system page by page, once glibc has given the old memory back. A recording changes how
often: what it keeps lies behind the job's own in the heap, and glibc gives back only what has nothing behind it. Behind
the recording heap.py puts that right, if it can.
"""

from __future__ import annotations

import time
from collections import deque

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import Any

try:
    import resource
except ImportError:  # a Python that was built without it
    resource = None  # type: ignore[assignment]

_MOST_KEPT = 1000  # steps
# A request of half a millisecond notices what it takes to ask: with so many counted, one of seven short steps is.
_ENOUGH, _SHORT_S, _ONE_OF = 100, 0.005, 7


def faults() -> int | None:
    """Of all threads of the process since it began, without those that waited for a disk."""
    return None if resource is None else int(resource.getrusage(resource.RUSAGE_SELF).ru_minflt)


def faults_here() -> int | None:
    """The same of this thread alone."""
    return None if resource is None else int(resource.getrusage(resource.RUSAGE_THREAD).ru_minflt)


def _middle(of_steps: Sequence[int]) -> tuple[int, int] | None:
    """Steps, and the faults of the middle one; None: nobody counted."""
    return (len(of_steps), sorted(of_steps)[(len(of_steps) - 1) // 2]) if of_steps else None


class PageFaults:
    """Of steps, each counted for itself: in one of many something else happens, an evaluation or a checkpoint."""

    def __init__(self) -> None:
        self.of_steps: deque[int] = deque(maxlen=_MOST_KEPT)
        self.since: deque[int] = deque(maxlen=_MOST_KEPT)  # something was recorded
        self.before: int | None = None
        self.until: tuple[tuple[int, int] | None, int] | None = None  # counted before that, and when it was
        self.recorded: PageFaults | None = None  # in the steps that were recorded first
        self.passing = 0  # short steps that go by without being counted

    def step_begins(self) -> None:
        self.before = faults()

    def step_ended(self) -> None:
        self.ended(faults())
        self.before = None

    def ended(self, now: int | None) -> None:
        if self.before is not None and now is not None:
            self.of_steps.append(now - self.before)
            if self.until is not None:
                self.since.append(now - self.before)

    def boundary(self, took_s: float, counts: bool) -> None:
        """Between a step that took this long and the next; `counts`: nothing is recorded in that one."""
        if self.before is None and self.passing > 0:
            self.passing -= 1
            return
        counted, now = self.before is not None, faults()
        self.ended(now)
        enough = len(self.of_steps if self.until is None else self.since) >= _ENOUGH
        self.passing = _ONE_OF - 2 if counted and enough and took_s < _SHORT_S else 0
        self.before = now if counts and not self.passing else None

    def leave_out(self, recorded: PageFaults | None = None) -> None:
        """Something is recorded: what comes until the next step begins is none. `recorded` counts there."""
        self.before, self.passing = None, 0
        if self.until is None:
            self.until, self.recorded = (self.counted(), time.time_ns()), recorded

    def counted(self) -> tuple[int, int] | None:
        return _middle(self.of_steps)

    def around_recording(self, kept: bool) -> dict[str, Any] | None:
        """Before the first recording, as far as there are such steps, and after it. `kept`: the heap may keep what it
        did not before it; then what a recording that the job began with counted is told too, of the step that has the
        least. None: there are no steps after it."""
        after = _middle(self.since)
        if self.until is None or after is None:
            return None
        counts = {"before": self.until[0]}
        if kept and self.recorded is not None:
            counts["recorded"] = self.recorded.least()
        known = {when: count for when, count in counts.items() if count is not None}
        return {**known, "after": after, "recording_ns": self.until[1], "kept": kept}

    def least(self) -> tuple[int, int] | None:
        """Steps, and the faults of the one that has the least; None: nobody counted."""
        return (len(self.of_steps), min(self.of_steps)) if self.of_steps else None
