"""One window recorded with torch.profiler: start, step marks, parts, stop, export to <run>/traces/rankR…/.

Marks are ranges named ProfilerStep#N with the job's own step numbers. A long window is written in parts, each a file
of its own, so that a kill loses the last one at most; parts are cut at step boundaries, where no range is open.
"""

from __future__ import annotations

import contextlib
import gc
import json
import os
import threading
import time

from . import (
    modules,
    moments,
    other_profiler,
    page_faults,
    parallel,
    process,
    program_code,
    threads_beside,
    torch_profiler,
    torch_settings,
    waiting,
)
from .execution_trace import ExecutionTrace
from .gradient_use import GradientUse
from .held_before import held_before
from .spool import Spool

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import Any

    from .notes import Notes
    from .process import Identity
    from .settings import Settings

PART_S = 5.0
FIRST_PART_S = 0.3  # of a long window, while it is not known how much a second is
GARBAGE = "Python garbage collection"  # the range of a full one in the recording
SETTLES_S = 1.0  # that a GPU may take to become idle before a window; ranks that wait for others may not
PART_BYTES = 50_000_000  # of JSON, before it is compressed
LEAST_PART = 0.1  # of what runs: less that is left of the window is no part of its own


# Bytes of JSON per recorded second, from the last part of this process: with frames and without.
_rates: dict[bool, float] = {}


class Recorder:
    def __init__(self, settings: Settings, notes: Notes, kind: str, number: int, stacks: bool = False) -> None:
        self.settings = settings
        self.notes = notes
        self.kind = kind  # steps, seconds, stacks
        self.asked = False  # by a request, while the job ran
        self.of_forward = False  # its steps are forward passes: no optimizer had stepped yet
        self.early = False  # the early window of the automatic mode: a better one may follow
        self.number = number  # of the window in this process
        self.features = settings.features | {"stack"} if stacks else settings.features
        self.has_frames = "stack" in self.features
        self.with_execution_trace = "execution-trace" in settings.features and not stacks
        self.execution_trace: ExecutionTrace | None = None  # of the running part
        self.identity: Identity = process.rank()  # as at the start: a group may be gone at the end
        self.thread: int | None = None
        self.ranges: modules.ModuleRanges | None = None
        self.gradients: GradientUse | None = None  # of the step with stacks
        self.profiler: Any = None
        self.sizes: tuple[list[modules.Size], list[modules.Size]] = ([], [])  # of models, and of those beside
        self.held: list[tuple[str, str, str, int]] = []  # before it began
        self.code: list[program_code.Call] = []  # calls in the program's own source
        self.of_the_same: program_code.Given = {}  # its functions that give the same of the same
        self.quiet = contextlib.ExitStack()  # what torch would print while it records
        self.mark: tuple[int, Any] | None = None
        self.steps: list[int] = []  # whole ones, of all parts
        self.settings_of_torch: dict[str, str] = {}  # as members of the trace
        self.part_steps: list[int] = []  # of the running part
        self.partial_steps: list[int] = []
        self.complete = False  # it ends where it was to end
        self.part = 0
        self.in_parts = True
        self.began = 0.0
        self.cost_s = {"start": 0.0, "stop": 0.0, "export": 0.0}
        self.spent_s = 0.0  # of the job's time, all parts
        self.boundary_s: list[float] = []  # what our hooks took between two of its steps
        self.waits = waiting.Waits()
        self.beside: threads_beside.ThreadsBeside | None = None  # of the running part
        self.faults = page_faults.PageFaults()  # of the running part
        self.text_bytes = 0
        self.written_steps = 0  # whole ones, that the costs are of
        self.spools: list[Spool] = []
        self.thread_of_request = False  # each step has a thread of its own
        self.rests = False  # between two steps on threads of their own
        self.open_before: set[int] = set()  # ranges of the job's, when stacks of a step began
        self.left_open: set[str] | None = set()  # names of ranges that were open at its stop; None: not known yet
        self.gc_s, self.gc_count, self.gc_began = 0.0, 0, 0.0
        self.gc_range: Any = None  # of the collection that runs, in the recording

    def prepare(self) -> None:
        """Everything slow (CUPTI attaches here), so that it does not fall into the first recorded step."""
        start = time.perf_counter()
        if not self.settings_of_torch:  # what is asked runs products, which no recording may hold
            with self.notes.guard("asking for torch's settings"):
                self.settings_of_torch = torch_settings.noted()
        if torch_profiler.gave_device_back():  # which ends with the next call of the runtime, on a thread of Kineto's
            device_settles(SETTLES_S)
            time.sleep(0.02)
        with other_profiler.own_profiler(), torch_profiler.quiet_kineto():
            self.profiler = torch_profiler.prepare(self.features)
        self.cost_s["start"] += time.perf_counter() - start

    def start(self, models: list[Any], beside: Sequence[Any] = (), optimizers: Sequence[Any] = ()) -> None:
        if self.profiler is None:
            self.prepare()
        self.identity = process.rank()
        self.thread = threading.get_ident()
        start = time.perf_counter()
        own: dict[str, str] = {}
        if "modules" in self.features:
            own = program_code.own_files() if self.kind == "stacks" else {}
            self.ranges = modules.ModuleRanges(models, beside, own)
            with contextlib.suppress(Exception):  # of parameters that cannot say yet how large they will be
                self.sizes = modules.module_sizes(models, beside, optimizers)
        if self.kind == "stacks":  # now: what is done while it records would be among its frames
            with self.notes.guard("reading the program's own source"):
                self.code, self.of_the_same = program_code.calls()
            if "modules" in self.features and optimizers:
                with self.notes.guard("looking for what gets gradients"):
                    self.gradients = GradientUse(
                        modules.every_module(models, beside), optimizers, lambda: modules.own_around(own)
                    )
        if "memory" in self.features:
            with self.notes.guard("asking what the program holds"):
                self.held = held_before(models, optimizers)
        gc.callbacks.append(self.on_gc)
        device_settles(SETTLES_S)  # work of steps before would be in the first one, and push its own out
        self.cost_s["start"] += time.perf_counter() - start
        self._start_part()

    def _start_part(self) -> None:
        if self.profiler is None:
            self.prepare()
        start = time.perf_counter()
        self._start_execution_trace()
        with other_profiler.own_profiler(), torch_profiler.quiet_kineto():
            self.quiet = torch_profiler.start(self.profiler, "memory" in self.features)
        number, world, source = self.identity
        if source != "torch.distributed":  # else torch says it itself
            self.profiler.add_metadata_json("distributedInfo", json.dumps({"rank": number, "world_size": world}))
        if self.kind == "steps":  # else the thread that starts it may not be the one that works
            with self.notes.guard("asking for other threads"):
                self.beside = threads_beside.ThreadsBeside()
        self.began = time.perf_counter()
        self.cost_s["start"] += self.began - start

    def _start_execution_trace(self) -> None:
        if not self.with_execution_trace:
            return
        try:
            self.execution_trace = ExecutionTrace()
        except Exception as error:
            self.with_execution_trace = False
            self.notes.problem(f"no execution trace was recorded: {error}")

    def on_gc(self, phase: str, info: dict[str, int]) -> None:
        if phase == "start":
            self.gc_began = time.perf_counter()
            if info.get("generation") == 2:  # the others take microseconds
                self.gc_range = torch_profiler.entered_range(GARBAGE)
        elif self.gc_began:
            if self.gc_range is not None:
                self.gc_range.__exit__(None, None, None)
                self.gc_range = None
            self.gc_s += time.perf_counter() - self.gc_began
            self.gc_count += 1

    # Steps ------------------------------------------------------------------------------------------------------
    def begin_step(self, number: int) -> None:
        import torch

        if "stack" not in self.features:  # it would be one of the frames
            self.waits.step_begins(number)
        self.look_beside()
        self.faults.step_begins()
        self.mark = (number, torch.autograd.profiler.record_function(f"ProfilerStep#{number}"))
        self.mark[1].__enter__()

    def look_beside(self) -> None:
        if self.beside is not None:
            with self.notes.guard("looking at other threads"):
                self.beside.look()

    def end_step(self, whole: bool = True) -> None:
        if self.mark is None:
            return
        number, mark = self.mark
        self.mark = None
        mark.__exit__(None, None, None)
        if whole:
            self.faults.step_ended()
        self.look_beside()
        (self.part_steps if whole else self.partial_steps).append(number)
        if whole:
            self.steps.append(number)
            self.waits.step_ended()

    def part_is_due(self, left_s: float) -> bool:
        """`left_s`: how long the window will go on, as far as is known."""
        running_s = time.perf_counter() - self.began
        if left_s < LEAST_PART * running_s:
            return False
        rate = _rates.get(self.has_frames, 0.0)
        to_learn = rate == 0 and running_s + left_s > PART_S
        longest_s = min(FIRST_PART_S, PART_S) if to_learn else PART_S
        return running_s >= longest_s or running_s * rate >= PART_BYTES

    def cut(self) -> bool:
        """Writes what was recorded so far and goes on with the next part. Call between steps.

        False: the next part cannot begin, since a range did not end. Nothing is cut where ranges of the job cross.
        """
        if moments.ranges_cross():
            self.in_parts = False
            return True
        self._stop_part()
        self.export(complete=True)
        moments.left.leaves(self.left_open, in_step=False)
        if not moments.left.ended():
            self.leave()
            return False
        self.part += 1
        self._start_part()
        return True

    def rest(self) -> None:
        """This thread makes no step any more: what it recorded is a part, and the next one comes on another."""
        self._stop_part()
        self.export(complete=True)
        moments.left.leaves(self.left_open, in_step=False)
        self.part += 1
        self.rests = True

    def drop_part(self) -> None:
        """What this thread did is no step: nothing of it is kept, and the next part comes on another."""
        self.end_step(whole=False)
        self.partial_steps = []
        self._stop_part()
        self.profiler, self.execution_trace = None, None
        self.rests = True

    def resume(self) -> None:
        self.rests = False
        self.thread = threading.get_ident()
        self._start_part()

    # The end ----------------------------------------------------------------------------------------------------
    def stop(self) -> None:
        self.end_step(whole=False)
        if not self.rests:
            self._stop_part()
        self.leave()

    def leave(self) -> None:
        """Nothing of ours stays in the job."""
        if self.ranges is not None:
            self.ranges.in_steps(len(self.steps))
            self.ranges.remove()
        if self.gradients is not None:
            self.gradients.remove()
        if self.on_gc in gc.callbacks:
            gc.callbacks.remove(self.on_gc)

    def _stop_part(self) -> None:
        start = time.perf_counter()
        about = {
            "process": self.notes.name,
            "window": self.number,
            "part": self.part,
            "kind": self.kind,
            "asked": self.asked,
            "steps": self.part_steps,
            "partial_steps": self.partial_steps,
        }
        if self.thread_of_request:
            about["thread"] = threading.get_native_id()
        self.profiler.add_metadata_json("stepscope", json.dumps(about))
        for key, sizes in zip(("stepscope_modules", "stepscope_modules_beside"), self.sizes):
            if sizes:
                self.profiler.add_metadata_json(key, json.dumps(sizes))
        if self.held:
            self.profiler.add_metadata_json("stepscope_held", json.dumps(self.held))
        if self.code:
            seen: list[program_code.Call] = []
            # Not of a step that was cut off, as by the end of the job, which a child of it then writes.
            if self.ranges is not None and (self.part_steps or self.complete):
                with self.notes.guard("looking at what modules were given"):
                    gradients = self.gradients if self.part_steps else None  # which are alike in steps
                    seen = program_code.seen_in_step(self.ranges, gradients)
            self.profiler.add_metadata_json("stepscope_code", json.dumps([*self.code, *seen]))
        if self.boundary_s:  # as a median: in one of them a part was written
            usual_s = sorted(self.boundary_s)[(len(self.boundary_s) - 1) // 2]
            self.profiler.add_metadata_json("stepscope_boundary_ns", json.dumps(round(1e9 * usual_s)))
        waits = self.waits.of_part()
        if waits is not None:
            self.profiler.add_metadata_json("stepscope_waits", json.dumps(waits))
        counted, self.faults = self.faults.counted(), page_faults.PageFaults()
        if counted is not None:
            self.profiler.add_metadata_json("stepscope_page_faults", json.dumps(counted))
        if self.beside is not None:
            with self.notes.guard("asking for other threads"):
                told, self.beside = self.beside.told(), None
                if told is not None:
                    self.profiler.add_metadata_json("stepscope_threads", json.dumps(told))
        for name, value in self.settings_of_torch.items():
            self.profiler.add_metadata_json(name, value)
        if self.execution_trace is not None:
            self.execution_trace.stop()
        with torch_profiler.quiet_kineto():
            self.profiler.stop_trace()
        self.left_open = None
        self.quiet.close()
        self.recorded_s = start - self.began
        self.cost_s["stop"] += time.perf_counter() - start

    def export(self, complete: bool) -> None:
        """Hands the stopped part to its file; the path and what else is known go into the notes."""
        if self.rests:  # since the last one
            return
        start = time.perf_counter()
        number = self.identity[0]
        place = os.path.join("traces", parallel.folder_name(number))
        folder = os.path.join(self.notes.run_folder, place)
        os.makedirs(folder, exist_ok=True)
        tail = "stacks.pt.trace.json.gz" if self.kind == "stacks" else "pt.trace.json.gz"
        name = f"{self.notes.name}.{time.time_ns()}"
        spool = Spool(os.path.join(folder, f"{name}.{tail}"))
        profiler, self.profiler = self.profiler, None
        with torch_profiler.quiet_kineto():
            written = spool.export(profiler, needs_work=self.kind == "seconds")
        del profiler  # which takes its time for large ones
        self.left_open = spool.left_open
        if not written:
            return
        spools = [spool]
        if self.execution_trace is not None:
            spools.append(self.execution_trace.export(os.path.join(folder, f"{name}.et.json.gz")))
        self.spools += spools
        self.cost_s["export"] += time.perf_counter() - start
        text_bytes = sum(spool.text_bytes for spool in spools)
        self.text_bytes += text_bytes
        _rates[self.has_frames] = text_bytes / max(self.recorded_s, 1e-3)
        self.spent_s += sum(self.cost_s.values())
        self.written_steps = len(self.steps)
        window = {
            "window": self.number,
            "part": self.part,
            "kind": self.kind,
            "trace": os.path.join(place, os.path.basename(spool.written)),
            "complete": complete,
            "steps": self.part_steps,
            "partial_steps": self.partial_steps,
            "text_bytes": text_bytes,
            "cost_s": {key: round(value, 6) for key, value in self.cost_s.items()},
            "gc": {"collections": self.gc_count, "seconds": round(self.gc_s, 6)},
        }
        if self.execution_trace is not None:
            window["execution_trace"] = os.path.join(place, os.path.basename(spools[-1].written))
            self.execution_trace = None
        if self.part == 0 and self.ranges is not None and self.ranges.paths:
            window["modules"] = self.ranges.places()
        self.notes.fields["windows"].append(window)
        self.notes.write()
        self.part_steps, self.partial_steps = [], []
        self.cost_s = dict.fromkeys(self.cost_s, 0.0)
        self.gc_s, self.gc_count = 0.0, 0

    def take_back(self) -> None:
        """Removes what was written: a better recording has come."""
        for spool in self.spools:
            spool.remove()
        fields = self.notes.fields
        fields["replaced_cost_s"] = round(fields.get("replaced_cost_s", 0.0) + self.spent_s, 6)
        keep = [window for window in self.notes.fields["windows"] if window["window"] != self.number]
        self.notes.fields["windows"] = keep


def device_settles(seconds: float = 5.0) -> bool:
    """Waits until the GPUs of this process have nothing queued; False when one stays busy, as with a collective whose
    peers are gone.

    Stopping torch.profiler synchronizes without a limit, which at the end of a failed job would hang it.
    """
    import torch

    if not torch.cuda.is_initialized():
        return True
    devices = _devices()

    def settle() -> None:
        with contextlib.suppress(Exception):  # an error of the job's own, which it will meet itself
            for device in devices:
                torch.cuda.synchronize(device)

    waiter = threading.Thread(target=settle, name="stepscope-sync", daemon=True)
    waiter.start()
    waiter.join(seconds)
    return not waiter.is_alive()


def _devices() -> list[int]:
    """Numbers of those that this process uses: of another thread the current device is the first, which may be another
    rank's, and nothing of ours is to be there."""
    import torch

    used = getattr(torch._C, "_cuda_hasPrimaryContext", None)
    try:
        if used is None:
            return [torch.cuda.current_device()]
        return [device for device in range(torch.cuda.device_count()) if used(device)]
    except Exception:
        return []
