"""One measurement of FLOP in the running process: torch's profiler with shapes, and ranges around the modules.

What comes out is the profiler's JSON; the package (stepscope.flops) has it counted by the core. A range says the number
of its module in model.modules(), "stepscope.module: 17 (Linear)": without dots each module is a row of its own there.
torch has room for one profiler. A measurement does not begin where another records (Refused says which); a recording of
`stepscope run` gives way to it and goes on with the next step.
"""

from __future__ import annotations

import contextlib
import os
import shutil
import sys
import tempfile
import threading
import weakref

from . import moments, other_profiler, recorder, recordings, spool, torch_profiler
from .module_hooks import is_compiled_in_place
from .modules import ModuleRanges, has_forward, is_compiled

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Collection
    from types import FrameType
    from typing import Any

_FEATURES = frozenset({"shapes"})
_NOT_HERE = "torch is compiling or in its backward pass here, where its profiler cannot start or stop"

PART_CALLS = 20_000  # of modules; some 100 MB of JSON
MOST_CALLS = 200_000  # with gradients


class Refused(RuntimeError):
    """Why nothing is measured. `by_run`: it would have been, without `stepscope run`."""

    def __init__(self, why: str, by_run: bool = False) -> None:
        super().__init__(why)
        self.by_run = by_run


class NumberedModules(ModuleRanges):
    """Ranges of all modules but those of the classes in `ignored`, which count as part of what calls them."""

    def __init__(self, model: Any, ignored: Collection[type], called: Callable[[], None]) -> None:
        self.members = list(model.modules())
        self.numbers = {id(member): number for number, member in enumerate(self.members)}
        self.ignored, self.called = ignored, called
        self.hooked: dict[int, Any] = {}  # number -> hook
        super().__init__([model])

    def add(self, module: Any, path: str, root: str, seen: set[int]) -> None:
        import torch

        if id(module) in seen or isinstance(module, torch.jit.ScriptModule):
            return
        seen.add(id(module))
        compiled = is_compiled(module) or is_compiled_in_place(module)
        if type(module) not in self.ignored and (compiled or has_forward(module) or "forward" in module.__dict__):
            number = self.numbers[id(module)]
            self.hook(module, str(number))
            self.hooked[number] = self.hooks[-1]
            self.tell_of_calls(self.hooks[-1])
        if not compiled:
            for child in module.__dict__["_modules"].values():
                if child is not None:
                    self.add(child, path, root, seen)

    def tell_of_calls(self, hook: Any) -> None:
        begin, called = hook.before, self.called

        def before() -> None:
            called()
            begin()

        hook.before = before

    def seen(self) -> set[int]:
        """Numbers of the modules whose calls are seen."""
        return {number for number, hook in self.hooked.items() if hook.handles}

    def enter_running(self) -> None:
        """Of modules whose forward pass goes on right now, as where a hook of theirs begins the measurement."""
        for module in _running_modules():
            hook = self.hooked.get(self.numbers.get(id(module), -1))
            if hook is not None:
                hook.enter()


class TraceText:
    """The JSON of a profiler that has stopped: in memory, where the system has such files, else in a folder."""

    def __init__(self, profiler: Any) -> None:
        self.left_open: set[str] | None = None  # names of ranges that were open when it stopped; None: not known
        folder = tempfile.mkdtemp(prefix="stepscope-flops-")
        self.path = os.path.join(folder, "trace.json")
        memory = spool.memory_file()
        self.close = weakref.finalize(self, _give_back, memory, folder)
        with torch_profiler.quiet_kineto():
            if memory is None:
                with other_profiler.own_profiler():
                    profiler.export_chrome_trace(self.path)
                return
            spool.export_to(memory, profiler, self.path)
        self.path = f"/proc/self/fd/{memory}"
        self.left_open = spool.unfinished(memory)


def _give_back(memory: int | None, folder: str) -> None:
    if memory is not None:
        os.close(memory)
    shutil.rmtree(folder, ignore_errors=True)


class Measure:
    """begin(), then end() on the same thread, or discard(): the process is then as it was before.

    `take` gets the text of each part, in order. More than one there is of long inference only: what is recorded is cut
    between two passes of the model, which no gradient joins. A training that goes on for as long is cut off.
    """

    def __init__(self, model: Any, take: Callable[[TraceText], None], ignored: Collection[type] = ()) -> None:
        self.model, self.take, self.ignored = model, take, ignored
        self.thread = threading.get_ident()
        self.ranges: NumberedModules | None = None
        self.profiler: Any = None  # while it runs
        self.quiet = contextlib.ExitStack()
        self.members: list[Any] = []
        self.seen: set[int] = set()  # numbers of the members that have ranges
        self.calls = 0  # of modules, in this part
        self.with_gradients = False
        self.cut_off = ""  # why it ended before it was told to, with what was recorded until then
        self.lost = ""  # why nothing of it is there
        self.ownerless = False
        self.is_over: Callable[[], bool] | None = None  # looked at between two passes; then `over` is called
        self.over: Callable[[], None] | None = None

    @property
    def runs(self) -> bool:
        return moments.measured_by is self

    def begin(self) -> None:
        _end_ownerless()
        if moments.measured_by is not None:
            raise Refused("another FLOP measurement runs in this process: end that one first")
        _make_room()
        try:
            self.ranges = NumberedModules(self.model, self.ignored, self.called)
            self._start()
        except BaseException:
            self._leave()
            raise
        moments.measured_by = self
        self.members, self.seen = self.ranges.members, self.ranges.seen()
        self.ranges.enter_running()

    def _start(self) -> None:
        with other_profiler.own_profiler(), torch_profiler.quiet_kineto():
            self.profiler = torch_profiler.prepare(_FEATURES)
        with other_profiler.own_profiler(), torch_profiler.quiet_kineto():  # the first one of a process sets Kineto up
            self.quiet = torch_profiler.start(self.profiler, memory=False)
        self.calls = 0

    def end_ranges(self) -> None:
        """Of the modules that run on this thread: their pass is over, whatever else is measured."""
        if self.runs and self.ranges is not None:
            self.ranges.end_open()

    def end(self) -> None:
        if self.lost:
            raise Refused(self.lost)
        if not self.runs:
            return
        if threading.get_ident() != self.thread:
            raise Refused("a measurement ends on the thread that began it")
        if not moments.undisturbed():
            raise Refused(_NOT_HERE)
        text = TraceText(self._stop())
        self._leave()
        moments.left.leaves(text.left_open, in_step=True)
        self.take(text)

    def discard(self) -> None:
        """Leaves nothing behind; where torch cannot stop now, that happens at the next call of the model."""
        if not self.runs:
            return
        self.ownerless = threading.get_ident() != self.thread or not moments.undisturbed()
        if self.ownerless or not recorder.device_settles():
            return
        with contextlib.suppress(Refused):
            self._stop()
            moments.left.leaves(None, in_step=True)
        self._leave()

    def _stop(self) -> Any:
        """The stopped profiler. Where another one came meanwhile nothing is stopped: it would be that one, or nothing,
        and torch crashes over what is not there."""
        profiler = self.profiler
        if self.ranges is not None:
            self.ranges.end_open()
        self.quiet.close()
        if not other_profiler.runs() or not other_profiler.is_alone(profiler.profiler):
            profiler.profiler.entered = False
            self.lost = "another torch profiler took the place of the measurement: measure outside of it"
            self._leave()
            raise Refused(self.lost)
        with torch_profiler.quiet_kineto():
            profiler.stop_trace()
        return profiler

    def _leave(self) -> None:
        if moments.measured_by is self:
            moments.measured_by = None
        if self.ranges is not None:
            self.ranges.remove()
        self.ranges = self.profiler = None

    # Called before each module runs ---------------------------------------------------------------------------------
    def called(self) -> None:
        self.calls += 1
        if not self.with_gradients:
            import torch

            self.with_gradients = torch.is_grad_enabled()
        if self.ownerless or self.is_over is not None or self.calls >= PART_CALLS:
            with contextlib.suppress(Exception):
                self.look()

    def look(self) -> None:
        between = self.ranges is not None and not self.ranges.open.get(self.thread)
        over = self.is_over is not None and self.is_over()
        if not between or not (self.ownerless or over or self.calls >= PART_CALLS):
            return
        if threading.get_ident() != self.thread or not moments.undisturbed():
            return
        if self.ownerless:
            self.discard()
        elif over:
            self.is_over = None
            if self.over is not None:
                self.over()
        elif not self.with_gradients:
            self.next_part()
        elif self.calls >= MOST_CALLS:
            self.cut_off = f"the measurement was cut off after {self.calls:,} calls of modules, as memory has an end"
            self.end()

    def next_part(self) -> None:
        text = TraceText(self._stop())
        try:
            self._start()
        except BaseException:
            self.lost = "torch's profiler did not start again"
            self._leave()
            raise
        self.take(text)


def _end_ownerless() -> None:
    left = moments.measured_by
    if left is not None and left.ownerless:
        left.discard()


def _make_room() -> None:
    capture = getattr(sys.modules[__package__], "_capture", None)
    if capture is not None and not capture.detached:
        if not recordings.may_record_again():
            raise Refused("CUPTI before CUDA 12.6 may crash a job that is recorded twice", by_run=True)
        with capture.notes.guard("giving way to a measurement of FLOP"):
            capture.recordings.give_way()
        if capture.recordings.active is not None:
            raise Refused("`stepscope run` records this step", by_run=True)
        if not moments.left.ended():
            raise Refused(moments.STILL_OPEN, by_run=True)
    if other_profiler.runs() or (other_profiler.may_warm_up() and not other_profiler.is_alone()):
        raise Refused("a torch profiler runs already, and torch has room for one: measure outside of it")
    if not moments.undisturbed():
        raise Refused(_NOT_HERE)


def _running_modules() -> list[Any]:
    """Modules whose forward pass goes on on this thread, outermost first."""
    import torch

    module = torch.nn.Module
    codes = [getattr(module, name).__code__ for name in ("_wrapped_call_impl", "_call_impl") if hasattr(module, name)]
    found = []
    frame: FrameType | None = sys._getframe(1)
    while frame is not None:
        if frame.f_code is codes[0]:
            found.append(frame.f_locals["self"])
        frame = frame.f_back
    return found[::-1]
