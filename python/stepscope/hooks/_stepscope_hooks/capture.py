"""The state of one process: counts steps, keeps the marks, and tells the recordings of each step boundary.

A boundary is not taken inside the optimizer's post hook: there the range `Optimizer.step#…` is still open, and step
marks would overlap it. The hook leaves an object in the call's own kwargs instead; it is released when the optimizer's
step has returned, on the same thread, and its __del__ is the boundary. A job that runs forward passes without gradients
and no optimizer has a boundary after each of them; one that runs backward passes and no optimizer, after each of these.
"""

from __future__ import annotations

import atexit
import os
import sys
import time
import weakref
from collections import deque

from . import (
    compilations,
    context,
    cuda_graphs,
    marks,
    memory_history,
    memory_snapshot,
    memory_watch,
    module_hooks,
    moments,
    page_faults,
    parallel,
    phases,
    plan,
    process,
    roots,
)
from .marks import Marks
from .recordings import STACKS, Recordings, may_record_again
from .requests import Requests
from .settings import wants_rank
from .step_thread import StepThread

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

    from .deepspeed_flops import DeepSpeedFlops
    from .notes import Notes
    from .other_profiler import OtherProfiler
    from .process import Identity
    from .requests import Request
    from .settings import Settings, Window
    from .timer import Timer

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
        self.other: OtherProfiler | None = None  # of the job's own
        self.deepspeed: DeepSpeedFlops | None = None
        self.marks = Marks(notes)
        self.phases = phases.Phases(self)
        self.graphs = cuda_graphs.CudaGraphs(self.graph_replayed)
        self.requests = Requests(settings.run_folder)
        self.recordings = Recordings(self)
        self.history = memory_history.MemoryHistory(self)
        self.memory = memory_watch.MemoryWatch(self)
        self.detached = False  # everything was taken out of the process again
        self.leave_at: int | None = None  # the step at which that happens
        self.successor: Callable[[], None] | None = None  # someone who attached meanwhile
        self.off = ""  # why nothing more is recorded; steps are still counted
        self.reset()

    def reset(self) -> None:
        self.thread = StepThread(self)
        self.boundary = 0  # steps done
        self.page_faults = page_faults.PageFaults()  # of steps that nobody records
        self.step_began = marks.now_ns()
        self.stepping = False  # a phase was seen
        self.step_s = 0.0  # how long the last step took
        self.without_optimizer = True  # steps are forward passes so far
        self.by_backward = False  # they are backward passes: the job updates its parameters by code of its own
        self.forward_seen = False  # in this step
        self.passes = 0  # forward passes done
        self.last_steps: deque[tuple[int, float]] = deque(maxlen=64)  # number and seconds
        self.batches = 0  # that the data loaders of this process gave
        self.at_next_boundary: Callable[[], None] | None = None  # what the clock could not do elsewhere
        self.acting = False  # at a boundary, on the thread of the steps
        self.boundary_waits = False  # for a place where torch's profiler may start and stop
        self.leader: weakref.ref[Any] | None = None  # the optimizer whose steps count
        self.others = 0  # steps of other optimizers since the leader's last
        self.open: list[tuple[int, int, Any]] = []  # phases that run: number, start, range in the recording
        self.loader: dict[str, Any] | None = None
        self.batches_asked, self.batches_ready = 0, 0  # of workers; there before they were asked for
        self.plan = plan.Plan(self.settings)
        self.recordings.reset()

    # Setting up -------------------------------------------------------------------------------------------------
    def arm(self) -> None:
        from . import deepspeed_flops, other_profiler, timer

        self.other = other_profiler.OtherProfiler(self)
        self.other.watch()
        termination = self.recordings.termination
        os.register_at_fork(before=termination.before_fork, after_in_parent=termination.after_fork)
        os.register_at_fork(after_in_child=self.in_forked_child)
        atexit.register(self.finish)
        if process.is_launcher():
            self.tell()
            return
        self.phases.install()
        self.graphs.install()
        self.deepspeed = deepspeed_flops.DeepSpeedFlops(self)
        self.deepspeed.watch()
        self.history.arm()
        self.memory.arm()
        first = None if process.is_spawned() else self.wanted(0)
        if first is not None:
            self.recordings.start(first, 0)
        self.by_time = timer.Timer(self)
        self.by_time.start()
        if not process.is_spawned():
            self.tell()

    def tell(self, **fields: Any) -> None:
        import torch

        number, world, source = self.identity = process.rank(self.identity)
        faults = self.page_faults.counted()
        around = self.page_faults.around_recording(kept=not self.recordings.heap.is_as_it_was)
        compiled = []
        with self.notes.guard("asking what was compiled"):
            compiled = compilations.told()
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
            **({"page_faults": faults} if faults is not None else {}),
            **({"page_faults_around": around} if around is not None else {}),
            **({"compilations": compiled} if compiled else {}),
            **({"own_profiled_steps": self.other.steps} if self.other is not None and self.other.steps > 0 else {}),
            other_cost_s=round(self.recordings.budget.other_s, 6),
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

    def models_beside(self) -> list[Any]:
        found = (known() for known in self.phases.beside)
        return [model for model in found if model is not None]

    def in_forked_child(self) -> None:
        """A child that steps an optimizer is a rank of its own; one forked while recording must leave that alone."""
        if self.recordings.termination.forking:
            return
        with self.notes.guard("following a fork"):
            if self.recordings.busy:
                self.off = self.off or "its parent recorded when it was forked"
            self.recordings.termination.forget()
            self.recordings.termination.after_fork()
            self.recordings.before_exec.disarm()
            self.by_time = None
            self.requests = Requests(self.settings.run_folder)  # a lock may have been held
            self.notes.forget_process()
            self.marks.forget()
            parallel.forget()
            module_hooks.after_fork()
            self.history.forget()
            self.memory.forget()
            self.thread.requests.leave()  # one of them may have forked
            self.reset()

    # Phases, from the hooks: these run in every step of the job ---------------------------------------------------
    # A short request notices each call here: what has nothing to do is not called, and no guard is entered.
    def phase_begins(self, phase: int) -> None:
        if not self.thread.is_here() and not (phase == marks.FORWARD and self.thread.called_elsewhere()):
            return
        if self.boundary_waits and not self.open:
            self.at_boundary()
        if self.memory.state is not None:
            self.memory.phase_begins()
        try:
            shown = None
            if (self.recordings.active is not None or self.history.on) and phase in _PHASE_RANGES:
                shown = self.range(_PHASE_RANGES[phase])
            start = marks.now_ns()
            if not self.stepping:  # what lies before is no part of the first step: imports, loading
                self.stepping, self.step_began = True, start
            self.open.append((phase, start, shown))
            self.marks.begin(phase, self.boundary, start)
        except Exception as error:
            self.notes.problem(f"marking a phase failed: {error!r}")
        if phase == marks.BACKWARD and self.recordings.gradients() is not None:
            self.look_at_gradients(begins=True)

    def phase_ends(self, phase: int) -> None:
        if not self.thread.is_here() or not self.open or self.open[-1][0] != phase:
            return
        try:
            _, start, shown = self.open.pop()
            if not self.marks.tried:
                self.open_marks()
            self.marks.end(phase, self.boundary, start, marks.now_ns())
            if phase == marks.FORWARD:
                self.forward_seen = True
                self.passes += 1
            if shown is not None:
                shown.__exit__(None, None, None)
        except Exception as error:
            self.notes.problem(f"marking a phase failed: {error!r}")
        if phase == marks.BACKWARD and self.recordings.gradients() is not None:
            self.look_at_gradients(begins=False)
        # A pass within a pass, as in a backward pass that recomputes, is a part of it.
        if self.memory.state is not None and not self.open:
            self.memory.phase_ends(phase)

    def look_at_gradients(self, begins: bool) -> None:
        """Beside a backward pass; not of one within another, which is a part of it."""
        gradients = self.recordings.gradients()
        around = [phase for phase, _, _ in (self.open[:-1] if begins else self.open)]
        if gradients is None or marks.BACKWARD in around:
            return
        with self.notes.guard("looking at gradients"):
            if marks.OPTIMIZER in around:
                gradients.give_up()
            elif begins:
                gradients.backward_begins()
            else:
                gradients.backward_ended()

    def range(self, name: str) -> Any:
        import torch

        shown = torch.autograd.profiler.record_function(name)
        shown.__enter__()
        return shown

    def end_ranges(self) -> None:
        """Of the phases that run: a recording stops within them."""
        for at, (phase, start, shown) in reversed(list(enumerate(self.open))):
            if shown is not None:
                shown.__exit__(None, None, None)
                self.open[at] = (phase, start, None)

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
        with self.notes.guard("looking at the data loader"):
            ready = context.batch_is_ready(iterator)
            if ready is not None:
                self.batches_asked += 1
                self.batches_ready += ready

    def batch_came(self) -> None:
        self.batches += 1

    def no_step_runs(self) -> None:
        """Another thread has the steps from now on, and has begun none."""
        self.open.clear()
        self.stepping = False

    def step_begins(self) -> None:
        self.stepping, self.step_began = True, marks.now_ns()

    # Steps ------------------------------------------------------------------------------------------------------
    def optimizer_begins(self, optimizer: Any) -> None:
        may_move = self.leader is None or self.boundary == 0 or self.thread.has_ended
        if may_move and not self.thread.is_here():
            self.thread.train_here()
        self.phase_begins(marks.OPTIMIZER)
        gradients = self.recordings.gradients()
        if gradients is not None and self.thread.is_here():
            with self.notes.guard("looking at gradients"):
                if any(phase == marks.BACKWARD for phase, _, _ in self.open):
                    gradients.give_up()
                else:
                    gradients.optimizer_begins(optimizer)

    def optimizer_ends(self, optimizer: Any, kwargs: dict[str, Any]) -> None:
        self.phase_ends(marks.OPTIMIZER)
        if self.memory.state is not None:
            self.memory.optimizer_seen(optimizer)
        try:
            if not self.leads(optimizer):
                return
            if self.graphs.stepped():  # into a graph
                return
            self.optimizer_stepped()
            if self.something_to_do():
                kwargs["_stepscope_boundary"] = _Boundary(self.at_boundary)
        except Exception as error:
            self.notes.problem(f"counting a step failed: {error!r}")

    def optimizer_stepped(self) -> None:
        if self.without_optimizer or self.by_backward:
            self.begins_anew()
        self.without_optimizer = self.by_backward = False
        self.count(marks.OPTIMIZER)
        if self.boundary == 1:
            self.first_step()

    def graph_replayed(self) -> None:
        """A CUDA graph that holds a whole step."""
        with self.notes.guard("counting a replay"):
            if self.open or not self.thread.is_here():
                return
            self.others = 0
            self.optimizer_stepped()
            if self.something_to_do():
                self.at_boundary()

    def begins_anew(self) -> None:
        """What was counted so far came before the training: a sanity check, a look at gradients."""
        if self.boundary > 0:
            self.boundary = 0
            self.plan.ended = None

    def backward_ended(self) -> None:
        """Of a job that has built no optimizer: it ends a step, in which the parameters were updated first."""
        if not (self.without_optimizer or self.by_backward) or self.open or not self.thread.is_here():
            return
        if cuda_graphs.capturing():
            return
        try:
            if self.without_optimizer and roots.optimizer_exists():
                return
            if self.without_optimizer:
                self.begins_anew()
            self.without_optimizer, self.by_backward = False, True
            self.count(marks.BACKWARD)
            if self.boundary == 1:
                self.first_step()
            if self.something_to_do():
                self.at_boundary()
        except Exception as error:
            self.notes.problem(f"counting a backward pass failed: {error!r}")

    def forward_ended(self, gradients: bool) -> None:
        if not self.without_optimizer or self.open or not self.thread.is_here() or cuda_graphs.capturing():
            return
        if self.thread.requests.target is not None:  # these are the steps
            self.thread.pass_in_request_ended()
            return
        if gradients:
            moments.left.step_done()  # of a service that is a request, with all ranges around it
            self.between_passes()
            return
        try:
            self.count(marks.FORWARD)
            if self.something_to_do():
                self.at_boundary()
        except Exception as error:
            self.notes.problem(f"counting a forward pass failed: {error!r}")

    def between_passes(self) -> None:
        """Of a model that keeps what a backward pass would need: no step ends, but no range is open either."""
        act = self.at_next_boundary
        if act is None or self.acting:
            return
        with self.notes.guard("acting between two forward passes"):
            self.acting, self.at_next_boundary = True, None
            try:
                self.recordings.timed(act)
            finally:
                self.acting = False

    def count(self, phase: int) -> None:
        now = marks.now_ns()
        self.step_s = (now - self.step_began) / 1e9
        if not self.recordings.with_stacks() and not self.recordings.arguments.runs:  # which make a step longer
            self.last_steps.append((self.boundary, self.step_s))
        if not self.marks.tried:
            self.open_marks()
        self.marks.step(self.boundary, self.step_began, now, phase)
        if self.memory.state is not None:
            self.memory.step_ended()
        if self.other is not None and self.other.seen:
            self.other.step_ended()
        self.step_began = now
        self.boundary += 1
        moments.left.step_done()
        self.page_faults.boundary(self.step_s, counts=not self.recordings.busy)
        if self.requests.may_have_come(now):
            for request in self.requests.poll(self.boundary, self.step_s):
                self.take(request)
            while self.requests.withdrawn:
                self.withdraw(self.requests.withdrawn.pop())

    def take(self, request: Request) -> None:
        assert request.start is not None
        if request.by_time:
            self.boundary = request.start  # ranks that were attached to count from different moments
        if request.detach:
            self.leave_at = request.start + request.steps + 1
        if not self.wants(request):
            self.notes.answer_request(request.name, f"not asked: only ranks {request.ranks}")
            return
        if self.off:
            self.refuse(request)
        elif request.start < self.boundary:
            self.notes.problem(f"request {request.name} was for step {request.start}, {self.boundary} were done")
            self.notes.answer_request(request.name, "not recorded: its first step was over")
        else:
            window = (request.start, request.start + request.steps)
            self.plan.add(window)
            self.recordings.asked[window] = request

    def withdraw(self, name: str) -> None:
        self.requests.waiting = [request for request in self.requests.waiting if request.name != name]
        for window, request in list(self.recordings.asked.items()):
            if request.name == name:
                self.recordings.withdraw(window)
        if self.leave_at is not None:
            self.leave_at = self.boundary

    def record_no_more(self, why: str) -> None:
        self.off = why
        for request in self.recordings.asked.values():  # their steps have not come
            self.refuse(request)
        self.recordings.asked.clear()

    def refuse(self, request: Request) -> None:
        self.notes.answer_request(request.name, f"not recorded: {self.off}")

    def wants(self, request: Request | None) -> bool:
        """Whether this rank is among those that are to record."""
        number, world, _ = self.identity = process.rank(self.identity)
        return wants_rank(self.settings.ranks if request is None else request.ranks, number, world)

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
        if self.settings.automatic and not may_record_again() and self.recordings.done:
            self.off = self.off or "this torch records once per process"
        if self.by_time is None:  # a forked child that turns out to be a rank
            from . import timer

            self.by_time = timer.Timer(self, window=False)
            self.by_time.start()
        elif self.settings.automatic:
            self.by_time.drop_window()

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
        if self.at_next_boundary is not None or self.history.due(self.boundary):
            return True
        return (
            self.recordings.active is not None
            or self.recordings.stacks_wait > 0
            or self.recordings.heap.disturbed
            or self.recordings.arguments.runs
            or bool(self.plan.at(self.boundary) or self.plan.at(self.boundary + 1))
        )

    def at_boundary(self) -> None:
        start = time.perf_counter()
        with self.notes.guard("recording at a step boundary"):
            self.boundary_waits = not moments.fits()  # as where backward() steps the optimizer
            if self.boundary_waits or self.acting:
                return
            self.acting = True
            try:
                self.recordings.arguments.step_ends()
                self.recordings.timed(self.act)
            finally:
                self.acting = False
                self.recordings.boundary_took(time.perf_counter() - start)
                self.recordings.arguments.step_begins()
                self.step_began = marks.now_ns()  # what recording took is no time of the next step

    def act(self) -> None:
        if self.boundary <= 3 and not self.without_optimizer and not self.forward_seen:
            leader = self.leader() if self.leader is not None else None
            self.phases.find_roots(leader)
        self.memory.begin(self.models())
        self.forward_seen = False
        if not self.off:
            self.recordings.at_boundary()
        self.history.at_boundary()
        if not self.thread.is_over:
            act, self.at_next_boundary = self.at_next_boundary, None
            if act is not None:
                act()
        leaving = self.leave_at is not None and self.boundary >= self.leave_at
        recordings = self.recordings
        if leaving and recordings.active is None and not recordings.stacks_wait and not recordings.arguments.runs:
            self.detach()

    def wanted(self, boundary: int) -> Window | None:
        """The window that a recording of this rank which runs right after this boundary belongs to."""
        window = self.plan.at(boundary)
        if window is None or window in self.recordings.asked:  # a request has its own ranks
            return window
        return window if self.wants(None) else None

    # By the clock -------------------------------------------------------------------------------------------------
    def first_forward(self) -> None:
        with self.notes.guard("looking for the model"):
            here = self.thread.is_here()
            if process.is_data_worker() or (not here and (self.boundary > 0 or roots.optimizer_exists())):
                return
            if self.memory.waiting or not roots.optimizer_exists():
                self.find_models(anew=self.memory.waiting)
            if not process.is_helper():
                self.memory.begin(self.models())
                if here and self.by_time is not None:
                    self.by_time.model_runs()

    def find_models(self, anew: bool = False) -> None:
        """For jobs that never step an optimizer, and where all steps are to be seen. `anew`: also where the clock found
        some before: the job may have wrapped them since."""
        if self.boundary == 0 and (anew or not self.phases.roots) and not self.open:
            self.phases.find_roots()

    @property
    def leaving(self) -> bool:
        """All that was asked for is recorded, and the hooks go after the next step or two."""
        if self.leave_at is None or self.recordings.asked:
            return False
        return self.recordings.active is None or self.recordings.active[1] == STACKS

    def detach(self) -> None:
        """Leaves the process as it was before."""
        self.detached = True
        self.record_no_more("the hooks have left the process")
        self.history.stop()
        self.memory.stop()
        self.recordings.arguments.leave()
        self.marks.part(self.boundary, marks.LEFT)
        self.phases.uninstall()
        self.thread.requests.leave()
        self.graphs.uninstall()
        if self.other is not None:
            self.other.replaced.undo()
        if self.deepspeed is not None:
            self.deepspeed.leave()
        if self.by_time is not None:
            self.by_time.cancel()
        atexit.unregister(self.finish)
        self.marks.forget()
        self.tell(detached=True)
        if self.successor is not None:
            self.successor()

    def snapshot(self, request: Request) -> None:
        """Of the device's memory: what torch's allocator holds, as memory_viz and `stepscope report` read it."""
        if self.wants(request):
            self.notes.answer_request(request.name, memory_snapshot.write(self.notes))

    # The end ----------------------------------------------------------------------------------------------------
    def finish(self) -> None:
        """At the end of the process: what there is gets written, whole or not."""
        with self.notes.guard("writing at the end of the process"):
            if self.notes.pid != os.getpid():
                return
            self.acting = True  # for good: the clock does nothing any more
            if self.deepspeed is not None:
                self.deepspeed.finish()
            self.history.finish()
            self.memory.finish()
            self.recordings.finish()
            if self.notes.shown:
                self.tell(ended=True)
            self.record_no_more("the job ended before these steps")
        self.off = "the job ended"  # also where writing failed, or in a child that inherited this
