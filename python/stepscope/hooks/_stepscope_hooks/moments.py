"""When torch's profiler may start and stop without harm to the job: torch does not look for these three cases.

Some code of torch (its compiler, the backward pass, what dispatches to Python) saves the state of the thread and puts
it back when it is done. A profiler that started or stopped meanwhile is lost, or runs on in memory that is gone.

While a CUDA graph is captured the device must not be asked for anything, and starting and stopping do.

A range that is open while a recording stops is written to when it ends, if another one records by then: into memory
that torch gave back when the first one stopped. So the next recording waits for the end of such ranges.
"""

from __future__ import annotations

import os
import sys
import time
import weakref

from . import cuda_graphs, torch_version

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Collection
    from types import FrameType
    from typing import Any

_SAVES_STATE = (
    "_dynamo/convert_frame.py",
    "_export/",
    "_functorch/_aot",
    "_functorch/aot",
    "_functorch/apis",
    "_functorch/eager_transforms",
    "_functorch/predispatch",
    "_functorch/vmap",
    "_higher_order_ops/",
    "_inductor/",
    "_library/",
    "_subclasses/",
    "autograd/",
    "export/",
    "fx/_symbolic_trace.py",
    "fx/experimental/",
    "jit/",
    "utils/_python_dispatch.py",
)
_DISPATCHED = ("__torch_dispatch__", "__torch_function__")
_RUNS_COMPILED = "_dynamo/eval_frame.py"  # a range of torch's is open around compiled code
STILL_OPEN = "a range was still open from the recording before, and torch would write its end to freed memory"
NO_MOMENT = "torch was compiling or in its backward pass at every look, or a range stayed open since the last recording"
LONGEST_S = 10.0  # that a range is open in a job without steps, but for those that Python knows

measured_by: Any = (
    None  # a measurement of FLOP that has torch's profiler (flop_measure.py); a recording waits for its end
)


def fits() -> bool:
    return measured_by is None and not cuda_graphs.capturing() and undisturbed()


def undisturbed() -> bool:
    """Whether nothing below us on this thread's stack will put its state back, nor is an import going on: torch imports
    parts of itself late, and half of a module may be there."""
    older = (_RUNS_COMPILED,) if torch_version.before(2, 13) else ()  # a job crashed with 2.5
    keeps_out = (*_SAVES_STATE, *older)
    return not any(
        path.startswith(keeps_out) or path == "import" or function in _DISPATCHED for path, function in _stack()
    )


def imports(frame: FrameType) -> bool:
    """Whether this is Python's own code that imports a module."""
    return frame.f_code.co_filename.startswith("<frozen importlib")


def _stack() -> list[tuple[str, str]]:
    """File and function of each frame: the path below torch's folder, "import" where Python imports, else ""."""
    import torch

    folder = os.path.dirname(torch.__file__) + os.sep
    found: list[tuple[str, str]] = []
    frame: FrameType | None = sys._getframe(1)
    while frame is not None:
        name = frame.f_code.co_filename
        path = "import" if imports(frame) else ""
        if name.startswith(folder):
            path = name[len(folder) :]
        found.append((path, frame.f_code.co_name))
        frame = frame.f_back
    return found


def ranges_cross() -> bool:
    """Whether ranges may be open here, between two steps: not a place to cut a recording into parts."""
    return bool(_open_ranges(None)) or any(path == _RUNS_COMPILED for path, _ in _stack())


def _open_ranges(names: Collection[str] | None) -> list[Any]:
    """The ranges that Python knows of, with one of these names: one that was left is not there any more."""
    import torch

    from .roots import instances

    ranges = instances(torch.autograd.profiler.record_function)
    entered = [one for one in ranges if getattr(one, "record", None) is not None]
    return [one for one in entered if names is None or one.name in names]


def open_now() -> set[int]:
    """By what Python knows them."""
    return {id(one) for one in _open_ranges(None)}


class Left:
    """Ranges that the last recording of this process left open."""

    def __init__(self) -> None:
        self.any = False
        self.known: list[weakref.ref[Any]] = []
        self.steps = 0  # that have to pass before the others have ended
        self.stopped = 0.0

    def leaves(self, names: Collection[str] | None, in_step: bool, before: Collection[int] = ()) -> None:
        """A recording has stopped with these ranges open; None: not known which. `in_step`: not between two steps.
        `before`: what was open when it began, and so is nothing of it (open_now)."""
        self.any = names is None or len(names) > 0
        if self.any:
            self.known = [weakref.ref(one) for one in _open_ranges(names) if id(one) not in before]
            self.steps = 2 if in_step else 1
            self.stopped = time.monotonic()

    def step_done(self) -> None:
        if self.steps > 0:
            self.steps -= 1

    def ended(self) -> bool:
        if self.any:
            passed = self.steps == 0 or time.monotonic() - self.stopped > LONGEST_S
            self.any = not passed or any(one() is not None for one in self.known)
        return not self.any


left = Left()
