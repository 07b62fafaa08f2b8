"""Hooks on modules that torch.compile never sees: with them in place, what it traces would be another program, and it
would be compiled again when they go.

torch tells when it starts and ends compiling a frame. Meanwhile hooks are lifted from all modules but those that run
right now: these are outside of the frame. Hooks that come to a compiled module afterwards are not called and not looked
at, which is torch's default (skip_nnmodule_hook_guards); under another setting they stay away.
"""

from __future__ import annotations

import sys
import weakref

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

_living: dict[int, ModuleHook] = {}
_told_by: Any = None  # torch's list of whom to call


class ModuleHook:
    """Calls `before()` and `after()` around each forward pass of a module, also one that raises."""

    def __init__(self, module: Any, before: Callable[[], None], after: Callable[[], None], first: bool = False) -> None:
        self.module = weakref.ref(module)
        self.before, self.after = before, after
        self.first = first  # before the hooks that are there
        self.inside = 0
        self.handles: list[Any] = []
        self.place()
        _living[id(self)] = self
        follow_compiler()

    def place(self) -> None:
        module = self.module()
        if self.handles or module is None:
            return
        self.handles = [
            module.register_forward_pre_hook(self.enter, prepend=self.first),
            module.register_forward_hook(self.leave, always_call=True),
        ]

    def enter(self, _module: Any, _args: Any) -> None:
        self.inside += 1
        self.before()

    def leave(self, _module: Any, _args: Any, _output: Any) -> None:
        self.inside = max(0, self.inside - 1)
        self.after()

    def lift(self) -> None:
        for handle in self.handles:
            handle.remove()
        self.handles = []

    def remove(self) -> None:
        self.lift()
        _living.pop(id(self), None)


def follow_compiler() -> None:
    """Asks torch to be told of compiling, once its compiler is loaded; never loads it."""
    global _told_by
    callbacks = sys.modules.get("torch._dynamo.callback")
    told_by: Any = getattr(callbacks, "callback_handler", None)
    starts = getattr(told_by, "start_callbacks", None)
    if starts is None or _compiling_starts in starts:  # torch._dynamo.reset() forgets us
        return
    told_by.register_start_callback(_compiling_starts)
    told_by.register_end_callback(_compiling_ends)
    _told_by = told_by


def forget_compiler() -> None:
    if _told_by is not None and _compiling_starts in _told_by.start_callbacks:
        _told_by.remove_start_callback(_compiling_starts)
        _told_by.remove_end_callback(_compiling_ends)


def before_compile() -> None:
    """Something is to be compiled later. Where torch will not tell when (before 2.5), modules lose their hooks now."""
    follow_compiler()
    if _told_by is None:
        _compiling_starts()


def _compiling_starts(*_: object) -> None:
    for hook in list(_living.values()):
        if not hook.inside:
            hook.lift()


def _compiling_ends(*_: object) -> None:
    config = sys.modules.get("torch._dynamo.config")
    if getattr(config, "skip_nnmodule_hook_guards", False):
        for hook in list(_living.values()):
            hook.place()
