"""What happens by the clock: windows in seconds, and the search for the model in jobs without an optimizer.

A thread waits, and asks the main thread to act between two bytecodes: torch.profiler sees the thread that starts it
(and autograd's). Py_AddPendingCall is how Python itself delivers such requests; a main thread in C code runs it when it
returns.
"""

from __future__ import annotations

import ctypes
import sys
import threading
import time

from . import plan, process

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from types import FrameType
    from typing import Any

    from .capture import Capture

RETRY_S = 0.05
SEARCHES_S = (3.0, 10.0, 30.0, 100.0)  # after the import of torch: big models take their time to load
_CALL = ctypes.CFUNCTYPE(ctypes.c_int, ctypes.c_void_p)


class Timer:
    def __init__(self, capture: Capture) -> None:
        self.capture = capture
        settings = capture.settings
        self.span = settings.seconds or (plan.FALLBACK_SECONDS if settings.automatic else None)
        self.cancelled = threading.Event()
        self.begun = False
        self.calls: list[Any] = []  # kept: C holds pointers into them

    def start(self) -> None:
        if self.span is not None and self.span[0] <= 0 and _on_main_thread():
            self.begin()
        threading.Thread(target=self.run, name="stepscope-timer", daemon=True).start()

    def cancel(self) -> None:
        self.cancelled.set()

    def run(self) -> None:
        with self.capture.notes.guard("timing a window"):
            if self.span is not None:
                self.record()
            for seconds in SEARCHES_S:
                if self.cancelled.wait(max(0.0, self.capture.armed_at + seconds - time.monotonic())):
                    return
                if not _optimizer_exists():
                    self.on_main_thread(self.capture.find_models)
                if self.capture.phases.roots or self.capture.boundary > 0:
                    return

    def record(self) -> None:
        assert self.span is not None
        wait = self.capture.armed_at + self.span[0] - time.monotonic()
        while not self.begun:
            if self.cancelled.wait(max(0.0, wait)):
                return
            if self.capture.settings.automatic and _optimizer_exists():
                return
            self.on_main_thread(self.begin_between)
            wait = RETRY_S
        if not self.cancelled.wait(self.span[1] - self.span[0]):
            self.on_main_thread(self.end)

    def on_main_thread(self, function: Callable[[], None]) -> None:
        """Returns once the function has run there."""
        done = threading.Event()

        def call(_: object) -> int:
            with self.capture.notes.guard("acting by time"):
                function()
            done.set()
            return 0

        self.calls.append(_CALL(call))
        while ctypes.pythonapi.Py_AddPendingCall(self.calls[-1], None) != 0:  # its queue is full
            time.sleep(RETRY_S)
        while not done.wait(RETRY_S):
            if self.cancelled.is_set():
                return

    def begin_between(self) -> None:
        """Not inside an import: torch imports parts of itself late, and half of a module may be there."""
        if not _inside_import():
            self.begin()

    def begin(self) -> None:
        self.begun = True
        capture = self.capture
        if capture.off or self.cancelled.is_set() or capture.active is not None or process.is_data_worker():
            return
        if not process.is_helper():
            capture.start_seconds()

    def end(self) -> None:
        self.capture.end_seconds()


def _on_main_thread() -> bool:
    return threading.current_thread() is threading.main_thread()


def _inside_import() -> bool:
    frame: FrameType | None = sys._getframe(1)
    while frame is not None:
        if frame.f_code.co_filename.startswith("<frozen importlib"):
            return True
        frame = frame.f_back
    return False


def _optimizer_exists() -> bool:
    """Whether the job built an optimizer: torch marks the step function of each class at its first instance."""
    import torch

    waiting = list(torch.optim.Optimizer.__subclasses__())
    while waiting:
        cls = waiting.pop()
        if getattr(cls.__dict__.get("step"), "hooked", None):
            return True
        waiting += cls.__subclasses__()
    return False
