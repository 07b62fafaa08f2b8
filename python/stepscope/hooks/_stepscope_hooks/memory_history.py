"""`stepscope run --memory-history`: torch's own record of GPU memory, switched on and written without code in the job.

Recording begins in torch's list of what to call once CUDA is up: earlier it would create a context on GPU 0 in every
process, before the job has chosen its device. A snapshot is written after the first step, every so many steps, where
memory runs out, and at the end. C++ stacks are left out: they make writing a hundred times as long.
"""

from __future__ import annotations

import inspect
import os

from . import memory_snapshot, process
from .settings import wants_rank

TYPE_CHECKING = False
if TYPE_CHECKING:
    from .capture import Capture

KEPT = 10  # snapshots in the run folder: the first one and the newest
MOST_AT_OOM = 20  # of a job that goes on after running out of memory, as those do that look for a batch size
_OBSERVERS = ("_cuda_attach_out_of_memory_observer", "_cuda_attachOutOfMemoryObserver")


class MemoryHistory:
    def __init__(self, capture: Capture) -> None:
        self.capture, self.notes = capture, capture.notes
        self.asked = capture.settings.memory
        self.forget()

    def forget(self) -> None:
        self.on = False
        self.began = False  # whether it ever was on
        self.written: list[str] = []  # in the run folder
        self.newest = -1  # step of the last snapshot
        self.at_oom = 0

    def arm(self) -> None:
        if self.asked is None:
            return
        import torch

        with self.notes.guard("asking for the history of memory"):
            torch.cuda._lazy_call(self.begin)

    def begin(self) -> None:
        """Called by torch within the job's first use of CUDA."""
        with self.notes.guard("recording the history of memory"):
            assert self.asked is not None
            if self.began or self.capture.detached or process.is_data_worker() or not self.wanted():
                return
            import torch

            record = torch.cuda.memory._record_memory_history
            options = {"stacks": "python", "max_entries": self.asked.entries}
            if "global_record_annotations" in inspect.signature(record).parameters:
                options["global_record_annotations"] = True  # ranges of all threads: backward runs on its own
            record("all", **options)
            self.on = self.began = True
            attach = next((getattr(torch._C, name) for name in _OBSERVERS if hasattr(torch._C, name)), None)
            if attach is None:
                self.notes.problem("this torch does not tell when memory runs out: no snapshot is written then")
            else:
                attach(self.out_of_memory)

    def wanted(self) -> bool:
        """A process that nothing numbers yet may become any rank: looked at again at each snapshot."""
        assert self.asked is not None
        number, world, source = self.capture.identity = process.rank(self.capture.identity)
        unknown = source == "single process" and self.capture.boundary == 0
        return unknown or wants_rank(self.asked.ranks, number, world)

    def due(self, boundary: int) -> bool:
        return self.on and self.asked is not None and (boundary == 1 or boundary % self.asked.every == 0)

    def at_boundary(self) -> None:
        if self.due(self.capture.boundary):
            self.write("")

    def out_of_memory(self, device: int, wanted: int, device_total: int, device_free: int) -> None:
        """Called by torch's allocator before the job sees the error."""
        with self.notes.guard("writing the memory where it ran out"):
            if self.on and self.at_oom < MOST_AT_OOM and self.notes.pid == os.getpid():
                self.at_oom += 1
                self.write("oom_")

    def write(self, why: str) -> None:
        if not self.wanted():
            self.stop()
            return
        path = self.path(why)
        memory_snapshot.dump(path)
        self.newest = self.capture.boundary
        if path not in self.written:
            self.written.append(path)
        self.thin()
        folder = self.notes.run_folder
        inside = [os.path.relpath(one, folder) if one.startswith(folder + os.sep) else one for one in self.written]
        self.notes.write(memory_snapshots=inside)

    def path(self, why: str) -> str:
        """As Megatron-LM names them: PATH of the last rank, and oom_rank-R_PATH of any; others rank-R_PATH."""
        assert self.asked is not None and self.capture.identity is not None
        rank, world, _ = self.capture.identity
        folder, name = os.path.split(
            self.asked.path or os.path.join(self.notes.run_folder, "memory", "snapshot.pickle")
        )
        if why:
            name = f"{why}rank-{rank}_{name}"
        elif not self.asked.path:
            name = f"rank-{rank}_step-{self.capture.boundary}_{name}"
        elif rank != world - 1:
            name = f"rank-{rank}_{name}"
        return os.path.join(folder, name)

    def thin(self) -> None:
        regular = [path for path in self.written if not os.path.basename(path).startswith("oom_")]
        for path in regular[1 : 1 - KEPT] if len(regular) > KEPT else []:
            self.written.remove(path)
            os.remove(path)

    def stop(self) -> None:
        if self.on:
            self.on = False
            import torch

            torch.cuda.memory._record_memory_history(None)

    def finish(self) -> None:
        """At the end of the process."""
        with self.notes.guard("writing the memory at the end"):
            if self.asked is None or process.is_launcher() or process.is_data_worker():
                return
            if self.on and self.newest != self.capture.boundary:
                self.write("")
            elif not self.began and self.capture.boundary > 0 and self.wanted():
                self.notes.problem("--memory-history had nothing to record: the process used no GPU")
