"""torch's execution trace of a part, beside its timeline: which op came out of which, with which tensors.

A process has one observer for it. Where the job has its own, a second is refused without a word: ours is there when it
opened our file.
"""

from __future__ import annotations

import os
import weakref

from . import torch_profiler
from .spool import Spool, memory_file

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any


class ExecutionTrace:
    """Runs from its construction to `stop`. Raises OSError where torch does not write one."""

    def __init__(self) -> None:
        import torch

        kind = getattr(torch.profiler, "ExecutionTraceObserver", None)
        memory = memory_file()
        if kind is None or memory is None:
            raise OSError("this torch has none" if kind is None else "there is no memory for files")
        self.memory: int = memory
        self.close = weakref.finalize(self, os.close, memory)  # also when it is dropped
        self.observer: Any = kind()
        with torch_profiler.errors_only():  # each start and stop is a warning of torch's
            self.observer.register_callback(f"/proc/self/fd/{memory}")
            if _times_open(memory) < 2:
                self.observer._registered = False  # else its end would be the end of the job's own
                raise OSError("the job records its own")
            self.observer.start()

    def stop(self) -> None:
        with torch_profiler.errors_only():
            self.observer.unregister_callback()

    def export(self, path: str) -> Spool:
        """Hands what was recorded to its file, which ends in .et.json.gz."""
        spool = Spool(path)
        spool.compress(self.memory)
        self.close()
        return spool


def _times_open(memory: int) -> int:
    """How many of this process's descriptors are of this file."""
    wanted = os.fstat(memory).st_ino, os.fstat(memory).st_dev
    count = 0
    for name in os.listdir("/proc/self/fd"):
        try:
            found = os.stat(f"/proc/self/fd/{name}")
        except OSError:
            continue
        count += (found.st_ino, found.st_dev) == wanted
    return count
