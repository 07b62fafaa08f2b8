"""The recorded windows of one process: what runs, what is prepared, what waits in memory, what was written."""

from __future__ import annotations

import math
import threading
import time

from . import loader_workers, marks, moments, plan, same_arguments, torch_profiler
from .budget import Budget
from .heap import Heap
from .recorder import SETTLES_S, Recorder, device_settles
from .termination import BeforeExec, Termination

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Collection

    from .capture import Capture
    from .gradient_use import GradientUse
    from .requests import Request
    from .settings import Window

SECONDS = "seconds"  # the window of the timer, beside the (first, end) pairs of steps
STACKS = "stacks"  # one step, or a quarter of a second, after a window, with Python stacks: the code behind the times
STACKS_S = 0.25
OVERDUE_S, OVERDUE = 1.0, 20  # a step with stacks that takes so long, and so many times as long as others, is none
_UNENDED = 50  # of the last files written, whose compressing may go on
MOST_EMPTY_STACKS = 5
LATER_STACKS = 3  # steps at most until another one, for ranges that the one before left open


class Recordings:
    def __init__(self, capture: Capture) -> None:
        self.capture = capture
        self.settings, self.notes, self.marks = capture.settings, capture.notes, capture.marks
        self.budget = Budget(capture.settings)
        self.termination = Termination(capture.notes, self.save_in_child)
        self.before_exec = BeforeExec(self.program_ends)
        self.takers: list[Callable[[], bool]] = []  # say whether the next step is another profiler's
        self.arguments = same_arguments.Watch(capture)
        self.reset()

    def reset(self) -> None:
        self.arguments.leave()
        self.windows = 0  # recorded so far
        self.heap = Heap()
        self.active: tuple[Recorder, Window | str] | None = None  # what records now
        self.asked: dict[Window | str, Request] = {}  # windows that a request asked for
        self.ready: Recorder | None = None  # prepared for the next boundary
        self.stacks_wait = 0  # steps at most, for ranges that the window before left open and for stacks_at
        self.stacks_at = 0  # the step that they are recorded in
        self.given_up = False  # their step took too long
        self.empty_stacks = 0  # of threads that did not call the model
        self.after_early = False  # they are of the early window, and those of a better one may follow
        self.waiting_told = False  # a user need not read it for every step
        self.time_is_up = False  # of the window in seconds
        self.seconds_end = 0.0  # of it, if all goes well
        self.stacks_by_clock = False  # the clock ends them, and no step
        self.without_batch: Recorder | None = None  # of frames, whose step loads nothing where others do
        self.batches = 0  # that were loaded before the running window
        self.loads = False  # a batch in each step of the last window
        self.done: list[Recorder] = []  # written
        self.all: list[Recorder] = []  # that ran, for what they cost

    def timed(self, act: Callable[[], None]) -> None:
        """Calls what belongs to recording; the time that no recorder counts is kept for the budget and the notes."""
        before, start = self.counted_s(), time.perf_counter()
        try:
            act()
        finally:
            if self.active is None and not self.comes_soon():
                with self.notes.guard("clearing up the heap"):
                    self.heap.recording_ended()
            rest = time.perf_counter() - start - (self.counted_s() - before)
            self.budget.other_s += max(0.0, rest)

    def comes_soon(self) -> bool:
        """Another recording, which takes the room that the last one left: it would wait for new pages else."""
        return self.stacks_wait > 0 or (not self.capture.off and self.capture.plan.comes_soon(self.capture.boundary))

    def boundary_took(self, seconds: float) -> None:
        """Of what runs, so that nobody takes it for the program's own time."""
        if self.active is not None and self.active[0].steps:
            self.active[0].boundary_s.append(seconds)

    def counted_s(self) -> float:
        running = self.all if self.ready is None else [*self.all, self.ready]
        return sum(one.spent_s + sum(one.cost_s.values()) for one in running)

    @property
    def busy(self) -> bool:
        """Something of torch's profiler runs or is prepared."""
        return self.active is not None or self.ready is not None

    def at_boundary(self) -> None:
        """Between two steps: ends, goes on with, begins or prepares what the plan has for this place."""
        capture = self.capture
        if not self.settings.nsys and any(takes() for takes in self.takers):
            self.give_way(whole=True)
            taken = capture.wanted(capture.boundary)
            if taken is not None:
                self.wait(taken, "DeepSpeed's FLOPS profiler measured it")
            return
        self.go_on(capture.wanted(capture.boundary))
        if capture.thread.is_over:
            return
        window = capture.wanted(capture.boundary)  # which a budget may just have ended
        if self.active is None and window is not None:
            unpaid = self.budget.unpaid(self.all, time.monotonic() - capture.armed_at)
            if unpaid or not moments.left.ended():
                self.wait(window, unpaid or moments.STILL_OPEN)
            else:
                self.start(window, capture.boundary)
        elif self.active is None and self.stacks_wait:
            self.stacks_wait -= 1
            if capture.boundary >= self.stacks_at and moments.left.ended():
                self.stacks_wait = 0
                self.start(STACKS, capture.boundary)
        elif self.active is None and self.ready is None and capture.wanted(capture.boundary + 1):
            self.ready = self.recorder("steps")
            self.ready.prepare()

    def wait(self, window: Window, why: str) -> None:
        """A step of this window goes by; told where somebody asked for just this one, or all of them go by."""
        last = self.capture.boundary + 1 >= window[1]
        unasked = self.settings.automatic and window not in self.asked
        if not self.waiting_told and not (unasked and (not last or window == plan.EARLY)):
            self.waiting_told = True
            self.notes.problem(f"step {self.capture.boundary} was not recorded: {why}")
        if last:
            self.answer(window, f"not recorded: {why}")

    def before(self, recorder: Recorder) -> list[Recorder]:
        return [other for other in self.all if other is not recorder]

    def recorder(self, kind: str) -> Recorder:
        self.windows += 1
        if self.settings.nsys:
            from .nvtx import NvtxRecorder

            self.capture.page_faults.leave_out()
            return NvtxRecorder(self.settings, self.notes, kind, self.windows - 1)
        recorder = Recorder(self.settings, self.notes, kind, self.windows - 1, stacks=kind == STACKS)
        self.capture.page_faults.leave_out(recorder.faults)
        return recorder

    def start(self, window: Window | str, number: int | None) -> None:
        self.arguments.leave()
        kind = window if isinstance(window, str) else "steps"
        recorder = self.ready if self.ready is not None and kind == "steps" else self.recorder(kind)
        self.ready = None
        with self.notes.guard("looking at the heap"):
            self.heap.recording_begins(warm=kind != "steps" or self.capture.boundary > 0)
        try:
            if kind != STACKS and self.capture.boundary > 0:  # also those that have made no step yet
                with self.notes.guard("looking for optimizers"):
                    self.capture.memory.look_for_optimizers()
            if kind == STACKS and number is not None:
                with self.notes.guard("looking for open ranges"):
                    recorder.open_before = moments.open_now()
            recorder.start(self.capture.models(), self.capture.models_beside(), self.capture.memory.living())
        except Exception as error:
            with self.notes.guard("taking back what a recording left"):
                recorder.leave()
            self.answer(window, f"not recorded: {type(error).__name__}: {error}")
            self.give_up(window)  # it would fail at the next step again
            raise
        self.capture.identity = recorder.identity
        recorder.asked = window in self.asked
        recorder.thread_of_request = self.capture.thread.requests.target is not None
        recorder.of_forward = self.capture.without_optimizer
        of_step = kind == STACKS and number is not None
        recorder.early = self.settings.automatic and (self.after_early if of_step else window == plan.EARLY)
        self.active = (recorder, window)
        self.batches = self.capture.batches
        self.stacks_by_clock = self.stacks_by_clock and window == STACKS
        self.all.append(recorder)
        if kind != STACKS:  # of which no step is lost that was asked for
            self.marks.part(self.capture.boundary, marks.PART_BEGINS)
        if number is not None:
            recorder.begin_step(number)
        if of_step and self.capture.by_time is not None:
            self.capture.by_time.watch(recorder, self.longest_s())
        if of_step and not recorder.thread_of_request:
            self.arguments.frames_begin(recorder.of_the_same)
        if not self.settings.nsys:  # whose report the end of the job completes
            self.termination.arm()
            self.before_exec.arm()

    def go_on(self, window: Window | None) -> None:
        """The running recording at the end of a step; `window`: what the plan has for the next."""
        if self.active is not None and self.active[0].rests and not self.capture.thread.is_over:
            if self.time_is_up or not moments.left.ended():
                self.end_resting()
                return
            self.active[0].resume()
            self.record_on(self.active[0])
            return
        if self.active is None or self.active[0].thread != threading.get_ident():
            return
        recorder, current = self.active
        recorder.end_step()
        capture = self.capture
        if self.unasked(current) and not capture.without_optimizer:
            self.release()  # before the first step of an optimizer: its steps are the better answer
            recorder.stop()
            recorder.profiler = None
            moments.left.leaves(None, in_step=False)
            self.marks.part(capture.boundary, marks.PART_WRITTEN)
        elif capture.thread.is_over and self.goes_on_elsewhere(recorder, current, window):
            try:
                recorder.rest()
            except Exception:
                self.give_up_here()
                raise
            for spool in recorder.spools[-_UNENDED:]:
                spool.ended()
            self.marks.part(capture.boundary, marks.PART_WRITTEN)
            self.marks.part(capture.boundary, marks.PART_BEGINS)
        elif not capture.thread.is_over and ((self.by_clock(current) and not self.time_is_up) or window == current):
            with self.notes.guard("clearing up the heap"):
                self.heap.recorded_step_ended()
            self.record_on(recorder)
        else:
            again = self.stacks_come_again(recorder)
            if recorder.kind == "steps":
                self.loads = 0 < len(recorder.steps) <= capture.batches - self.batches
            self.close(complete=True)
            early = self.capture.plan.ended == current
            if again:
                self.without_batch, self.stacks_at, self.stacks_wait = recorder, capture.boundary, LATER_STACKS
            if recorder.kind == "steps" and window is None and not early and self.stacks_follow(recorder):
                self.after_early, self.empty_stacks = recorder.early, 0
                last = capture.last_steps if self.settings.automatic and not recorder.early else ()
                self.stacks_at = next_long_step(last, capture.boundary)
                if moments.left.ended() and self.stacks_at == capture.boundary and not capture.thread.is_over:
                    self.start(STACKS, capture.boundary)
                else:
                    self.stacks_wait = self.stacks_at - capture.boundary + 2

    def goes_on_elsewhere(self, recorder: Recorder, current: Window | str, window: Window | None) -> bool:
        """On the thread of the next request."""
        if recorder.kind == SECONDS:
            return not self.time_is_up
        return window == current and recorder.kind == "steps"

    def nothing_came(self) -> None:
        """What this thread did, which ends, is no step: it did not call the model."""
        if self.active is None or self.active[0].thread != threading.get_ident() or self.active[0].rests:
            return
        recorder, window = self.active
        if window == STACKS:
            self.discard()
            self.empty_stacks += 1
            again = not self.stacks_by_clock and self.empty_stacks < MOST_EMPTY_STACKS
            self.stacks_at, self.stacks_wait = self.capture.boundary, LATER_STACKS if again else 0
        else:
            recorder.drop_part()
            self.marks.part(self.capture.boundary, marks.PART_WRITTEN)
            self.marks.part(self.capture.boundary, marks.PART_BEGINS)
        moments.left.leaves((), in_step=False)  # none is open where a thread ends

    def give_up_here(self) -> None:
        """What runs on this thread and failed: nobody could go on with it."""
        if self.active is None or self.active[0].thread != threading.get_ident():
            return
        recorder, window = self.active
        self.release()
        self.give_up(window)
        self.answer(window, "cut short")
        recorder.leave()

    def end_resting(self) -> None:
        """What rests, on any thread: it is written."""
        self.close(complete=self.time_is_up)

    def stacks_come_again(self, recorder: Recorder) -> bool:
        """Once, where no batch is loaded in their step: at the end of a pass, say, if the job loads one ahead."""
        once = recorder.kind == STACKS and not self.stacks_by_clock and self.without_batch is None
        return once and not recorder.early and self.loads and self.capture.batches == self.batches

    def gradients(self) -> GradientUse | None:
        """What looks at gradients in the step with stacks; None: nothing does."""
        active = self.active  # which a call by the clock may end between two looks at it
        return None if active is None else active[0].gradients

    def with_stacks(self) -> bool:
        return self.active is not None and self.active[0].has_frames

    def by_clock(self, window: Window | str) -> bool:
        return window == SECONDS or (window == STACKS and self.stacks_by_clock)

    def unasked(self, window: Window | str) -> bool:
        """Is it some time of a job without steps, of a length that nobody said?"""
        return self.settings.automatic and SECONDS not in self.asked and self.by_clock(window)

    def record_on(self, recorder: Recorder) -> None:
        """One more step, unless that would cost more than it may."""
        capture = self.capture
        if not may_record_again():
            recorder.begin_step(capture.boundary)
            return
        assert self.active is not None
        window = self.active[1]
        unknown_cost = self.budget.asked and recorder.part == 0 and bool(recorder.steps)  # until a part is written
        due = window != plan.EARLY and recorder.part_is_due(self.left_s(window))
        if recorder.in_parts and (unknown_cost or due):
            self.next_part(recorder)
            if self.active is None:
                return
        reason = self.budget.exceeded(recorder, self.before(recorder), time.monotonic() - capture.armed_at)
        if reason is None:
            recorder.begin_step(capture.boundary)
            return
        self.notes.problem(reason)
        self.give_up(window)
        if recorder.part_steps:
            self.close(complete=True)
        else:
            if self.is_last(recorder):
                torch_profiler.gives_device_back()
            recorder.stop()
            recorder.profiler = None
            moments.left.leaves(None, in_step=False)
            self.drop(recorder, "cut short by the budget")

    def left_s(self, window: Window | str) -> float:
        """How long a running window goes on, if steps take as long as the last one."""
        if isinstance(window, str):
            return self.seconds_end - time.monotonic()
        return (window[1] - self.capture.boundary) * self.capture.step_s

    def next_part(self, recorder: Recorder) -> None:
        assert self.active is not None
        window, before = self.active[1], recorder.part
        self.note_batches(recorder)
        if not recorder.cut():
            last = f" after step {recorder.steps[-1]}" if recorder.steps else ""
            if not self.unasked(window):
                self.notes.problem(f"the window ended{last}: {moments.STILL_OPEN}")
            self.give_up(window)
            self.drop(recorder, "cut short by a range that did not end")
        elif recorder.part > before:
            self.marks.part(self.capture.boundary, marks.PART_WRITTEN)
            self.marks.part(self.capture.boundary, marks.PART_BEGINS)

    def give_up(self, window: Window | str) -> None:
        """Its other steps are not recorded."""
        if not isinstance(window, str):
            self.capture.plan.ended = window

    def withdraw(self, window: Window | str) -> None:
        """Nobody wants it any more: what runs ends with this step."""
        if self.active is not None and self.active[1] == window:
            self.time_is_up = True
            self.give_up(window)
            return
        self.answer(window, "not recorded: withdrawn")
        if not isinstance(window, str):
            self.capture.plan.windows.remove(window)

    def release(self) -> None:
        """Nothing records any more."""
        self.active = None
        self.termination.disarm()
        self.before_exec.disarm()

    def drop(self, recorder: Recorder, how: str) -> None:
        """Ends a window whose running part holds nothing."""
        assert self.active is not None
        self.answer(self.active[1], how)
        self.release()
        self.marks.part(self.capture.boundary, marks.PART_WRITTEN)
        self.done.append(recorder)
        self.capture.tell_context()

    def is_last(self, recorder: Recorder) -> bool:
        """As far as is known: somebody may ask for more."""
        boundary = self.capture.boundary
        no_steps = recorder.kind != "steps" and boundary == 0
        return (
            not recorder.early
            and (no_steps or self.capture.plan.over(boundary))
            and not self.stacks_follow(recorder)
            and not self.stacks_come_again(recorder)
        )

    def stacks_follow(self, recorder: Recorder) -> bool:
        """The code behind the times costs a step, or some time, of its own; not of a shortened window."""
        no_steps = recorder.kind == SECONDS and self.capture.boundary == 0
        return (
            recorder.kind in ("steps", SECONDS)
            and "stack" not in self.settings.features
            and may_record_again()
            and not (recorder.early and self.has_workers())  # who get ahead while it is written, until the main window
            and not self.budget.asked
            and not self.settings.nsys
            and (no_steps or self.capture.plan.at(self.capture.boundary + 1) is None)
        )

    def has_workers(self) -> bool:
        return bool((self.capture.loader or {}).get("workers"))

    def close(self, complete: bool) -> None:
        """Ends the running recording and hands it to its file."""
        if self.active is None:
            return
        recorder, window = self.active
        self.note_batches(recorder)
        if complete and self.is_last(recorder):  # at the end of the process it would be too late for it
            torch_profiler.gives_device_back()
        recorder.complete = complete
        recorder.stop()
        self.release()
        try:
            self.write(recorder, complete)
        finally:
            moments.left.leaves(recorder.left_open, in_step=self.by_clock(window))
        self.answer(window, "recorded" if complete else "cut short")

    def note_batches(self, recorder: Recorder) -> None:
        capture = self.capture
        if capture.batches_asked:
            ready = round(1000 * capture.batches_ready / capture.batches_asked)
            recorder.settings_of_torch["stepscope_batches_ready_permille"] = str(ready)
            recorder.settings_of_torch.update(loader_workers.busy_with())
            workers = (capture.loader or {}).get("workers")
            if workers:
                recorder.settings_of_torch["stepscope_loader_workers"] = str(workers)

    def give_way(self, whole: bool = False) -> None:
        """To a measurement of FLOP: what records ends here, and its window goes on afterwards as another recording.
        `whole`: between two steps."""
        if self.settings.nsys:  # which collects no further once a window has ended
            return
        self.ready = None
        if self.active is None or self.active[0].thread != threading.get_ident():
            return
        recorder = self.active[0]
        if whole:
            recorder.end_step()
        self.end_open_ranges(recorder)
        self.close(complete=False)

    def end_open_ranges(self, recorder: Recorder) -> None:
        """Of ours, on this thread: torch would write their end to memory that it gave back."""
        self.capture.end_ranges()
        if recorder.ranges is not None:
            recorder.ranges.end_open()

    def answer(self, window: Window | str, how: str) -> None:
        """To the request that asked for this window, if one did."""
        request = self.asked.pop(window, None)
        if request is not None:
            self.notes.answer_request(request.name, how)

    def write(self, recorder: Recorder, complete: bool) -> None:
        superseded = self.superseded_by(recorder)
        recorder.export(complete)
        self.marks.part(self.capture.boundary, marks.PART_WRITTEN)
        self.done.append(recorder)
        for other in superseded if recorder.spools else ():  # of a time without any work nothing is written
            other.take_back()
            self.done.remove(other)
        self.capture.tell_context()

    def superseded_by(self, recorder: Recorder) -> list[Recorder]:
        """What was recorded so far and is less worth: forward passes before a training began, and in the automatic
        mode what came early, or, of a training, a stretch of time; of a server it is its steps; and frames of a step
        that loads no batch, where others do, or of an early one."""
        if recorder.kind == STACKS:
            worse = [other for other in self.done if other.kind == STACKS and other.early]
            return [*worse, *(other for other in self.done if other is self.without_batch)] if recorder.steps else []
        if recorder.asked or recorder.kind not in ("steps", SECONDS):
            return []
        lesser = SECONDS if recorder.kind == "steps" else "steps" if self.capture.without_optimizer else None

        def is_worse(other: Recorder) -> bool:
            if other.asked:
                return False
            if other.of_forward and not recorder.of_forward and other.kind != SECONDS:
                return True
            early = other.early and other.kind != STACKS and len(other.steps) <= len(recorder.steps)
            more = recorder.complete or len(other.steps) <= len(recorder.steps)  # else its thread, or the job, ended
            return self.settings.automatic and ((other.kind == lesser and more) or early)

        return [other for other in self.done if is_worse(other)]

    # Seconds: called on the main thread ----------------------------------------------------------------------------
    def start_seconds(self, seconds: float, request: Request | None = None) -> bool:
        """Whether it began. `request`: who asked, where that was not before the job started."""
        capture = self.capture
        if not capture.wants(request):
            if request is not None:
                self.notes.answer_request(request.name, f"not asked: only ranks {request.ranks}")
            return False
        if self.active is not None or capture.off or not may_start(self):
            if request is not None and capture.off:
                capture.refuse(request)
            elif request is not None:
                self.notes.answer_request(request.name, "not recorded: another recording ran")
            return False
        if not capture.phases.roots:
            capture.phases.find_roots()
        if request is not None:
            self.asked[SECONDS] = request
        self.time_is_up = False
        self.seconds_end = time.monotonic() + seconds
        self.start(SECONDS, None)
        return True

    def start_stacks(self) -> bool:
        """The code behind the seconds that were just recorded; whether it began."""
        last = self.done[-1] if self.done else None
        if self.busy or self.capture.off or last is None or last.kind != SECONDS or not self.stacks_follow(last):
            return False
        self.time_is_up, self.stacks_by_clock = False, True
        self.start(STACKS, None)
        self.seconds_end = time.monotonic() + STACKS_S
        return True

    def longest_s(self) -> float:
        """That a step with stacks may take: behind the last one of a job may come all that it has no steps for."""
        times = sorted(seconds for number, seconds in self.capture.last_steps if number > 0)
        return max(OVERDUE_S, OVERDUE * times[len(times) // 2], 3 * times[-1]) if times else math.inf

    def end_overdue(self, recorder: Recorder) -> bool:
        """False: not here."""
        if self.active is None or self.active[0] is not recorder or recorder.thread != threading.get_ident():
            return True
        if not moments.fits():
            return False
        if not device_settles(SETTLES_S):
            return True  # to stop would hang the job: it goes on until the step ends, or the job
        self.end_open_ranges(recorder)
        self.discard()
        if not recorder.early and not self.given_up:  # it may have been a long step: once more, in one that is none
            self.given_up = True
            self.stacks_at, self.stacks_wait = self.capture.boundary + 1, LATER_STACKS
        return True

    def end_left_behind(self) -> None:
        """Here, on a thread that makes no steps any more; those of its window that are to come are for another."""
        assert self.active is not None
        recorder = self.active[0]
        if recorder.rests:
            return
        self.arguments.leave()
        self.end_open_ranges(recorder)
        unasked = self.active[1] == SECONDS and SECONDS not in self.asked
        left_s = self.seconds_end - time.monotonic() if unasked else 0.0
        if recorder.steps or self.by_clock(self.active[1]):
            self.close(complete=False)
        else:
            self.discard()
        if left_s > 0 and self.capture.by_time is not None:
            self.capture.by_time.begin_rest(left_s)

    def close_unfinished(self) -> None:
        if self.holds_no_step():
            self.discard()
        else:
            self.close(complete=False)

    def holds_no_step(self) -> bool:
        """Stacks of what followed the last step, it seems: the code behind no time of a step."""
        assert self.active is not None
        recorder, window = self.active
        return window == STACKS and not self.by_clock(window) and not recorder.steps

    def discard(self) -> None:
        """Nothing of them stays."""
        assert self.active is not None
        self.arguments.leave()
        recorder = self.active[0]
        if recorder.ranges is not None:
            recorder.ranges.calls = {}  # which say nothing of a step
        recorder.stop()
        recorder.profiler = None
        self.release()
        self.marks.part(self.capture.boundary, marks.PART_WRITTEN)
        moments.left.leaves(None, in_step=True, before=recorder.open_before)
        self.capture.tell_context()

    def end_seconds(self) -> bool:
        """False: not here. The end of a step does it then, if one comes before the clock tries again."""
        if self.active is None or not self.by_clock(self.active[1]):
            return True
        self.time_is_up = True
        if self.active[0].rests:
            return self.end_between_requests()
        if self.active[0].thread != threading.get_ident() or not moments.fits():
            return False
        self.end_open_ranges(self.active[0])
        self.close(complete=True)
        return True

    def end_between_requests(self) -> bool:
        """What rests is ended, if no request runs that may go on with it; whether nothing records."""
        if not self.capture.thread.one_request.acquire(blocking=False):
            return False
        try:
            if self.active is not None and self.active[0].rests:
                self.end_resting()
            return self.active is None
        finally:
            self.capture.thread.one_request.release()

    # The end --------------------------------------------------------------------------------------------------------
    def finish(self) -> None:
        self.arguments.leave()
        if self.active is not None and self.is_lost():
            self.notes.problem("a recording was lost: its thread still ran when the job ended")
            self.active[0].leave()
            self.release()
        if self.active is not None and self.settled():
            self.close_unfinished()
        for recorder in self.done:
            for spool in recorder.spools:
                spool.ended()

    def program_ends(self) -> None:
        """Another program is about to take its place in this process."""
        with self.notes.guard("writing before another program"):
            if self.active is not None and self.active[0].thread == threading.get_ident() and self.settled():
                self.close_unfinished()

    def is_lost(self) -> bool:
        """Only the thread that records can stop it, and waits for something while the job ends."""
        assert self.active is not None
        recorder = self.active[0]
        return not self.settings.nsys and not recorder.rests and recorder.thread != threading.get_ident()

    def settled(self) -> bool:
        if device_settles():
            return True
        self.notes.problem("the GPU was still busy when the process ended: the running recording was given up")
        return False

    def save_in_child(self) -> None:
        """In a child that was forked off when SIGTERM ended this process."""
        if self.active is not None:
            if self.holds_no_step():
                return
            recorder, _ = self.active
            recorder.stop()
            recorder.export(complete=False)
            self.marks.part(self.capture.boundary, marks.PART_WRITTEN)


LONG = 1.5  # times the median: such a step does something that the others do not
LONGEST_PERIOD = 10  # steps


def next_long_step(last: Collection[tuple[int, float]], boundary: int) -> int:
    """The next step that takes long, where every so many do: only in such a one what they do can be seen. `last`:
    numbers and seconds of steps before; without any of these, `boundary` itself."""
    times = sorted(seconds for _, seconds in last)
    if not times:
        return boundary
    usual = times[len(times) // 4]  # as many as half of them may be long
    # Half as much longer as the third longest is: what writing a recording adds to the step behind it is less.
    far = max(LONG * usual, (usual + times[-3:][0]) / 2)
    long = [number for number, seconds in last if seconds > far][-3:]  # the first step of a job is long as well
    periods = [after - before for before, after in zip(long, long[1:])]
    if len(periods) < 2 or len(set(periods)) > 1 or not 1 < periods[0] <= LONGEST_PERIOD:  # two come by chance
        return boundary
    return boundary + (long[-1] - boundary) % periods[0]


def may_start(recordings: Recordings) -> bool:
    return may_record_again() or not recordings.done


def may_record_again() -> bool:
    """CUPTI before CUDA 12.6 may crash a job with CUDA graphs when it attaches a second time."""
    import torch

    cuda = getattr(torch, "cuda", None)
    if cuda is None or not cuda.is_initialized():  # CUPTI stays out (torch_profiler.activities)
        return True
    version = getattr(torch.version, "cuda", None)
    return not version or tuple(int(part) for part in version.split(".")[:2]) >= (12, 6)
