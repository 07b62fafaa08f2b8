"""A service that has a thread for each request, as Python's ThreadingHTTPServer: each such thread is a step.

torch's profiler records one thread, and such a thread is over before the next step begins, so what is recorded begins
and ends with it. One request at a time is followed; those beside it are none of ours.
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

    def found(self, thread: threading.Thread) -> None:
        """Threads like this one call the model, and end."""
        self.target = _target(thread)
        maker = next((cls for cls in type(thread).__mro__ if "run" in vars(cls)), None)
        self.replaced.replace(maker, "run", self.followed)

    def followed(self, original: Callable[..., Any]) -> Any:
        def run(thread: threading.Thread) -> Any:
            if self.target is None or _target(thread) is not self.target or not self.observer.request_begins():
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
    """What tells threads of one purpose from others: the code that they run, or else their class."""
    target = getattr(thread, "_target", None)  # of Python's own Thread.run
    function = getattr(target, "__func__", target)
    return getattr(function, "__code__", type(thread) if function is None else type(function))
