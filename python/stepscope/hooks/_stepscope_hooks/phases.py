"""Sees the phases of a step without code in the job: data loading, forward, backward, optimizer.

Optimizer steps have hooks of torch's own. Waiting for data and the backward pass are wrapped where they are looked up
at every call. Forward passes are calls of the model's outermost modules, found among the objects that Python tracks
(roots.py) once the first step is over; hooks sit on these alone, since global ones make torch.compile warn.
"""

from __future__ import annotations

import threading
import weakref

from . import loader_workers, marks, module_hooks, own_code, roots
from .replaced import Replaced

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any, Protocol

    class Observer(Protocol):
        """What is told of phases, on the thread that runs them."""

        def phase_begins(self, phase: int) -> None: ...
        def phase_ends(self, phase: int) -> None: ...
        def optimizer_begins(self, optimizer: Any) -> None: ...
        def optimizer_ends(self, optimizer: Any, kwargs: dict[str, Any]) -> None: ...
        def loader_seen(self, iterator: Any) -> None: ...
        def batch_came(self) -> None: ...
        def forward_ended(self, gradients: bool) -> None: ...
        def backward_ended(self) -> None: ...
        def first_forward(self) -> None: ...


class Phases:
    def __init__(self, observer: Observer) -> None:
        self.observer = observer
        self.compiling, self.gradients = compiling(), gradients_are_kept()
        self.roots: list[roots.Root] = []
        self.beside: list[weakref.ref[Any]] = []  # outermost modules that the optimizer of the steps does not train
        self.depth = threading.local()
        self.searches = 0  # for the outermost modules
        self.first_call: Any = None  # a hook on all modules, until one is called
        self.handles: list[Any] = []  # of torch's hooks
        self.replaced = Replaced()

    def install(self, first_call: bool = True) -> None:
        """`first_call`: also tells when a module is called for the first time."""
        import torch
        from torch.optim import optimizer

        before = getattr(optimizer, "register_optimizer_step_pre_hook", None)
        if before is not None:
            self.handles.append(before(self.before_optimizer))
        self.handles.append(optimizer.register_optimizer_step_post_hook(self.after_optimizer))
        modules = getattr(getattr(getattr(torch, "nn", None), "modules", None), "module", None)
        everywhere = getattr(modules, "register_module_forward_pre_hook", None)
        if everywhere is not None and first_call:
            self.first_call = everywhere(self.before_first_forward)
        self.replaced.replace(torch.autograd, "backward", self.timed_backward)
        self.replaced.replace(torch, "compile", self.before_compile)
        self.replaced.replace(getattr(modules, "Module", None), "compile", self.compiled_in_place)
        # Behind torch.jit.script, which counts the frames above it.
        scripting = getattr(getattr(torch, "jit", None), "_recursive", None)
        self.replaced.replace(scripting, "create_script_module", module_hooks.without_hooks)
        loader = getattr(getattr(torch.utils, "data", None), "dataloader", None)
        iterator = getattr(loader, "_BaseDataLoaderIter", None)
        self.replaced.replace(iterator, "__next__", self.timed_next)
        workers = getattr(getattr(getattr(torch.utils, "data", None), "_utils", None), "worker", None)
        self.replaced.replace(workers, "_worker_loop", loader_workers.watched)
        own_code.keep_from_compiler()

    def uninstall(self) -> None:
        """Takes everything out again."""
        self.remove_roots()
        self.forget_first_call()
        for handle in self.handles:
            handle.remove()
        self.replaced.undo()
        self.handles = []
        self.searches = 0

    # Every wrapper calls the original exactly once, whatever becomes of our own part: the observer does not raise.

    def timed_backward(self, original: Any) -> Any:
        observer, compiling = self.observer, self.compiling

        def backward(*args: Any, **kwargs: Any) -> Any:
            if compiling():
                return original(*args, **kwargs)
            observer.phase_begins(marks.BACKWARD)
            try:
                return original(*args, **kwargs)
            finally:
                observer.phase_ends(marks.BACKWARD)
                observer.backward_ended()

        return backward

    def before_compile(self, original: Any) -> Any:
        def compile(*args: Any, **kwargs: Any) -> Any:
            self.forget_first_call()  # a hook on all modules makes the compiler warn
            try:
                return original(*args, **kwargs)
            finally:  # it loads the compiler, which works at the first call of what it gives
                own_code.keep_from_compiler()
                module_hooks.before_compile()

        return compile

    def compiled_in_place(self, original: Any) -> Any:
        def compile(module: Any, *args: Any, **kwargs: Any) -> Any:
            result = original(module, *args, **kwargs)
            module_hooks.compiled_in_place(module)
            return result

        return compile

    def timed_next(self, original: Any) -> Any:
        observer = self.observer

        def __next__(iterator: Any) -> Any:
            observer.loader_seen(iterator)
            observer.phase_begins(marks.DATALOADER)
            try:
                batch = original(iterator)
                observer.batch_came()
                return batch
            finally:
                observer.phase_ends(marks.DATALOADER)

        return __next__

    @own_code.called_as_is
    def before_optimizer(self, optimizer: Any, args: object, kwargs: object) -> None:
        if not self.compiling():
            self.observer.optimizer_begins(optimizer)

    @own_code.called_as_is
    def after_optimizer(self, optimizer: Any, args: object, kwargs: dict[str, Any]) -> None:
        if not self.compiling():
            self.observer.optimizer_ends(optimizer, kwargs)

    def forget_first_call(self) -> None:
        handle, self.first_call = self.first_call, None
        if handle is not None:
            handle.remove()

    @own_code.called_as_is
    def before_first_forward(self, module: Any, args: Any) -> None:
        """The first module is called: a job without an optimizer has its model now, and this is its first step."""
        if self.compiling():
            return
        self.forget_first_call()
        before = module_hooks.of(module)  # of a search by the clock: torch calls these
        self.observer.first_forward()
        for hook in module_hooks.of(module):
            if hook not in before:
                hook.enter(args)  # torch has its list of hooks before the call already

    # Forward passes -----------------------------------------------------------------------------------------------
    def find_roots(self, optimizer: Any = None) -> None:
        """Looks for the outermost modules: all, or those of this optimizer; there later searches go a level deeper."""
        level = 0 if optimizer is None else self.searches
        found, beside = roots.outermost(optimizer, level)
        known = {id(root.module()): root for root in self.roots}
        for root in self.roots:
            if all(root.module() is not module for module in found):
                root.remove()
        self.roots = [known.get(id(module)) or roots.Root(module, self) for module in found]
        self.beside = [weakref.ref(module) for module in beside]
        self.searches += 0 if optimizer is None else 1

    def remove_roots(self) -> None:
        for root in self.roots:
            root.remove()
        self.roots, self.beside = [], []

    def enter(self) -> None:
        if self.compiling():
            return
        depth = getattr(self.depth, "value", 0)
        self.depth.value = depth + 1
        if depth == 0:
            self.observer.phase_begins(marks.FORWARD)

    def leave(self) -> None:
        if self.compiling():
            return
        depth = getattr(self.depth, "value", 0)
        if depth == 0:  # the hooks came while the module ran
            return
        self.depth.value = depth - 1
        if depth == 1:
            self.observer.phase_ends(marks.FORWARD)
            self.observer.forward_ended(self.gradients())


def compiling() -> Callable[[], bool]:
    """Whether what runs is being compiled or traced: a range of ours would become part of that program."""
    import torch

    compiling = getattr(getattr(torch, "compiler", None), "is_compiling", None)
    tracing = getattr(getattr(torch, "_C", None), "_is_tracing", None) or getattr(
        getattr(torch, "jit", None), "is_tracing", None
    )
    if compiling is None or tracing is None:
        return compiling or tracing or (lambda: False)
    return lambda: compiling() or tracing()


def gradients_are_kept() -> Callable[[], bool]:
    """Whether a forward pass keeps what a backward pass needs; looked up once, since it is asked behind each."""
    import torch

    asks: Callable[[], bool] | None = getattr(torch, "is_grad_enabled", None)
    return asks or (lambda: True)
