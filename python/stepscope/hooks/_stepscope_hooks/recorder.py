"""One recording with torch.profiler: start, step marks, stop, export to <run>/traces/rankR_dpD_tpT_ppP/….json.gz.

Marks are ranges named ProfilerStep#N with the job's own step numbers. The text is written by torch into the run
folder and compressed by a thread beside the job; when the job is killed meanwhile, the plain file is what remains.
"""

from __future__ import annotations

import gzip
import json
import os
import shutil
import threading
import time

from . import forward_marks, other_profiler, process, torch_profiler

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from .notes import Notes
    from .process import Identity
    from .settings import Settings


class Recorder:
    def __init__(self, settings: Settings, notes: Notes) -> None:
        self.settings = settings
        self.notes = notes
        self.profiler: Any = None
        self.mark: tuple[int, Any] | None = None
        self.thread: int | None = None
        self.steps: list[int] = []  # numbers of the steps marked so far, whole ones only
        self.cost_s = {"start": 0.0, "stop": 0.0, "export": 0.0}
        self.compressor: threading.Thread | None = None
        self.forwards: forward_marks.ForwardMarks | None = None  # marks of an inference job
        self.identity: Identity = process.rank()  # as at the start: a group may be gone at the end
        self.window: dict[str, Any] | None = None  # what the notes say of the written trace

    def prepare(self) -> None:
        """Everything slow (CUPTI attaches here), so that it does not fall into the first recorded step."""
        start = time.perf_counter()
        with other_profiler.own_profiler():
            self.profiler = torch_profiler.prepare(self.settings)
        self.cost_s["start"] += time.perf_counter() - start

    def start(self) -> None:
        if self.profiler is None:
            self.prepare()
        start = time.perf_counter()
        self.identity = process.rank()
        torch_profiler.start(self.profiler, self.settings.memory)
        self.thread = threading.get_ident()
        number, world, source = self.identity
        if source != "torch.distributed":  # else torch says it itself
            self.profiler.add_metadata_json("distributedInfo", json.dumps({"rank": number, "world_size": world}))
        self.cost_s["start"] += time.perf_counter() - start

    def begin_step(self, number: int) -> None:
        import torch

        self.mark = (number, torch.autograd.profiler.record_function(f"ProfilerStep#{number}"))
        self.mark[1].__enter__()

    def end_step(self, whole: bool = True) -> None:
        if self.mark is None:
            return
        number, mark = self.mark
        self.mark = None
        mark.__exit__(None, None, None)
        if whole:
            self.steps.append(number)

    def mark_forwards(self) -> None:
        """Without an optimizer a step is one forward pass of an outermost module without gradients."""
        self.forwards = forward_marks.ForwardMarks(self)

    def stop(self) -> None:
        if self.forwards is not None:
            self.forwards.remove()
        start = time.perf_counter()
        partial = [self.mark[0]] if self.mark else []
        self.end_step(whole=False)
        self.profiler.add_metadata_json("stepscope", json.dumps({"steps": self.steps, "partial_steps": partial}))
        self.profiler.stop_trace()
        self.cost_s["stop"] += time.perf_counter() - start

    def export(self, kind: str, complete: bool) -> None:
        """Writes the trace; its path inside the run folder and the rest of what is known go into the notes."""
        start = time.perf_counter()
        number = self.identity[0]
        place = os.path.join("traces", "rank{}_dp{}_tp{}_pp{}".format(number, *process.coordinates(number)))
        folder = os.path.join(self.notes.run_folder, place)
        os.makedirs(folder, exist_ok=True)
        name = f"{self.notes.host}_{self.notes.pid}.{time.time_ns()}.pt.trace.json"
        plain = os.path.join(folder, name)
        self.profiler.export_chrome_trace(plain)
        self.profiler = None
        if not os.path.exists(plain) or os.path.getsize(plain) == 0:
            raise OSError(f"torch wrote no trace to {folder} (is the disk full?)")
        self.cost_s["export"] += time.perf_counter() - start
        window = {
            "kind": kind,
            "trace": os.path.join(place, name),
            "complete": complete,
            "steps": self.steps,
            "bytes": os.path.getsize(plain),
            "cost_s": {k: round(v, 6) for k, v in self.cost_s.items()},
        }
        self.window = window
        self.notes.fields["windows"].append(window)
        self.notes.write()
        self.compressor = threading.Thread(
            target=self._compress, args=(plain, window), name="stepscope-gzip", daemon=True
        )
        self.compressor.start()

    def take_back(self) -> None:
        """Removes the written trace: a better one has come."""
        self.wait()
        for window in list(self.notes.fields["windows"]):
            if window is self.window:
                self.notes.fields["windows"].remove(window)
                os.remove(os.path.join(self.notes.run_folder, window["trace"]))

    def wait(self) -> None:
        if self.compressor is not None:
            self.compressor.join()

    def _compress(self, plain: str, window: dict[str, Any]) -> None:
        with self.notes.guard("compressing the trace"):
            if window["kind"] == "seconds" and not _has_ops(plain):  # a process that only waits for others
                self.notes.fields["windows"].remove(window)
                self.notes.write()
                os.remove(plain)
                return
            partial = plain + ".gz.tmp"
            try:
                with open(plain, "rb") as source, gzip.open(partial, "wb", compresslevel=3) as target:
                    shutil.copyfileobj(source, target, 1 << 20)
                os.replace(partial, plain + ".gz")
            except BaseException:
                if os.path.exists(partial):
                    os.remove(partial)
                raise
            window["trace"] += ".gz"
            window["bytes"] = os.path.getsize(plain + ".gz")
            self.notes.write()
            os.remove(plain)


def _has_ops(path: str) -> bool:
    with open(path, "rb") as text:
        return any(b'"cpu_op"' in line or b'"kernel"' in line for line in text)


def device_settles(seconds: float = 5.0) -> bool:
    """Waits until the GPU has nothing queued; False when it stays busy, as with a collective whose peers are gone.

    Stopping torch.profiler synchronizes without a limit, which at the end of a failed job would hang it.
    """
    import torch

    if not torch.cuda.is_initialized():
        return True
    waiter = threading.Thread(target=torch.cuda.synchronize, name="stepscope-sync", daemon=True)
    waiter.start()
    waiter.join(seconds)
    return not waiter.is_alive()
