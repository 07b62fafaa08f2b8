"""One window that nsys records (`stepscope run --nsys`): NVTX ranges, and cudaProfilerStart and Stop around them.

torch.profiler stays off, since CUPTI serves one tool at a time. emit_nvtx makes an NVTX range of each op, with its
shapes, and of every range that the hooks open for steps, phases and modules. nsys collects from all processes below it
at once and ends with the first stop of any, so that only the last that records stops it: each holds a lock meanwhile,
which the system releases for one that is killed.
"""

from __future__ import annotations

import fcntl
import os

from .recorder import Recorder

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any


class NvtxRecorder(Recorder):
    emitting: Any = None  # emit_nvtx, while it is entered
    lock: int | None = None  # a descriptor
    owner = 0  # the process that began: a forked child is not to touch CUDA

    def prepare(self) -> None:
        """Nothing is slow to begin."""

    def _start_part(self) -> None:
        self.begin()

    def begin(self) -> bool:
        """Whether ranges are emitted; not before the job uses the GPU, which is not to be done for it."""
        import torch

        if self.emitting is not None:
            return True
        if not torch.cuda.is_initialized():
            return False
        emitting = torch.autograd.profiler.emit_nvtx(record_shapes="shapes" in self.features)
        emitting.__enter__()
        self.emitting, self.owner = emitting, os.getpid()
        self.lock = _shared(os.path.join(self.notes.run_folder, "nsys"))
        torch.cuda.cudart().cudaProfilerStart()
        number, world, _ = self.identity
        if world > 1:  # nsys knows processes, not ranks
            with torch.autograd.profiler.record_function(f"stepscope.rank: {number} of {world}"):
                pass
        return True

    def begin_step(self, number: int) -> None:
        if self.begin():
            super().begin_step(number)

    def part_is_due(self, left_s: float) -> bool:
        return False  # nsys writes to its own file all the time

    def _stop_part(self) -> None:
        import torch

        if self.emitting is None:
            self.notes.problem(_why_nothing(torch))
            return
        emitting, self.emitting = self.emitting, None
        if self.owner != os.getpid():
            return
        emitting.__exit__(None, None, None)  # waits for the device, so that its last work is in the report
        if _is_last(self.lock):
            torch.cuda.cudart().cudaProfilerStop()

    def export(self, complete: bool) -> None:
        """Only the note: the file is nsys's."""
        if self.owner == 0:
            return
        window: dict[str, Any] = {
            "window": self.number,
            "part": 0,
            "kind": self.kind,
            "recorder": "nsys",
            "complete": complete,
            "steps": self.part_steps,
            "partial_steps": self.partial_steps,
            "gc": {"collections": self.gc_count, "seconds": round(self.gc_s, 6)},
        }
        if self.ranges is not None and self.ranges.paths:
            window["modules"] = self.ranges.places()
        self.notes.fields["windows"].append(window)
        self.notes.write()


def _why_nothing(torch: Any) -> str:
    if torch.version.cuda is None:
        return "this torch is built without CUDA: it has neither ranges for nsys nor a way to start it"
    return "this process did not use the GPU in its window: nsys was not started from it"


def _shared(folder: str) -> int | None:
    """A lock that any number of processes may hold; None where the file system has none."""
    try:
        lock = os.open(folder, os.O_RDONLY)
        fcntl.flock(lock, fcntl.LOCK_SH)
    except OSError:
        return None
    return lock


def _is_last(lock: int | None) -> bool:
    """Gives the lock back: whether nobody else held it."""
    if lock is None:
        return True
    try:
        fcntl.flock(lock, fcntl.LOCK_UN)
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        fcntl.flock(lock, fcntl.LOCK_UN)  # children that were forked meanwhile have it too
    except BlockingIOError:
        return False
    except OSError:
        return True
    finally:
        os.close(lock)
    return True
