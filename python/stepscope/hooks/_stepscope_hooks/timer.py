"""What happens by the clock: windows in seconds, requests in jobs without steps, the search for the model there.

A thread waits, and asks the main thread to act between two bytecodes: torch.profiler sees the thread that starts it
(and autograd's). Py_AddPendingCall is how Python itself delivers such requests; a main thread in C code runs it when it
returns. Another thread cannot be asked so: where that of the steps is not the main one, it acts behind a forward pass.
"""

from __future__ import annotations

import ctypes
import heapq
import math
import sys
import threading
import time

from . import moments, plan, process, roots
from .recordings import SECONDS

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

    from .capture import Capture
    from .recorder import Recorder
    from .requests import Request

RETRY_S = 0.05
AGAIN_S = 0.2  # until another recording may have ended
LOOK_S = 1.0  # for requests
QUIET_S = 0.3  # for the end of a step or a forward pass
STACKS_WAIT_S = 12.0  # for a moment at which one with Python stacks may follow: ranges of the one before have ended
WAIT_S = 60.0  # for a moment at which a recording may start
NO_PASS = f"the model was not called within {WAIT_S:.0f} s on the thread that calls it"
PASS_S = 1.0  # for a forward pass to end on the thread of the steps
MOST_EMPTY = 5  # windows that nobody asked for, and in which nobody asked a service for anything
DENSE_S = 0.1  # between two passes on another thread: its frames end behind a pass
SEARCHES_S = (3.0, 10.0, 30.0, 100.0)  # after the import of torch: big models take their time to load
_CALL = ctypes.CFUNCTYPE(ctypes.c_int, ctypes.c_void_p)


class Timer:
    """`window`: False where the asked-for window is not this process's, as in a forked child."""

    def __init__(self, capture: Capture, window: bool = True) -> None:
        self.capture = capture
        settings = capture.settings
        self.span = settings.seconds or (plan.FALLBACK_SECONDS if settings.automatic else None)
        if not window:
            self.span = None
        self.model_ran = False
        self.model_ran_at = 0.0
        self.settled = False  # the window that nobody asked for has begun, and a model ran before or in it
        self.passes = 0  # forward passes done when it began
        self.began_at = 0.0  # that window
        self.empty = 0  # such windows that saw nothing
        self.left_behind: Recorder | None = None  # is about to end
        self.cancelled = threading.Event()
        self.end_at = 0.0  # of the window, if all goes well
        self.planned: list[tuple[float, int, Callable[[], None]]] = []  # a heap: moment, order, what
        self.order = 0
        self.calls: list[Any] = []  # kept: C holds pointers into them

    def start(self) -> None:
        began = self.capture.armed_at
        if self.span is not None:
            if self.span[0] <= 0 and _on_main_thread():
                self.begin()
            elif self.capture.settings.automatic:
                self.at(began + self.span[0], self.begin_unasked)
            else:
                self.at(began + self.span[0], self.begin_between)
        for seconds in SEARCHES_S:
            self.at(began + seconds, self.search)
        threading.Thread(target=self.run, name="stepscope-timer", daemon=True).start()

    def cancel(self) -> None:
        self.cancelled.set()

    def drop_window(self) -> None:
        """The window in seconds that nobody asked for is not needed: the job has steps."""
        self.span = None

    def model_runs(self) -> None:
        """For the first time: before that there was nothing to record."""
        self.model_ran = True
        self.model_ran_at = time.monotonic()
        if self.span is None or not self.capture.settings.automatic:
            return
        if self.capture.recordings.active is not None:
            self.settled = True
        else:
            self.at(time.monotonic() + plan.AFTER_FIRST_FORWARD_S, self.begin_service)

    def end_left_behind(self, recorder: Recorder) -> None:
        """The model is called on another thread by now: what runs on the main one sees nothing of it."""
        recordings = self.capture.recordings

        def act() -> None:
            if recordings.active is not None and recordings.active[0] is recorder and moments.fits():
                recordings.end_left_behind()
            self.left_behind = None  # else with one of the next calls

        if recorder is not self.left_behind and recorder.thread == threading.main_thread().ident:
            self.left_behind = recorder
            self.at(time.monotonic(), lambda: self.on_main_thread(act))

    def begin_rest(self, seconds: float) -> None:
        """Of the window that was asked for before the job began: the thread that it began on makes no more steps."""

        until = time.monotonic() + seconds
        begun: list[bool] = []

        def act() -> None:
            left_s = until - time.monotonic()
            if not begun and left_s > RETRY_S and moments.fits() and moments.left.ended():
                begun.append(False)
                begun[0] = self.capture.recordings.start_seconds(left_s)

        def done() -> bool:
            return bool(begun) or time.monotonic() > until

        def then() -> None:
            if begun == [True]:
                self.at(until, self.end)

        if self.span is not None and not self.capture.settings.automatic:
            self.at(time.monotonic() + RETRY_S, lambda: self.here_or_between_steps(act, done, then))

    def at(self, moment: float, what: Callable[[], None]) -> None:
        self.order += 1
        heapq.heappush(self.planned, (moment, self.order, what))

    def run(self) -> None:
        with self.capture.notes.guard("acting by the clock"):
            while not self.cancelled.wait(self.pause()):
                now = time.monotonic()
                while self.planned and self.planned[0][0] <= now:
                    heapq.heappop(self.planned)[2]()
                with self.capture.notes.guard("reading a request"):
                    self.take_requests()

    def pause(self) -> float:
        if not self.planned:
            return LOOK_S
        look_s = AGAIN_S if self.span is not None and not self.settled else LOOK_S  # what is planned may come sooner
        return min(look_s, max(0.0, self.planned[0][0] - time.monotonic()))

    def on_main_thread(self, function: Callable[[], None]) -> None:
        """Returns once the function has run there."""
        came, done = threading.Event(), threading.Event()

        def call(_: object) -> int:
            if not self.capture.acting:  # it would be in the middle of writing a recording
                with self.capture.notes.guard("acting by time"):
                    self.capture.recordings.timed(function)
                done.set()
            came.set()
            return 0

        self.calls.append(_CALL(call))
        while not done.is_set() and not self.cancelled.is_set():
            came.clear()
            while ctypes.pythonapi.Py_AddPendingCall(self.calls[-1], None) != 0:  # its queue is full
                time.sleep(RETRY_S)
            while not came.wait(RETRY_S):
                if self.cancelled.is_set():
                    return
            if not done.is_set():
                time.sleep(RETRY_S)

    def on_thread_of_steps(self, function: Callable[[], None]) -> None:
        """Returns once the function has run there; or, if that is not the main thread, has not for a while."""
        if self.steps_on_main_thread():
            self.on_main_thread(function)
        else:
            self.behind_a_pass(function)

    def behind_a_pass(self, function: Callable[[], None]) -> None:
        began, ended = threading.Event(), threading.Event()
        lock, given_up = threading.Lock(), False

        def act() -> None:
            with lock:  # nobody would end what began after that
                if given_up:
                    return
                began.set()
            try:
                function()
            finally:
                ended.set()

        self.capture.at_next_boundary = act
        until = time.monotonic() + PASS_S
        while not began.is_set() and time.monotonic() < until and not self.cancelled.wait(RETRY_S):
            pass
        with lock:
            given_up = not began.is_set()
        self.capture.at_next_boundary = None
        while began.is_set() and not ended.wait(RETRY_S) and not self.cancelled.is_set():  # it may write a recording
            pass

    def steps_on_main_thread(self) -> bool:
        return self.capture.thread.ident == threading.main_thread().ident

    def here_or_between_steps(
        self, act: Callable[[], None], done: Callable[[], bool], then: Callable[[], None]
    ) -> None:
        """Calls `act` on the main thread, again and again until it is done. A rank that waits for others in its
        backward pass is hardly ever found elsewhere by the clock, so the end of its step is taken, too."""
        if not done():
            self.capture.at_next_boundary = act
            if self.steps_on_main_thread():
                self.on_main_thread(act)
        if not done() and not self.cancelled.is_set():
            self.at(time.monotonic() + RETRY_S, lambda: self.here_or_between_steps(act, done, then))
            return
        self.capture.at_next_boundary = None
        then()

    def search(self) -> None:
        """For the model of a job that never steps an optimizer."""
        if self.capture.phases.roots or self.capture.boundary > 0 or roots.optimizer_exists():
            return
        self.on_main_thread(self.capture.find_models)

    # The window that was asked for before the job started ---------------------------------------------------------
    def begin_between(self) -> None:
        if self.span is None or self.settled or (self.capture.settings.automatic and roots.optimizer_exists()):
            return
        recordings = self.capture.recordings
        if recordings.active is not None:  # of steps of the service: this comes behind them, and takes their place
            self.at(time.monotonic() + AGAIN_S, self.begin_between)
            return
        begun: list[bool] = []
        until = time.monotonic() + WAIT_S

        def act() -> None:
            if not done() and recordings.active is None and moments.fits() and moments.left.ended():
                begun.append(True)
                self.begin()

        def done() -> bool:
            if not begun and moments.left.any and time.monotonic() > until:
                begun.append(False)
                self.capture.notes.problem(f"the window in seconds was not recorded: {moments.STILL_OPEN}")
            return bool(begun) or self.settled or self.span is None

        self.here_or_between_steps(act, done, lambda: None)

    def begin_unasked(self) -> None:
        """Of a job that has no model, as far as can be seen, or none that is called. What prepares one is not it."""
        if self.span is None or self.settled:
            return
        since = time.monotonic() - self.capture.armed_at
        imports = since < plan.IMPORTS_S and _imports()  # before a search for the model, which waits for its end
        warms_up = self.model_ran and self.capture.boundary == 0  # begin_service waits for that
        if imports or warms_up or (not self.model_ran and since < plan.PREPARES_S and self.model_waits()):
            self.at(time.monotonic() + plan.FALLBACK_SECONDS[0], self.begin_unasked)
        else:
            self.begin_between()

    def model_waits(self) -> bool:
        """There is a model, and its first call will be seen."""
        self.search()
        return self.capture.phases.first_call is not None and bool(self.capture.phases.roots)

    def begin_service(self) -> None:
        """A job that has counted no steps by now and built no optimizer only answers, and may be short."""
        if self.span is not None and not self.settled and self.capture.boundary == 0:
            if self.capture.passes < plan.WARM_PASSES and time.monotonic() < self.model_ran_at + plan.WARMS_UP_S:
                self.at(time.monotonic() + AGAIN_S, self.begin_service)
                return
            self.span = (self.span[0], self.span[0] + plan.SERVICE_S)
            self.begin_between()

    def begin(self) -> None:
        capture, span = self.capture, self.span
        if span is None or capture.off or self.cancelled.is_set() or process.is_data_worker() or process.is_helper():
            return
        if capture.recordings.start_seconds(span[1] - span[0]):
            self.settled = self.model_ran or not capture.settings.automatic
            self.passes, self.began_at = capture.passes, time.monotonic()
            self.end_at = time.monotonic() + span[1] - span[0]
            if capture.settings.automatic:
                before = process.resident_bytes()
                self.at(time.monotonic() + plan.ENOUGH_S, lambda: self.end_early(before))
            else:
                self.at(self.end_at, self.end)

    def end_early(self, resident: int) -> None:
        """Of a window that nobody asked for, which began with so many bytes in memory."""
        now, done = time.monotonic(), self.capture.passes - self.passes
        grown = process.resident_bytes() - resident
        is_large = grown > (plan.LARGE_BYTES if done > 0 else plan.LARGEST_BYTES)
        if is_large or done >= plan.ENOUGH_PASSES or now >= self.end_at:
            self.end()
        else:
            self.at(min(now + plan.ENOUGH_S, self.end_at), lambda: self.end_early(resident))

    def end(self, then: Callable[[], None] | None = None) -> None:
        """Best between two steps or forward passes, where no range is open that would keep the next recording off."""
        capture = self.capture
        begun, ended = threading.Event(), threading.Event()
        answers: list[bool] = []
        running = capture.recordings.active
        on_main_thread = running is None or running[0].thread == threading.main_thread().ident

        def act() -> None:
            begun.set()
            try:
                answers.append(capture.recordings.end_seconds())
            finally:  # what is waited for below must come, also where it could not be written
                ended.set()

        if on_main_thread == self.steps_on_main_thread():
            capture.at_next_boundary = act
            if not begun.wait(QUIET_S):
                capture.at_next_boundary = None
        if not begun.is_set() and running is not None and running[0].rests:  # no thread has it
            with capture.notes.guard("ending a recording between two requests"):
                act()
        if not begun.is_set() and on_main_thread:
            self.on_main_thread(act)
        elif not begun.is_set():
            self.behind_a_pass(act)
        # It is written meanwhile. The thread may make no pass any more.
        while begun.is_set() and not ended.wait(RETRY_S) and not self.cancelled.is_set():
            pass
        if answers == [False] or (not answers and running is not None and capture.recordings.active is running):
            self.at(time.monotonic() + RETRY_S, lambda: self.end(then))
        elif then is None and self.saw_nothing():
            self.settled = False
            self.empty += 1
            if self.empty >= MOST_EMPTY:
                return
            capture.recordings.done.pop()  # it has no file
            self.at(time.monotonic() + AGAIN_S, self.begin_when_called)
        else:
            wait_s = STACKS_WAIT_S if on_main_thread else WAIT_S  # where another one calls nothing, nothing can begin
            if not on_main_thread and not self.is_asked_often():
                if then is not None:
                    then()
                return
            self.record_stacks(then, until=time.monotonic() + (wait_s if then is None else STACKS_WAIT_S / 4))

    def is_asked_often(self) -> bool:
        """Frames on another thread than the main one end behind a pass there, and cost all threads until then."""
        passes, took_s = self.capture.passes - self.passes, time.monotonic() - self.began_at
        return passes > 0 and took_s / passes <= DENSE_S

    def saw_nothing(self) -> bool:
        """The window that nobody asked for is over, and nobody asked the service for anything in it."""
        done = self.capture.recordings.done
        of_seconds = self.model_ran and bool(done) and done[-1].kind == SECONDS
        return self.capture.settings.automatic and of_seconds and not done[-1].spools

    def begin_when_called(self) -> None:
        if self.capture.passes > self.passes and not self.capture.recordings.busy:
            self.begin_between()
        else:
            self.at(time.monotonic() + AGAIN_S, self.begin_when_called)

    def record_stacks(self, then: Callable[[], None] | None, until: float) -> None:
        """Of the code behind what was just recorded, if a moment for that comes soon."""
        recordings = self.capture.recordings
        begun: list[bool] = []

        def act() -> None:
            if not moments.fits() or not moments.left.ended():
                return
            begun.append(False)  # also where it raises: no second try
            begun[0] = recordings.start_stacks()

        self.on_thread_of_steps(act)
        if begun == [True]:
            self.at(recordings.seconds_end, lambda: self.end(then))
        elif not begun and time.monotonic() < until and not self.cancelled.is_set():
            self.at(time.monotonic() + RETRY_S, lambda: self.record_stacks(then, until))
        elif then is not None:
            then()

    def watch(self, recorder: Recorder, seconds: float) -> None:
        """Ends a step with stacks that goes on for longer."""
        if seconds < math.inf and recorder.thread == threading.main_thread().ident:
            self.at(time.monotonic() + seconds, lambda: self.end_overdue(recorder))

    def end_overdue(self, recorder: Recorder) -> None:
        recordings = self.capture.recordings
        if recordings.active is None or recordings.active[0] is not recorder:
            return
        ended: list[bool] = []
        self.on_main_thread(lambda: ended.append(recordings.end_overdue(recorder)))
        if ended == [False]:
            self.at(time.monotonic() + LOOK_S, lambda: self.end_overdue(recorder))

    # Requests in seconds -------------------------------------------------------------------------------------------
    def take_requests(self) -> None:
        capture = self.capture
        if capture.detached:
            return
        request = capture.requests.poll_timed()
        while request is not None:
            if not process.is_data_worker() and not process.is_helper():
                self.plan_request(request)
            request = capture.requests.poll_timed()

    def plan_request(self, request: Request) -> None:
        if request.what == "memory":
            self.on_main_thread(lambda: self.capture.snapshot(request))
            return
        wait_s = request.start_unix_ns / 1e9 - time.time()

        taken: list[None] = []  # while it begins, nobody gives it up
        started: list[bool] = []

        def act() -> None:
            if not taken and moments.fits() and moments.left.ended():
                taken.append(None)
                self.passes, self.began_at = self.capture.passes, time.monotonic()
                begins = False
                try:
                    begins = self.capture.recordings.start_seconds(request.seconds, request)
                finally:
                    started.append(begins)

        def done() -> bool:
            if not taken and time.time() > request.start_unix_ns / 1e9 + WAIT_S:
                taken.append(None)
                why = moments.NO_MOMENT if self.steps_on_main_thread() else NO_PASS
                self.capture.notes.answer_request(request.name, f"not recorded: {why}")
                started.append(False)
            return bool(started)

        def then() -> None:
            if started == [True]:
                self.at(self.capture.recordings.seconds_end, lambda: self.end(leave))
            else:
                leave()

        def leave() -> None:
            if request.detach:
                self.on_main_thread(self.capture.detach)

        begin = time.monotonic() + max(0.0, wait_s)
        self.at(begin, lambda: self.here_or_between_steps(act, done, then))


def _imports() -> bool:
    """Whether the main thread is importing something right now; called on another one."""
    frame = sys._current_frames().get(threading.main_thread().ident or 0)
    while frame is not None:
        if moments.imports(frame):
            return True
        frame = frame.f_back
    return False


def _on_main_thread() -> bool:
    return threading.current_thread() is threading.main_thread()
