"""The state of one process: counts optimizer steps, and records the asked-for window at step boundaries.

A boundary is not taken inside the optimizer's post hook: there the range `Optimizer.step#…` is still open, and step
marks would overlap it. The hook leaves an object in the call's own kwargs instead; it is released when the optimizer's
step has returned, on the same thread, and its __del__ is the boundary.
"""

from __future__ import annotations

import atexit
import os
import sys
import threading
import time
import weakref

from . import process, windows
from .recorder import Recorder, device_settles

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

    from .notes import Notes
    from .other_profiler import Watch
    from .process import Identity
    from .settings import Settings
    from .timer import Timer
    from .windows import Window

SECONDS = "seconds"  # the window of the timer, beside the (first, end) pairs of steps


class _Boundary:
    def __init__(self, reached: Callable[[], None]) -> None:
        self.reached = reached

    def __del__(self) -> None:
        self.reached()


class Capture:
    def __init__(self, settings: Settings, notes: Notes) -> None:
        self.settings = settings
        self.notes = notes
        self.armed_at = time.monotonic()
        self.off = False  # for good: another profiler, a failure, everything done
        self.by_time: Timer | None = None  # the timer of a window in seconds
        self.identity: Identity | None = None  # rank, world size, source
        self.guard: Watch | None = None  # watches for a profiler of the job's own
        self.reset()

    def reset(self) -> None:
        self.boundary = 0  # optimizer steps done
        self.leader: weakref.ref[Any] | None = None  # the optimizer whose steps count
        self.others = 0  # steps of other optimizers since the leader's last
        self.plan = windows.StepWindows(self.settings.steps)
        self.active: tuple[Recorder, Window | str] | None = None  # what records now
        self.ready: Recorder | None = None  # prepared for the next boundary
        self.early: Recorder | None = None  # of the early window, stopped, not written
        self.done: list[Recorder] = []  # written

    # Setting up -------------------------------------------------------------------------------------------------
    def arm(self) -> None:
        import torch
        from torch.optim.optimizer import register_optimizer_step_post_hook

        from . import other_profiler, timer

        self.guard = other_profiler.Watch(self.job_profiles_itself)
        os.register_at_fork(after_in_child=self.in_forked_child)
        atexit.register(self.finish)
        if self.settings.seconds is None:
            self.compiling = getattr(getattr(torch, "compiler", None), "is_compiling", lambda: False)
            register_optimizer_step_post_hook(self.after_optimizer_step)
            if self.plan.main[0] == 0 and not process.is_spawned() and not process.is_launcher():
                self.start_window(self.plan.main, 0)
        if self.settings.seconds is not None or self.settings.automatic:
            self.by_time = timer.Timer(self)
            self.by_time.start()
        if not process.is_spawned():
            self.tell()

    def tell(self, **fields: Any) -> None:
        import torch

        number, world, source = self.identity = process.rank(self.identity)
        device = "cuda" if torch.cuda.is_initialized() else "cpu"
        role = "launcher" if process.is_launcher() else "rank"
        self.notes.write(
            rank=number,
            world_size=world,
            rank_source=source,
            role=role,
            torch=str(torch.__version__),
            device=device,
            device_name=torch.cuda.get_device_name() if device == "cuda" else None,
            steps_seen=self.boundary,
            **fields,
        )

    def in_forked_child(self) -> None:
        """A child that steps an optimizer is a rank of its own; one forked while recording must leave that alone."""
        with self.notes.guard("following a fork"):
            self.off = self.off or self.active is not None or self.ready is not None
            self.by_time = None
            self.notes.forget_process()
            self.reset()

    # Steps ------------------------------------------------------------------------------------------------------
    def after_optimizer_step(self, optimizer: Any, args: object, kwargs: dict[str, Any]) -> None:
        if self.compiling():
            return
        with self.notes.guard("counting a step"):
            if not self.leads(optimizer):
                return
            self.boundary += 1
            if self.off:
                return
            if self.boundary == 1:
                self.first_step()
            if self.something_to_do():
                kwargs["_stepscope_boundary"] = _Boundary(self.at_boundary)

    def leads(self, optimizer: Any) -> bool:
        leader = self.leader() if self.leader is not None else None
        if leader is None or self.others > 20:
            self.leader = weakref.ref(optimizer)
        elif leader is not optimizer:
            self.others += 1
            return False
        self.others = 0
        return True

    def first_step(self) -> None:
        self.finish_in_child()
        twice = _may_record_twice()
        if time.monotonic() - self.armed_at > windows.EARLY_WITHIN_S or not twice:
            self.plan.drop_early()
        if self.by_time is not None:
            self.by_time.cancel()
            self.off = not twice and bool(self.done)

    def finish_in_child(self) -> None:
        """Children made by multiprocessing's fork end without atexit; this list is run for them too."""
        util = sys.modules.get("multiprocessing.util")
        if util is not None and process.is_child():
            util.Finalize(None, self.finish, exitpriority=100)

    def something_to_do(self) -> bool:
        return self.active is not None or bool(self.plan.at(self.boundary) or self.plan.at(self.boundary + 1))

    def at_boundary(self) -> None:
        with self.notes.guard("recording at a step boundary"):
            if self.off:
                return
            window = self.plan.at(self.boundary)
            self.continue_window(window)
            if self.active is None and window is not None:
                self.start_window(window, self.boundary)
            elif self.active is None and self.ready is None and self.plan.at(self.boundary + 1):
                self.ready = Recorder(self.settings, self.notes)
                self.ready.prepare()

    def continue_window(self, window: Window | None) -> None:
        if self.active is None or self.active[0].thread != threading.get_ident():
            return
        recorder, current = self.active
        recorder.end_step()
        if current == SECONDS:  # of automatic mode, before the first step: the steps are the better answer
            self.active = None
            recorder.stop()
        elif window == current:
            recorder.begin_step(self.boundary)
        else:
            self.close(complete=True)

    def start_window(self, window: Window, number: int) -> None:
        recorder = self.ready or Recorder(self.settings, self.notes)
        self.ready = None
        recorder.start()
        self.identity = recorder.identity
        self.active = (recorder, window)
        recorder.begin_step(number)

    def close(self, complete: bool) -> None:
        """Ends the running recording. The early window waits in memory for the main one to make it superfluous."""
        if self.active is None:
            return
        recorder, window = self.active
        self.active = None
        recorder.stop()
        if self.plan.automatic and window == windows.EARLY and complete:
            self.early = recorder
            return
        if self.early is None or len(recorder.steps) >= len(self.early.steps):
            self.early = None
            self.write(recorder, SECONDS if window == SECONDS else "steps", complete)
        asked = window == SECONDS and not self.settings.automatic
        if asked or (window != SECONDS and self.plan.over(self.boundary)):
            self.stand_down()

    def write(self, recorder: Recorder, kind: str, complete: bool) -> None:
        superseded, self.done = self.done, [recorder]
        recorder.export(kind, complete)
        for other in superseded:
            other.take_back()
        self.tell()

    def stand_down(self) -> None:
        self.off = True
        if self.guard is not None:
            self.guard.remove()

    # Seconds: called by the timer, on the main thread -------------------------------------------------------------
    def start_seconds(self) -> None:
        if self.active is None and not self.off:
            recorder = Recorder(self.settings, self.notes)
            recorder.start()
            self.active = (recorder, SECONDS)
            recorder.mark_forwards()

    def end_seconds(self) -> None:
        if self.active is not None and self.active[1] == SECONDS:
            self.close(complete=True)

    # The end ----------------------------------------------------------------------------------------------------
    def job_profiles_itself(self) -> None:
        """The job constructs a profiler: torch has room for one, so ours ends and does not come back."""
        if self.off:
            return
        with self.notes.guard("giving way to the job's own profiler"):
            self.close(complete=False)
            self.finish_early()
            self.tell(own_profiler=True)
        self.stand_down()

    def finish_early(self) -> None:
        if self.early is not None and not self.done:
            self.write(self.early, "steps", True)
        self.early = None

    def finish(self) -> None:
        """At the end of the process: what there is gets written, whole or not."""
        with self.notes.guard("writing at the end of the process"):
            if self.notes.pid != os.getpid():
                return
            if self.active is not None and self.settled():
                self.close(complete=False)
            self.finish_early()
            for recorder in self.done:
                recorder.wait()
            if self.notes.shown:
                self.tell()
        self.off = True

    def settled(self) -> bool:
        if device_settles():
            return True
        self.notes.problem("the GPU was still busy when the process ended: the running recording was given up")
        return False


def _may_record_twice() -> bool:
    """CUPTI before CUDA 12.6 may crash a job with CUDA graphs when it attaches a second time."""
    import torch

    version = getattr(torch.version, "cuda", None)
    return not version or tuple(int(part) for part in version.split(".")[:2]) >= (12, 6)
