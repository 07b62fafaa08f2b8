"""Which thread runs the steps, when it is not the main one: a service may call its model in a thread of a pool.

torch's profiler records the thread that starts it, so all that is done between two steps is done on that thread. An
optimizer says by itself where it steps (capture.py). A forward pass may be a helper's own, and of threads that live for
one request each none is worth following: one that calls the model again and again is.
"""

from __future__ import annotations

import contextlib
import os
import threading
import time
import weakref

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

_CALLS = 3  # forward passes that a thread begins while that of the steps makes none
# Threads that called the model and are gone, soon after they were followed if they were: each request has its own.
_GONE, _SOON_S = 3, 5.0


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
