"""How often the process waits for a page of new memory, in steps that nobody records and in those of a recording.

What is made anew comes from the system page by page, once glibc has given the old memory back. A recording changes how
often: what it keeps lies behind the job's own in the heap, and glibc gives back only what has nothing behind it.
"""

from __future__ import annotations

from collections import deque

try:
    import resource
except ImportError:  # a Python that was built without it
    resource = None  # type: ignore[assignment]

_MOST_KEPT = 1000  # steps


def faults() -> int | None:
    """Of all threads of the process since it began, without those that waited for a disk."""
    return None if resource is None else int(resource.getrusage(resource.RUSAGE_SELF).ru_minflt)


def faults_here() -> int | None:
    """The same of this thread alone."""
    return None if resource is None else int(resource.getrusage(resource.RUSAGE_THREAD).ru_minflt)


class PageFaults:
    """Of steps, each counted for itself: in one of many something else happens, an evaluation or a checkpoint."""

    def __init__(self) -> None:
        self.of_steps: deque[int] = deque(maxlen=_MOST_KEPT)
        self.before: int | None = None
        self.recorded = False
        self.before_recording: tuple[int, int] | None = None  # counted until something was recorded for the first time

    def step_begins(self) -> None:
        self.before = faults()

    def step_ended(self) -> None:
        now = faults()
        if self.before is not None and now is not None:
            self.of_steps.append(now - self.before)
        self.before = None

    def leave_out(self) -> None:
        """Something is recorded: what comes until the next step begins is none."""
        self.before = None
        if not self.recorded:
            self.recorded, self.before_recording = True, self.counted()

    def counted(self) -> tuple[int, int] | None:
        """Steps, and the faults of the middle one; None: nobody counted."""
        if not self.of_steps:
            return None
        return len(self.of_steps), sorted(self.of_steps)[(len(self.of_steps) - 1) // 2]
