"""How often the process waits for a page of new memory, in steps that nobody records and in those of a recording.

What is made anew comes from the system page by page, once glibc has given the old memory back. A recording changes how
often: what it keeps lies behind the job's own in the heap, and glibc gives back only what has nothing behind it.
"""

from __future__ import annotations

try:
    import resource
except ImportError:  # a Python that was built without it
    resource = None  # type: ignore[assignment]

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Optional

    Counts = Optional[tuple[int, int]]  # steps, and the page faults of all of these


def faults() -> int | None:
    """Of all threads of the process since it began, without those that waited for a disk."""
    return None if resource is None else int(resource.getrusage(resource.RUSAGE_SELF).ru_minflt)


class UsualFaults:
    """Of the steps that nobody records: counted where a stretch of them begins and ends."""

    def __init__(self) -> None:
        self.steps, self.count = 0, 0  # of stretches that are over
        self.began: Counts = None  # steps done and faults so far where the stretch that runs began

    def step_done(self, steps: int) -> None:
        if self.began is None:
            now = faults()
            self.began = None if now is None else (steps, now)

    def recording_begins(self, steps: int) -> None:
        counted = self.so_far(steps)
        if counted is not None:
            self.steps, self.count = counted
        self.began = None

    def so_far(self, steps: int) -> Counts:
        """None: no step was counted."""
        counted, count = self.steps, self.count
        now = faults()
        if self.began is not None and now is not None:
            counted += steps - self.began[0]
            count += now - self.began[1]
        return (counted, count) if counted > 0 else None


class RecordedFaults:
    """Of the recorded steps of one part of a recording."""

    def __init__(self) -> None:
        self.steps, self.count = 0, 0
        self.before: int | None = None

    def step_begins(self) -> None:
        self.before = faults()

    def step_ended(self) -> None:
        now = faults()
        if self.before is not None and now is not None:
            self.steps += 1
            self.count += now - self.before
        self.before = None

    def counted(self) -> Counts:
        return (self.steps, self.count) if self.steps > 0 else None
