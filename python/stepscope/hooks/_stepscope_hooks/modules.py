"""Ranges of the model's modules in a recording: "stepscope.module: layers.0.attn (Attention)".

Hooks on each module, in place only while a window is recorded: torch's cheap C range, 0.4 µs each. Modules inside a
compiled one run without hooks and get none, so nothing is compiled again; one compiled in place has a range itself.
Wrappers' own path parts are left out.
"""

from __future__ import annotations

import os
import sys
import weakref
from threading import get_ident

from .called_again import CalledAgain
from .module_hooks import ModuleHook, is_compiled_in_place, keeps_out
from .wasted_rows import WastedRows

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterator, Sequence
    from types import FrameType
    from typing import Any

    At = tuple[str, int, int]  # file, first line of the function, line

PREFIX = "stepscope.module: "
_WRAPPERS = ("module", "_orig_mod", "_fsdp_wrapped_module", "_checkpoint_wrapped_module")
_WRAPPING = ("DistributedDataParallel", "DataParallel", "FullyShardedDataParallel", "OptimizedModule", "DDP")
_HELD = (("NaiveAMPModel", "model"),)  # class and name of the child that it is a shell of


# Where the program calls its models, by what they are shown as: file, first line of the function, line of the call.
called_at: dict[str, At | None] = {}
called_often: set[str] = set()  # modules that were called twice in a step or more, in a recording before


def program_around() -> At | None:
    """The innermost frame that is neither torch's nor ours; None: there is none."""
    import torch

    inside = (os.path.dirname(torch.__file__) + os.sep, os.path.dirname(os.path.abspath(__file__)) + os.sep)
    frame: FrameType | None = sys._getframe(1)
    while frame is not None and frame.f_code.co_filename.startswith(inside):
        frame = frame.f_back
    return None if frame is None else _at(frame)


def own_around(own: Collection[str]) -> At | None:
    """The innermost function in one of these files; None: there is none. What a comprehension calls is called by the
    function around it."""
    frame: FrameType | None = sys._getframe(1)
    while frame is not None:
        name = frame.f_code.co_name
        if (name == "<module>" or not name.startswith("<")) and os.path.abspath(frame.f_code.co_filename) in own:
            return _at(frame)
        frame = frame.f_back
    return None


def _at(frame: FrameType) -> At:
    return frame.f_code.co_filename, frame.f_code.co_firstlineno, frame.f_lineno


class ModuleRanges:
    def __init__(self, models: list[Any], beside: Sequence[Any] = (), own: Collection[str] | None = None) -> None:
        """`own`: files of the program; what modules are given is looked at, and where these call them."""
        import torch

        self.again = CalledAgain(lambda: own_around(own)) if own else None
        self.wasted = WastedRows(lambda: own_around(own)) if own else None
        self.hooks: list[ModuleHook] = []
        self.paths: dict[str, type] = {}  # of every module that got hooks
        self.open: dict[int, list[tuple[str, Any]]] = {}  # per thread: name, range
        self.calls: dict[str, int] = {}
        self.range: Any = getattr(torch._C._profiler, "_RecordFunctionFast", None)
        self.compiling = getattr(getattr(torch, "compiler", None), "is_compiling", lambda: False)
        if self.range is None:
            return
        for root, model in named(models, beside):
            self.add(model, root)

    def add(self, model: Any, root: str) -> None:
        for path, module in tree(
            model, root, lambda one: not (is_closed(one) or is_compiled_in_place(one) or keeps_out(one))
        ):
            if is_compiled(module) or (has_forward(module) and not is_closed(module)):
                self.hook(module, path or class_of(module).__name__, is_model=module is model)

    def hook(self, module: Any, shown: str, is_model: bool = False) -> None:
        self.paths[shown] = class_of(module)
        name = f"{PREFIX}{shown} ({class_of(module).__name__})"

        def before() -> None:
            if is_model and shown not in called_at:
                called_at[shown] = program_around()
            self.calls[shown] = self.calls.get(shown, 0) + 1
            if not self.compiling():
                opened = self.range(name)
                opened.__enter__()
                self.open.setdefault(get_ident(), []).append((name, opened))

        def after() -> None:
            if self.compiling():
                return
            here = self.open.get(get_ident())
            while here:  # those that an exception passed by end with their caller
                entered, opened = here.pop()
                opened.__exit__(None, None, None)
                if entered is name:
                    break

        again, wasted = self.again, self.wasted
        known = weakref.ref(module)

        def inputs(args: Any, kwargs: Any) -> None:
            called = known()
            if again is None or wasted is None or called is None or self.compiling():
                return
            if shown in called_often:  # asking costs Python's time for each module in it
                again.called(shown, called, args, kwargs)
            wasted.looked_up(shown, called, args)

        self.hooks.append(ModuleHook(module, before, after, inputs=inputs if again is not None else None))

    def in_steps(self, steps: int) -> None:
        """What was recorded were so many."""
        called_often.update(shown for shown, count in self.calls.items() if count >= 2 * max(steps, 1))

    def end_open(self) -> None:
        """Ends the ranges of this thread: the recording stops while their modules run."""
        here = self.open.pop(get_ident(), [])
        while here:
            here.pop()[1].__exit__(None, None, None)

    def remove(self) -> None:
        for hook in self.hooks:
            hook.remove()
        self.hooks = []
        if self.again is not None and self.wasted is not None:
            self.again.forget()
            self.wasted.remove()

    def places(self) -> list[dict[str, Any]]:
        """Path, class, file and line of every module: where in the code it stands."""
        return [{"path": path, "class": cls.__qualname__, **_place(cls)} for path, cls in self.paths.items()]


def _place(cls: type) -> dict[str, Any]:
    """The class's first line, which Python keeps since 3.13; before that its forward's."""
    code = getattr(getattr(cls, "forward", None), "__code__", None)
    line = cls.__dict__.get("__firstlineno__", getattr(code, "co_firstlineno", None))
    return {"file": getattr(code, "co_filename", None), "line": line}


# Path, elements of parameters that stand there first, of these such as get a gradient and no optimizer has, and of all
# its own those that optimizers have.
Size = tuple[str, int, int, int]


def module_sizes(
    models: list[Any], beside: Sequence[Any] = (), optimizers: Sequence[Any] = ()
) -> tuple[list[Size], list[Size]]:
    """Of the parameters of every module itself; of the models, and of those beside them."""
    owned: dict[str, tuple[list[Any], list[Any]]] = {}  # all of its own; of these such as stand there first
    counted: set[int] = set()
    of_models = 0
    for number, (root, model) in enumerate(named(models, beside)):
        for path, module in tree(model, root, lambda one: True):
            own = [one for one in module.__dict__.get("_parameters", {}).values() if one is not None]
            fresh = {id(one): one for one in own if id(one) not in counted}
            counted.update(fresh)
            every, first = owned.setdefault(path or class_of(module).__name__, ([], []))
            every += own
            first += fresh.values()
        if number < len(models):
            of_models = len(owned)
    learned = _learned(counted, optimizers)

    def size(shown: str, every: list[Any], first: list[Any]) -> Size:
        has = [one for one in every if id(one) in learned]
        unread = [one for one in first if learned and id(one) not in learned and one.requires_grad]
        return shown, _elements(first), _elements(unread), _elements(has)

    sizes = [size(shown, *own) for shown, own in owned.items()]
    return sizes[:of_models], sizes[of_models:]


def _learned(known: set[int], optimizers: Sequence[Any]) -> set[int]:
    """What optimizers have. None where nobody can tell, since one has something else than parameters of the models, as
    copies of them in another precision, or shards."""
    found = {id(one) for optimizer in optimizers for group in optimizer.param_groups for one in group["params"]}
    return found if found <= known else set()


def _elements(parameters: list[Any]) -> int:
    """Of whole parameters: a DTensor tells those of all its shards, ZeRO keeps their number."""
    return sum(int(getattr(one, "ds_numel", None) or one.numel()) for one in parameters)


def every_module(models: list[Any], beside: Sequence[Any] = ()) -> Iterator[tuple[str, Any]]:
    """Path and module, as they are shown."""
    for root, model in named(models, beside):
        for path, module in tree(model, root, lambda one: True):
            yield path or class_of(module).__name__, module


def named(models: list[Any], beside: Sequence[Any] = ()) -> list[tuple[str, Any]]:
    """Each with its path: none for one alone, else the name of its class, numbered where two have the same; so have
    those beside it."""
    found: list[tuple[str, Any]] = []
    classes: dict[str, int] = {}
    for number, model in enumerate([*models, *beside]):
        name = class_of(model).__name__
        same = classes[name] = classes.get(name, 0) + 1
        alone = number == 0 and len(models) == 1
        found.append(("" if alone else name if same == 1 else f"{name}#{same}", model))
    return found


def tree(model: Any, root: str, enters: Callable[[Any], bool]) -> Iterator[tuple[str, Any]]:
    """Path and module, pre-order; one that stands in the tree twice keeps its first path, and None is no module.

    `root`: in front of all paths. `enters` says whether to go on to a module's children.
    """
    seen: set[int] = set()
    waiting = [("", model)]
    while waiting:
        path, module = waiting.pop()
        if id(module) in seen:
            continue
        seen.add(id(module))
        yield ".".join(part for part in (root, path) if part), module
        if enters(module):
            waiting += reversed(list(_children(path, module)))


def _children(path: str, module: Any) -> Iterator[tuple[str, Any]]:
    kind = type(module).__name__
    for name, child in module.__dict__.get("_modules", {}).items():
        if child is None:
            continue
        wrapped = name in _WRAPPERS and (kind in _WRAPPING or name.startswith("_"))
        hidden = wrapped or (kind, name) in _HELD
        yield (path if hidden else f"{path}.{name}" if path else name), child


def class_of(module: Any) -> type:
    """Of what torch.compile wraps: that it wraps something is no part of the model."""
    return type(module.__dict__["_modules"]["_orig_mod"] if is_compiled(module) else module)


def is_closed(module: Any) -> bool:
    """Hooks inside would be compiled, or become part of a script."""
    import torch

    return isinstance(module, torch.jit.ScriptModule) or is_compiled(module)


def has_forward(module: Any) -> bool:
    """False for mere containers such as ModuleList, which nobody calls."""
    return getattr(type(module).forward, "__name__", "") != "_forward_unimplemented"


def is_compiled(module: Any) -> bool:
    return "_orig_mod" in module.__dict__.get("_modules", {})
