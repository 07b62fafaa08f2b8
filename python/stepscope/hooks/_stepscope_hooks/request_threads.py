"""A service that has a thread for each request, as Python's ThreadingHTTPServer: each such thread is a step.

torch's profiler records one thread, and such a thread is over before the next step begins, so what is recorded begins
and ends with it. One request at a time is followed; those beside it are none of ours. A thread that stays, as that of a
connection which a client keeps open, is no request: then threads are followed by their forward passes again.
"""

from __future__ import annotations

import threading

from .replaced import Replaced

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any, Protocol

    class Observer(Protocol):
        """Called on the thread of a request."""

        def request_begins(self) -> bool: ...
        def request_ends(self) -> None: ...


class RequestThreads:
    def __init__(self, observer: Observer) -> None:
        self.observer = observer
        self.replaced = Replaced()
        self.target: Any = None  # what such threads are made for; None: there are none

    def found(self, thread: threading.Thread) -> bool:
        """Threads like this one call the model, and end. False: they cannot be told from others."""
        target = _target(thread)
        if target is None:
            return False
        self.target = target
        maker = next((cls for cls in type(thread).__mro__ if "run" in vars(cls)), None)
        self.replaced.replace(maker, "run", self.followed)
        return True

    def is_one(self, thread: threading.Thread | None) -> bool:
        return thread is not None and self.target is not None and _target(thread) is self.target

    def followed(self, original: Callable[..., Any]) -> Any:
        def run(thread: threading.Thread) -> Any:
            if not self.is_one(thread) or not self.observer.request_begins():
                return original(thread)
            try:
                return original(thread)
            finally:
                self.observer.request_ends()

        return run

    def leave(self) -> None:
        self.replaced.undo()
        self.target = None


def _target(thread: threading.Thread) -> Any:
    """What tells threads of one purpose from others: the code that they run, or else their class. None: neither does,
    as of Python's own pools, whose threads stay, and of its timers, which wait first."""
    target = getattr(thread, "_target", None)  # of Python's own Thread.run
    function = getattr(target, "__func__", target)
    if function is not None:
        code = getattr(function, "__code__", None)
        return None if getattr(function, "__module__", "") == "concurrent.futures.thread" else code
    return None if type(thread).__module__ == "threading" else type(thread)
