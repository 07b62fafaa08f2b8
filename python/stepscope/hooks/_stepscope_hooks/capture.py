"""The state of one process: counts steps, keeps the marks, and records the asked-for windows at step boundaries.

A boundary is not taken inside the optimizer's post hook: there the range `Optimizer.step#…` is still open, and step
marks would overlap it. The hook leaves an object in the call's own kwargs instead; it is released when the optimizer's
step has returned, on the same thread, and its __del__ is the boundary. A job that runs forward passes without gradients
and no optimizer has a boundary after each of them.
"""

from __future__ import annotations

import atexit
import os
import sys
import threading
import time
import weakref

from . import context, marks, phases, plan, process
from .budget import Budget
from .marks import Marks
from .recorder import Recorder, device_settles
from .requests import Requests
from .settings import wants_rank

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

    from .notes import Notes
    from .other_profiler import Watch
    from .process import Identity
    from .settings import Settings, Window
    from .timer import Timer

SECONDS = "seconds"  # the window of the timer, beside the (first, end) pairs of steps
STACKS = "stacks"  # one step after a window, with Python stacks: the code behind the times
_PHASE_RANGES = {marks.FORWARD: "forward", marks.BACKWARD: "backward"}  # torch marks the other phases itself


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
        self.by_time: Timer | None = None  # the timer of a window in seconds
        self.identity: Identity | None = None  # rank, world size, source
        self.guard: Watch | None = None  # watches for a profiler of the job's own
        self.marks = Marks(notes)
        self.phases = phases.Phases(self)
        self.requests = Requests(settings.run_folder)
        self.budget = Budget(settings)
        self.detached = False  # everything was taken out of the process again
        self.leave_at: int | None = None  # the step at which that happens
        self.off = False  # records nothing more: another profiler, or a failure; steps are still counted
        self.reset()

    def reset(self) -> None:
        self.thread = threading.main_thread().ident  # that runs the steps
        self.boundary = 0  # steps done
        self.step_began = marks.now_ns()
        self.step_s = 0.0  # how long the last step took
        self.without_optimizer = True  # steps are forward passes so far
        self.forward_seen = False  # in this step
        self.leader: weakref.ref[Any] | None = None  # the optimizer whose steps count
        self.others = 0  # steps of other optimizers since the leader's last
        self.open: list[tuple[int, int, Any]] = []  # phases that run: number, start, range in the recording
        self.loader: dict[str, Any] | None = None
        self.plan = plan.Plan(self.settings)
        self.windows = 0  # recorded so far
        self.active: tuple[Recorder, Window | str] | None = None  # what records now
        self.ready: Recorder | None = None  # prepared for the next boundary
        self.early: Recorder | None = None  # of the early window, stopped, not written
        self.done: list[Recorder] = []  # written

    # Setting up -------------------------------------------------------------------------------------------------
    def arm(self) -> None:
        from . import other_profiler, timer

        self.guard = other_profiler.Watch(self.job_profiles_itself)
        os.register_at_fork(after_in_child=self.in_forked_child)
        atexit.register(self.finish)
        if process.is_launcher():
            self.tell()
            return
        self.phases.install()
        if not process.is_spawned() and self.plan.at(0) is not None:
            self.start_window(self.plan.at(0), 0)
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

    def tell_context(self) -> None:
        """What explains the speed of this job; once, when something was recorded."""
        leader = self.leader() if self.leader is not None else None
        self.tell(
            settings=context.torch_settings(),
            machine=context.machine(),
            data_loading=self.loader,
            optimizer=context.optimizer(leader) if leader is not None else None,
            models=context.models(self.models()),
        )

    def models(self) -> list[Any]:
        found = (root.module() for root in self.phases.roots)
        return [model for model in found if model is not None]

    def in_forked_child(self) -> None:
        """A child that steps an optimizer is a rank of its own; one forked while recording must leave that alone."""
        with self.notes.guard("following a fork"):
            self.off = self.off or self.active is not None or self.ready is not None
            self.by_time = None
            self.notes.forget_process()
            self.marks.forget()
            self.reset()

    # Phases, from the hooks: these run in every step of the job ---------------------------------------------------
    def phase_begins(self, phase: int) -> None:
        if threading.get_ident() != self.thread:
            return
        try:
            shown = None
            if self.active is not None and phase in _PHASE_RANGES:
                shown = self.range(_PHASE_RANGES[phase])
            start = marks.now_ns()
            self.open.append((phase, start, shown))
            self.marks.begin(phase, self.boundary, start)
        except Exception as error:
            self.notes.problem(f"marking a phase failed: {error!r}")

    def phase_ends(self, phase: int) -> None:
        if threading.get_ident() != self.thread or not self.open or self.open[-1][0] != phase:
            return
        try:
            _, start, shown = self.open.pop()
            if not self.marks.tried:
                self.open_marks()
            self.marks.end(phase, self.boundary, start, marks.now_ns())
            if phase == marks.FORWARD:
                self.forward_seen = True
            if shown is not None:
                shown.__exit__(None, None, None)
        except Exception as error:
            self.notes.problem(f"marking a phase failed: {error!r}")

    def range(self, name: str) -> Any:
        import torch

        shown = torch.autograd.profiler.record_function(name)
        shown.__enter__()
        return shown

    def open_marks(self) -> None:
        """A process that steps an optimizer is a rank; what only runs a model may be a helper of one."""
        if process.is_data_worker() or (self.without_optimizer and process.is_helper()):
            return
        self.identity = process.rank(self.identity)
        self.marks.open(self.identity)

    def loader_seen(self, iterator: Any) -> None:
        if self.loader is None:
            with self.notes.guard("looking at the data loader"):
                self.loader = context.data_loading(iterator)

    # Steps ------------------------------------------------------------------------------------------------------
    def optimizer_begins(self, optimizer: Any) -> None:
        if self.leader is None or self.boundary == 0:
            self.thread = threading.get_ident()
        self.phase_begins(marks.OPTIMIZER)

    def optimizer_ends(self, optimizer: Any, kwargs: dict[str, Any]) -> None:
        self.phase_ends(marks.OPTIMIZER)
        with self.notes.guard("counting a step"):
            if not self.leads(optimizer):
                return
            if self.without_optimizer and self.boundary > 0:  # forward passes before the training: a sanity check
                self.boundary = 0
            self.without_optimizer = False
            self.count(marks.OPTIMIZER)
            if self.boundary == 1:
                self.first_step()
            if self.something_to_do():
                kwargs["_stepscope_boundary"] = _Boundary(self.at_boundary)

    def forward_ended(self, gradients: bool) -> None:
        if gradients or not self.without_optimizer or self.open or threading.get_ident() != self.thread:
            return
        with self.notes.guard("counting a forward pass"):
            self.count(marks.FORWARD)
            if self.something_to_do():
                self.at_boundary()

    def count(self, phase: int) -> None:
        now = marks.now_ns()
        self.step_s = (now - self.step_began) / 1e9
        if not self.marks.tried:
            self.open_marks()
        self.marks.step(self.boundary, self.step_began, now, phase)
        self.step_began = now
        self.boundary += 1
        if self.off:
            return
        for request in self.requests.poll(self.boundary, self.step_s):
            self.take(request)

    def take(self, request: Any) -> None:
        number, world, _ = self.identity = process.rank(self.identity)
        if request.by_time:
            self.boundary = request.start  # ranks that were attached to count from different moments
        if request.detach:
            self.leave_at = request.start + request.steps + 1
        if not wants_rank(request.ranks, number, world):
            return
        if request.start < self.boundary:
            self.notes.problem(f"request {request.name} was for step {request.start}, {self.boundary} were done")
        else:
            self.plan.add((request.start, request.start + request.steps))

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
        self.identity = process.rank(self.identity)
        self.marks.describe(self.identity)
        if time.monotonic() - self.armed_at > plan.EARLY_WITHIN_S or not may_record_again():
            self.plan.drop_early()
        if self.by_time is not None and self.settings.automatic:
            self.by_time.cancel()
            self.off = self.off or (not may_record_again() and bool(self.done))

    def finish_in_child(self) -> None:
        """Children made by multiprocessing's fork end without atexit; this list is run for them too."""
        util = sys.modules.get("multiprocessing.util")
        if util is not None and process.is_child():
            util.Finalize(None, self.finish, exitpriority=100)

    def something_to_do(self) -> bool:
        if self.leave_at is not None and self.boundary >= self.leave_at:
            return True
        if self.boundary <= 3:  # the outermost modules are looked for
            return True
        return self.active is not None or bool(self.plan.at(self.boundary) or self.plan.at(self.boundary + 1))

    def at_boundary(self) -> None:
        with self.notes.guard("recording at a step boundary"):
            if self.boundary <= 3 and not self.without_optimizer and not self.forward_seen:
                leader = self.leader() if self.leader is not None else None
                self.phases.find_roots(leader)
            self.forward_seen = False
            if not self.off:
                self.record_here()
            if self.leave_at is not None and self.boundary >= self.leave_at and self.active is None:
                self.detach()
            self.step_began = marks.now_ns()  # what recording took is no time of the next step

    def record_here(self) -> None:
        self.continue_window(self.wanted(self.boundary))
        window = self.wanted(self.boundary)  # which a budget may just have ended
        if self.active is None and window is not None:
            self.start_window(window, self.boundary)
        elif self.active is None and self.ready is None and self.wanted(self.boundary + 1):
            self.ready = self.recorder("steps")
            self.ready.prepare()

    def wanted(self, boundary: int) -> Window | None:
        window = self.plan.at(boundary)
        if window is None:
            return None
        number, world, _ = self.identity = process.rank(self.identity)
        return window if self.settings.wants_rank(number, world) else None

    # Windows ----------------------------------------------------------------------------------------------------
    def recorder(self, kind: str) -> Recorder:
        self.windows += 1
        return Recorder(self.settings, self.notes, kind, self.windows - 1, stacks=kind == STACKS)

    def start_window(self, window: Window | str | None, number: int | None) -> None:
        assert window is not None
        kind = window if isinstance(window, str) else "steps"
        recorder = self.ready if self.ready is not None and kind == "steps" else self.recorder(kind)
        self.ready = None
        recorder.start(self.models())
        self.identity = recorder.identity
        self.active = (recorder, window)
        self.marks.part(self.boundary, marks.PART_BEGINS)
        if number is not None:
            recorder.begin_step(number)

    def continue_window(self, window: Window | None) -> None:
        if self.active is None or self.active[0].thread != threading.get_ident():
            return
        recorder, current = self.active
        recorder.end_step()
        if current == SECONDS and self.settings.automatic and not self.without_optimizer:
            self.active = None  # before the first step of an optimizer: its steps are the better answer
            recorder.stop()
            self.marks.part(self.boundary, marks.PART_WRITTEN)
        elif current == SECONDS or window == current:
            self.record_on(recorder)
        else:
            self.close(complete=True)
            if current != STACKS and window is None and self.stacks_follow(recorder):
                self.start_window(STACKS, self.boundary)

    def record_on(self, recorder: Recorder) -> None:
        """One more step, unless that would cost more than it may."""
        if not may_record_again():
            recorder.begin_step(self.boundary)
            return
        assert self.active is not None
        window = self.active[1]
        if self.budget.asked and recorder.part == 0:
            self.next_part(recorder)  # what a step costs is not known before
        elif recorder.part_is_due() and window != plan.EARLY:
            self.next_part(recorder)
        reason = self.budget.exceeded(recorder, time.monotonic() - self.armed_at)
        if reason is None:
            recorder.begin_step(self.boundary)
            return
        self.notes.problem(reason)
        if not isinstance(window, str):
            self.plan.ended = window
        if recorder.part_steps:
            self.close(complete=True)
        else:
            recorder.stop()
            self.drop(recorder)

    def next_part(self, recorder: Recorder) -> None:
        recorder.next_part()
        self.marks.part(self.boundary, marks.PART_WRITTEN)
        self.marks.part(self.boundary, marks.PART_BEGINS)

    def drop(self, recorder: Recorder) -> None:
        """Ends a window whose running part holds nothing."""
        self.active = None
        self.marks.part(self.boundary, marks.PART_WRITTEN)
        self.done = [recorder]
        self.tell_context()

    def stacks_follow(self, recorder: Recorder) -> bool:
        """The code behind the times costs a step of its own; not of an early or a shortened window."""
        return (
            recorder.kind == "steps"
            and "stack" not in self.settings.features
            and may_record_again()
            and self.early is not recorder
            and not self.budget.asked
            and self.plan.at(self.boundary + 1) is None
        )

    def close(self, complete: bool) -> None:
        """Ends the running recording. The early window waits in memory for the main one to make it superfluous."""
        if self.active is None:
            return
        recorder, window = self.active
        self.active = None
        recorder.stop()
        if self.plan.automatic and window == plan.EARLY and complete:
            self.early = recorder
            return
        if self.early is None or len(recorder.steps) >= len(self.early.steps):
            self.early = None
            self.write(recorder, complete)

    def write(self, recorder: Recorder, complete: bool) -> None:
        superseded: list[Recorder] = []
        if self.settings.automatic and self.windows > 1 and recorder.kind == "steps":
            superseded = [other for other in self.done if other.kind == SECONDS]
        recorder.export(complete)
        self.marks.part(self.boundary, marks.PART_WRITTEN)
        self.done.append(recorder)
        for other in superseded:
            other.take_back()
            self.done.remove(other)
        self.tell_context()

    # Seconds: called by the timer, on the main thread -------------------------------------------------------------
    def start_seconds(self) -> None:
        if self.active is not None or self.off:
            return
        number, world, _ = self.identity = process.rank(self.identity)
        if not self.settings.wants_rank(number, world):
            return
        if not self.phases.roots:
            self.phases.find_roots()
        self.start_window(SECONDS, None)

    def end_seconds(self) -> None:
        if self.active is not None and self.active[1] == SECONDS:
            self.close(complete=True)

    def find_models(self) -> None:
        """For jobs that never step an optimizer."""
        if self.boundary == 0 and not self.phases.roots and not self.open:
            self.phases.find_roots()

    def detach(self) -> None:
        """Leaves the process as it was before."""
        self.off = self.detached = True
        self.phases.uninstall()
        if self.guard is not None:
            self.guard.remove()
        if self.by_time is not None:
            self.by_time.cancel()
        atexit.unregister(self.finish)
        self.marks.forget()
        self.tell(detached=True)

    # The end ----------------------------------------------------------------------------------------------------
    def job_profiles_itself(self) -> None:
        """The job constructs a profiler: torch has room for one, so ours ends and does not come back."""
        if self.off:
            return
        with self.notes.guard("giving way to the job's own profiler"):
            self.close(complete=False)
            self.finish_early()
            self.tell(own_profiler=True)
        self.off = True
        if self.guard is not None:
            self.guard.remove()

    def finish_early(self) -> None:
        if self.early is not None and not any(recorder.kind == "steps" for recorder in self.done):
            self.write(self.early, True)
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
                for spool in recorder.spools:
                    spool.ended()
            if self.notes.shown:
                self.tell()
        self.off = True

    def settled(self) -> bool:
        if device_settles():
            return True
        self.notes.problem("the GPU was still busy when the process ended: the running recording was given up")
        return False


def may_record_again() -> bool:
    """CUPTI before CUDA 12.6 may crash a job with CUDA graphs when it attaches a second time."""
    import torch

    version = getattr(torch.version, "cuda", None)
    return not version or tuple(int(part) for part in version.split(".")[:2]) >= (12, 6)
