"""How long the thread of the steps could run and had no core, as Linux counts it: others had them all."""

from __future__ import annotations

import os

_TELLING_NS = 100_000  # of a step; less is the usual change from one thread to another


class Waits:
    """Of the recorded steps, each until the next one begins."""

    def __init__(self) -> None:
        self.counted = False  # by the kernel
        self.found: list[tuple[int, int]] = []  # step, ns
        self.step: tuple[int, int] | None = None  # the one that runs, and what was waited before it
        self.after: int | None = None  # what was waited when it ended

    def step_begins(self, number: int) -> None:
        waited = waited_ns()
        self.note(waited)
        if waited is not None:
            self.counted = True
            self.step = number, waited

    def step_ended(self) -> None:
        if self.step is not None:
            self.after = waited_ns()

    def note(self, waited: int | None) -> None:
        if self.step is not None and self.after is not None and waited is not None:
            number, before = self.step
            if waited - before >= _TELLING_NS:
                self.found.append((number, waited - before))
        self.step = self.after = None

    def of_part(self) -> list[tuple[int, int]] | None:
        """Of the steps since the last call, those that waited; None: nobody counts it here."""
        self.note(self.after)
        found, self.found = self.found, []
        return found if self.counted else None


def waited_ns() -> int | None:
    """By the calling thread since it began; None where the kernel does not count it."""
    counted = core_ns()
    return None if counted is None else counted[1]


def core_ns(thread: str = "thread-self") -> tuple[int, int] | None:
    """How long a thread, a folder of /proc, had a core since it began, and how long it waited for one.

    Opened anew each time, five microseconds: a job may close a file that stays open, and have another in its place.
    """
    try:
        handle = os.open(f"/proc/{thread}/schedstat", os.O_RDONLY | os.O_CLOEXEC)
        try:
            ran, waited = os.read(handle, 100).split()[:2]
            return int(ran), int(waited)
        finally:
            os.close(handle)
    except (OSError, ValueError):
        return None
