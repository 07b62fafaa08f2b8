"""Functions that are given the same in one step as in the next, of those that make the same of the same.

By their source they do (constants.py): the normalized adjacency of a graph, a mask of some length. What they are given
is known only while they are called. Python tells of each call (sys.settrace) in the step with frames and in the one
behind it. A tensor is the same if it is the same object, or the same view of one, and nobody has changed it in place,
as its version and some of its bytes tell; numbers and names are if they are equal; of anything else nobody knows.
"""

from __future__ import annotations

import sys
import threading
import time
import weakref
from collections import Counter

from . import compilations, program_code
from .contents import Contents

TYPE_CHECKING = False
if TYPE_CHECKING:
    from types import FrameType
    from typing import Any

    from .capture import Capture
    from .program_code import Given

MOST_CALLS = 256  # in a step, of one function: of what is called more often each is small
MOST_ITEMS = 256  # of lists, in one call
MOST_S = 3.0  # of a step: behind the last one of a training nothing may end it
# Before that a frame gets its variables back behind each call that Python tells of, as they were before it: what other
# threads set meanwhile would be lost.
POSSIBLE = sys.version_info >= (3, 11)
_PLAIN = (bool, int, float, complex, str, type(None))


class Watch:
    """When it is looked: from the beginning of the step with frames to the end of the one behind it, on its thread."""

    def __init__(self, capture: Capture) -> None:
        self.capture = capture
        self.running: SameArguments | None = None

    @property
    def runs(self) -> bool:
        return self.running is not None

    def frames_begin(self, functions: Given) -> None:
        self.leave()
        if POSSIBLE and functions and not compilations.told():
            self.running = SameArguments(functions, self.capture.graphs.captured)

    def step_begins(self) -> None:
        """Behind all that is done at a boundary, of which Python is not to tell."""
        if self.running is None:
            return
        with self.capture.notes.guard("looking at what functions are given"):
            first, records = self.running.steps == 0, self.capture.recordings.active is not None
            if first == records:  # frames, and then nothing
                self.running.begin()
            else:
                self.leave()

    def step_ends(self) -> None:
        if self.running is None:
            return
        with self.capture.notes.guard("looking at what functions are given"):
            self.running.pause()
            self.running.step_ended()
            if self.running.steps < 2:
                return
            found = self.running.found()
            self.leave()
            self.capture.tell(given_the_same=[[program_code.shown(file), line] for file, line in found])

    def leave(self) -> None:
        if self.running is not None:
            self.running.leave()
            self.running = None


class SameArguments:
    """Of two steps, on the thread that makes it. `graphs`: a device's memory may be written by what was captured."""

    def __init__(self, functions: Given, graphs: bool) -> None:
        import torch

        self.bare = torch._C.DisableTorchFunction  # the program's own code would run
        self.tracing = torch._C._get_tracing_state
        self.graphs = graphs
        self.plain = {*_PLAIN, torch.dtype, torch.device, torch.layout}
        self.lists = {tuple, list, torch.Size}
        self.tensors = {torch.Tensor, torch.nn.Parameter}
        self.strided = torch.strided
        self.contents = Contents()
        self.functions = functions
        self.lines = frozenset(line for _, line in functions)
        self.thread = threading.get_ident()
        self.tracer = self._called  # one object, whenever it is asked for
        self.steps = 0  # seen
        self.seen: dict[tuple[str, int], Counter[Any]] = {}
        self.before: dict[tuple[str, int], Counter[Any]] = {}  # in the first step
        self.calls: dict[tuple[str, int], int] = {}
        self.items = 0  # of lists, in this call
        self.until = 0.0
        self.kept: dict[int, tuple[weakref.ref[Any], int]] = {}  # by id, which another object may have later
        self.objects = 0
        self.over = False

    def begin(self) -> None:
        if sys.gettrace() is None and threading.get_ident() == self.thread:  # else a debugger is there
            self.until = time.monotonic() + MOST_S
            sys.settrace(self.tracer)
        else:
            self.over = True

    def pause(self) -> None:
        if threading.get_ident() == self.thread and sys.gettrace() is self.tracer:
            sys.settrace(None)
        else:
            self.over = True

    def step_ended(self) -> None:
        self.steps += 1
        if self.steps == 1:
            self.before, self.seen, self.calls = self.seen, {}, {}

    def leave(self) -> None:
        """On another thread the next call there takes it away."""
        self.over = True
        self.pause()
        self.seen, self.before, self.kept = {}, {}, {}

    def found(self) -> list[tuple[str, int]]:
        """Those that were given the same in both steps, as often."""
        if self.over:
            return []
        alike = [one for one, calls in self.seen.items() if calls == self.before.get(one)]
        return [one for one in alike if self.calls[one] <= MOST_CALLS]

    def _called(self, frame: FrameType, event: str, _: Any) -> None:
        """Nothing may leave it: the program would get what is raised. Nor may it run any of the program's own code, as
        other types than torch's and Python's have it."""
        if self.over or time.monotonic() > self.until:
            self.over = True
            sys.settrace(None)
            return
        code = frame.f_code
        if code.co_firstlineno not in self.lines or event != "call":
            return
        function = code.co_filename, code.co_firstlineno
        given = self.functions.get(function)
        if given is None:
            return
        count = self.calls[function] = self.calls.get(function, 0) + 1
        if count > MOST_CALLS:
            return
        if function not in self.seen:
            self.seen[function] = Counter()
        self.items = 0
        try:
            if self.tracing() is not None:
                raise ValueError("torch notes what is asked of tensors")
            values = frame.f_locals
            names = code.co_varnames[: code.co_argcount + code.co_kwonlyargcount]
            with self.bare():
                what = tuple(
                    self._of_shape(values[name]) if given.get(name) else self._of(values[name], is_own=name == "self")
                    for name in names
                )
            self.seen[function][what] += 1
        except Exception:
            self.seen[function][object()] += 1  # of which nobody knows

    def _of_shape(self, value: Any) -> Any:
        if type(value) not in self.tensors:
            return self._of(value)
        return tuple(value.shape), value.dtype, value.device

    def _of(self, value: Any, is_own: bool = False) -> Any:
        kind = type(value)
        if kind in self.plain:
            return kind, value
        if kind in self.tensors and value.layout is self.strided and not value.requires_grad:
            whole = value if value._base is None else value._base
            kind_of_view = tuple(value.shape), value.stride(), value.dtype
            return self._object(whole), kind_of_view, self.contents.of(value), self._written(whole)
        if kind in self.lists:
            self.items += len(value)
            if self.items > MOST_ITEMS:
                raise ValueError("too much to look at")
            return kind, tuple(self._of(one) for one in value)
        return self._object(value) if is_own else object()

    def _object(self, value: Any) -> int:
        """A number that no other object has in both steps."""
        known = self.kept.get(id(value))
        if known is None or known[0]() is not value:
            self.objects += 1
            known = self.kept[id(value)] = weakref.ref(value), self.objects
        return known[1]

    def _written(self, tensor: Any) -> int:
        """What tells that it was, though its version is as it was."""
        if tensor.device.type == "cpu":
            return self.contents.in_part(tensor)
        if self.graphs:
            raise ValueError("a replay writes it, and tells nobody")
        return 0
