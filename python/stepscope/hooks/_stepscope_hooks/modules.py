"""Ranges of the model's modules in a recording: "stepscope.module: layers.0.attn (Attention)".

Hooks on each module, in place only while a window is recorded: torch's cheap C range, 0.4 µs each. Modules inside a
compiled one run without hooks and get none, so nothing is compiled again; one compiled in place has a range itself.
Wrappers' own path parts are left out.
"""

from __future__ import annotations

from threading import get_ident

from .module_hooks import ModuleHook, is_compiled_in_place

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

PREFIX = "stepscope.module: "
_WRAPPERS = ("module", "_orig_mod", "_fsdp_wrapped_module", "_checkpoint_wrapped_module")
_WRAPPING = ("DistributedDataParallel", "DataParallel", "FullyShardedDataParallel", "OptimizedModule", "DDP")


class ModuleRanges:
    def __init__(self, models: list[Any]) -> None:
        import torch

        self.hooks: list[ModuleHook] = []
        self.paths: dict[str, type] = {}  # of every module that got hooks
        self.open: dict[int, list[tuple[str, Any]]] = {}  # per thread: name, range
        self.range: Any = getattr(torch._C._profiler, "_RecordFunctionFast", None)
        self.compiling = getattr(getattr(torch, "compiler", None), "is_compiling", lambda: False)
        if self.range is None:
            return
        for model in models:
            self.add(model, "", type(model).__name__ if len(models) > 1 else "", set())

    def add(self, module: Any, path: str, root: str, seen: set[int]) -> None:
        """Pre-order over the tree; a module that stands in it twice keeps its first path."""
        import torch

        if id(module) in seen or isinstance(module, torch.jit.ScriptModule) or is_compiled(module):
            return
        seen.add(id(module))
        if has_forward(module):
            self.hook(module, ".".join(part for part in (root, path) if part) or type(module).__name__)
        if is_compiled_in_place(module):
            return
        wrapper = type(module).__name__ in _WRAPPING
        for name, child in module.__dict__["_modules"].items():
            if child is None:
                continue
            hidden = name in _WRAPPERS and (wrapper or name.startswith("_"))
            inner = path if hidden else f"{path}.{name}" if path else name
            self.add(child, inner, root, seen)

    def hook(self, module: Any, shown: str) -> None:
        self.paths[shown] = type(module)
        name = f"{PREFIX}{shown} ({type(module).__name__})"

        def before() -> None:
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

        self.hooks.append(ModuleHook(module, before, after))

    def end_open(self) -> None:
        """Ends the ranges of this thread: the recording stops while their modules run."""
        here = self.open.pop(get_ident(), [])
        while here:
            here.pop()[1].__exit__(None, None, None)

    def remove(self) -> None:
        for hook in self.hooks:
            hook.remove()
        self.hooks = []

    def places(self) -> list[dict[str, Any]]:
        """Path, class, file and line of every module: where in the code it stands."""
        return [{"path": path, "class": cls.__qualname__, **_place(cls)} for path, cls in self.paths.items()]


def _place(cls: type) -> dict[str, Any]:
    """The class's first line, which Python keeps since 3.13; before that its forward's."""
    code = getattr(getattr(cls, "forward", None), "__code__", None)
    line = cls.__dict__.get("__firstlineno__", getattr(code, "co_firstlineno", None))
    return {"file": getattr(code, "co_filename", None), "line": line}


def has_forward(module: Any) -> bool:
    """False for mere containers such as ModuleList, which nobody calls."""
    return getattr(type(module).forward, "__name__", "") != "_forward_unimplemented"


def is_compiled(module: Any) -> bool:
    return "_orig_mod" in module.__dict__.get("_modules", {})
