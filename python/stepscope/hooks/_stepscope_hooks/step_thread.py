"""Which thread runs the steps, when it is not the main one: a service may call its model in a thread of a pool.

torch's profiler records the thread that starts it, so all that is done between two steps is done on that thread. An
optimizer says by itself where it steps. A forward pass may be a helper's own, and of threads that live for one request
each none is worth following: one that calls the model again and again is. Where there are only such that come and go,
each of them is a step (request_threads.py).
"""

from __future__ import annotations

import contextlib
import os
import threading
import time
import weakref

from . import marks, moments, process, roots
from .request_threads import RequestThreads

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

    from .capture import Capture

_CALLS = 3  # forward passes that a thread begins while that of the steps makes none
# Threads that called the model and are gone, soon after they were followed if they were: each request has its own.
_GONE, _SOON_S = 3, 5.0
_LONGEST_REQUEST_NS = 5_000_000_000  # a thread that lasts longer is none of a request


class StepThread:
    """The thread of the steps, and what is done when another one takes its place."""

    def __init__(self, capture: Capture) -> None:
        self.capture = capture
        self.ident = threading.main_thread().ident  # 0: that of the next request
        self.callers = Callers()
        self.has_ended = False  # after it had trained
        self.is_over = False  # no further step comes on it
        self.requests = RequestThreads(self)
        self.requests_tried = False
        self.one_request = threading.Lock()  # held by the request that is followed
        self.request_began = 0  # when that began
        self.passes_before = 0  # forward passes done before it

    def is_here(self) -> bool:
        return threading.get_ident() == self.ident

    def called_elsewhere(self) -> bool:
        """The model, on another thread. Whether that is the one of the steps from now on."""
        capture = self.capture
        self.leave_behind()
        if not capture.without_optimizer or capture.acting or capture.off:
            return False
        if self.requests.target is not None and (self.ident != 0 or self.requests.is_one(this_thread())):
            return False
        try:
            if self.callers.calls_again(capture.passes):
                if self.requests.target is not None and not capture.recordings.end_between_requests():
                    return False
                if not self.follow():
                    return False
                self.requests.leave()
                return True
            if not self.requests_tried and self.callers.come_and_go():
                self.follow_requests()
            return False
        except Exception as error:
            capture.notes.problem(f"following the thread that calls the model failed: {error!r}")
            return False

    def leave_behind(self) -> None:
        """Ends what records forward passes on this thread, which had the steps until another one began to train."""
        recordings = self.capture.recordings
        running = recordings.active
        left = running is not None and running[0].of_forward and not running[0].rests
        if running is not None and left and running[0].thread == threading.get_ident():
            with self.capture.notes.guard("ending what another thread goes on without"):
                if moments.fits():
                    recordings.end_left_behind()

    def may_follow(self) -> bool:
        capture = self.capture
        if roots.optimizer_exists() or process.is_data_worker() or process.is_helper():
            return False
        if capture.settings.nsys:  # whose windows have no parts
            return False
        if capture.recordings.active is not None:  # which only its own thread can end, and makes no step any more
            if capture.by_time is not None:
                capture.by_time.end_left_behind(capture.recordings.active[0])
            return False
        return True

    def follow(self) -> bool:
        """The current thread, from now on; whether it is."""
        if not self.may_follow():
            return False
        self.come_here()
        if self.capture.by_time is not None:
            self.capture.by_time.model_runs()
        return True

    def train_here(self) -> None:
        """What rests between two requests ends; what ran on another thread does when that makes a pass, or ends."""
        self.has_ended = False
        self.come_here()
        with self.capture.notes.guard("ending what rests"):
            self.capture.recordings.end_between_requests()

    def come_here(self) -> None:
        self.ident = threading.get_ident()
        self.capture.no_step_runs()
        if self.ident != threading.main_thread().ident:
            thread = self.ident
            self.callers.tell_end(lambda: self.ends(thread))

    def ends(self, thread: int) -> None:
        """Called there. The next one that calls the model often is followed, or the main thread."""
        capture = self.capture
        if capture.detached or capture.notes.pid != os.getpid():
            return
        with capture.notes.guard("recording at the end of a thread"):
            active = capture.recordings.active
            if active is not None and active[0].thread == thread:
                capture.recordings.end_left_behind()
            if self.ident != thread:
                return
            self.callers.ended()
            capture.no_step_runs()
            self.ident = threading.main_thread().ident
            self.has_ended = not capture.without_optimizer

    # Requests that have a thread each -------------------------------------------------------------------------------
    def follow_requests(self) -> None:
        """Each thread like this one is a step from now on; whichever begins while none is followed."""
        if not self.may_follow():
            return
        self.requests_tried = True
        thread = this_thread()
        if thread is None or not self.requests.found(thread):
            return
        self.ident = 0
        if self.capture.by_time is not None and self.capture.settings.automatic:
            self.capture.by_time.drop_window()

    def request_begins(self) -> bool:
        """Whether it is followed."""
        capture = self.capture
        if (
            self.ident != 0
            or capture.acting
            or not capture.without_optimizer
            or not self.one_request.acquire(blocking=False)
        ):
            return False
        self.ident = threading.get_ident()
        self.passes_before = capture.passes
        self.is_over = False
        capture.no_step_runs()
        capture.at_boundary()
        capture.step_begins()
        self.request_began = capture.step_began
        return True

    def request_ends(self) -> None:
        capture, thread = self.capture, threading.get_ident()
        try:
            if self.requests.target is None or self.ident != thread:  # it was none, or the job trains now
                self.ends(thread)
                return
            self.is_over = True
            if capture.passes > self.passes_before:
                capture.count(marks.FORWARD)
                capture.at_boundary()
            else:
                capture.recordings.nothing_came()
            if capture.recordings.active is not None:
                capture.recordings.end_left_behind()
        except Exception as error:
            capture.notes.problem(f"counting a request failed: {error!r}")
            with capture.notes.guard("giving a recording up"):
                capture.recordings.give_up_here()
        finally:
            capture.boundary_waits, self.is_over = False, False
            if self.requests.target is not None and self.ident == thread:
                capture.no_step_runs()
                self.ident = 0
            if self.one_request.locked():
                self.one_request.release()

    def pass_in_request_ended(self) -> None:
        """The thread of one that lasts, as of a connection that stays open: its forward passes are steps again."""
        if marks.now_ns() - self.request_began <= _LONGEST_REQUEST_NS:
            return
        with self.capture.notes.guard("following the thread of a long request"):
            if not moments.fits():
                return
            self.requests.leave()
            if self.capture.recordings.active is not None:
                self.capture.recordings.end_left_behind()
            self.capture.stepping = False


class Callers:
    """Threads that call the model beside the one that is taken for that of the steps."""

    def __init__(self) -> None:
        self.lock = threading.Lock()  # of what several threads count
        self.calls: weakref.WeakKeyDictionary[threading.Thread, int] = weakref.WeakKeyDictionary()
        self.threads = 0  # that were counted
        self.gone = 0  # that were followed, and only for a short time
        self.followed_at = 0.0  # the last one
        self.passes = 0  # that the thread of the steps had made when it was counted first
        self.at_end = threading.local()

    def calls_again(self, passes: int) -> bool:
        """The current thread begins a forward pass. Whether it has done so often enough to be that of the steps, which
        is followed; that one has made so many."""
        here = this_thread()
        if here is None:
            return False
        with self.lock:
            if passes != self.passes:
                self.passes = passes
                self.calls.clear()
                self.threads = 0
            calls = self.calls.get(here, 0) + 1
            self.calls[here] = calls
            self.threads += calls == 1
            return calls >= _CALLS

    def come_and_go(self) -> bool:
        with self.lock:
            counted = self.threads - sum(thread.is_alive() for thread in list(self.calls))
            return self.gone + counted >= _GONE

    def tell_end(self, ended: Callable[[], None]) -> None:
        """Calls it at the end of the current thread, there; once, whoever else asks."""
        self.followed_at = time.monotonic()
        if not hasattr(self.at_end, "told"):
            self.at_end.told = _End(ended)

    def ended(self) -> None:
        """The thread that was followed."""
        self.gone += time.monotonic() - self.followed_at < _SOON_S


def this_thread() -> threading.Thread | None:
    """No number of it, which the next thread may have. None: Python did not make it, or is about to end it."""
    return getattr(threading, "_active", {}).get(threading.get_ident())  # current_thread() would make one


class _End:
    """In the storage of a thread, which lets go of it as the last thing it does."""

    def __init__(self, ended: Callable[[], None]) -> None:
        self.ended = ended
        self.thread, self.pid = threading.get_ident(), os.getpid()

    def __del__(self) -> None:
        with contextlib.suppress(Exception):  # at the end of Python another thread does it, and parts are gone
            if self.thread == threading.get_ident() and self.pid == os.getpid():
                self.ended()
