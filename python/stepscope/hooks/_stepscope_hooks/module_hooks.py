"""Hooks on modules that nobody else meets: not torch.compile, not torch.jit.script, no copy and no file of a module.

What torch.compile traces with hooks in place would be another program, and compiled again when they go. torch tells
when it starts and ends compiling a frame. Meanwhile hooks are lifted from all modules but those that run right now:
these are outside of the frame. Hooks that come to a compiled module afterwards are not called and not looked at, which
is torch's default (skip_nnmodule_hook_guards); under another setting they stay away. Older torch (2.5 was tried, 2.13
is right) looks at hooks of all classes but its own whatever the setting: those modules then have none. What
`Module.compile()` compiled runs its hooks inside of the program: there we stand around what it is called by. So we do
with a TransformerEncoderLayer, which is another, slower program where it or anything in it has hooks: while it answers,
none of ours is in it.

A module that is copied or pickled goes without our hooks. Where its class says itself what belongs to its state, they
become calls of a function of Python's own library that does nothing, so that the file opens where stepscope is not.
"""

from __future__ import annotations

import contextlib
import copyreg
import functools
import string
import sys
import threading
import weakref

from . import torch_version

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

_HOOKS = (  # dicts by the number of the hook
    "_forward_pre_hooks",
    "_forward_pre_hooks_with_kwargs",
    "_forward_hooks",
    "_forward_hooks_always_called",
)

_living: dict[int, ModuleHook] = {}
_changes = 0  # of these
_arounds: dict[int, _Around] = {}  # by the module that looks for hooks
_outermost: dict[int, ModuleHook] = {}  # by the module
_asked_for = False  # torch.compile was called
_told_by: Any = None  # torch's list of whom to call
_compiling = False
_lock = threading.RLock()  # hooks may come from our clock's thread, just when another one starts to compile


class _Call:
    """One of the two functions that torch calls."""

    def __init__(self, function: Callable[..., None], arguments: int, passes: bool = False) -> None:
        self.function, self.arguments = function, arguments
        self.passes = passes  # what the module is called with

    def __call__(self, *args: Any) -> None:
        self.function(*args[1:]) if self.passes else self.function()

    def __reduce_ex__(self, protocol: Any) -> Any:
        does_nothing = string.Formatter()
        if self.arguments == 3:
            return getattr, (does_nothing, "check_unused_args")
        return functools.partial, (does_nothing.check_unused_args, None)


class _Around:
    """What a module is called by while hooks of ours are around it: what compiled it, else torch's own way."""

    def __init__(self, module: Any, compiled: Any) -> None:
        if compiled is not None:
            functools.update_wrapper(self, compiled)
        self.module, self.compiled = weakref.ref(module), compiled
        self.hooks: list[ModuleHook] = []
        self.inside: tuple[int, list[ModuleHook]] = (-1, [])  # ours on modules in this one, and when that was true

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        call = self.compiled
        if call is None:
            module: Any = self.module()
            with contextlib.suppress(Exception):
                self.clear_way(module)
            call = module._call_impl
        hooks = list(self.hooks)
        for hook in hooks:
            hook.enter(args, kwargs)
        try:
            return call(*args, **kwargs)
        finally:
            for hook in reversed(hooks):
                hook.leave()

    def clear_way(self, module: Any) -> None:
        """A module that looks for hooks inside of it finds none of ours while it answers."""
        with _lock:
            if self.inside[0] != _changes:
                inner = {id(one) for one in module.modules()} - {id(module)}
                self.inside = (_changes, [hook for hook in list(_living.values()) if id(hook.module()) in inner])
            for hook in self.inside[1]:
                if module.training and not hook.handles:
                    hook.place()
                elif not module.training and hook.handles:
                    hook.lift()


class _CompiledHandle:
    """One hook around a module that was compiled in place; removed as torch's own handles are."""

    def __init__(self, module: Any, hook: ModuleHook) -> None:
        call = module.__dict__["_compiled_call_impl"]
        if not isinstance(call, _Around):
            call = module.__dict__["_compiled_call_impl"] = _Around(module, call)
        self.id = -1  # of no dict of torch's
        self.call, self.hook = call, hook
        call.hooks.insert(0, hook)

    def remove(self) -> None:
        self.call.hooks.remove(self.hook)
        module = self.call.module()
        if not self.call.hooks and module is not None and module.__dict__.get("_compiled_call_impl") is self.call:
            module.__dict__["_compiled_call_impl"] = self.call.compiled


class _Calls:
    """In a class of modules that look for hooks: which of them are called by what stands around them.

    In the class, so that copies, replicas and files of a module hold nothing of ours; what compiles one in place is in
    the module itself and comes first.
    """

    def __get__(self, module: Any, cls: type | None = None) -> Any:
        around = _arounds.get(id(module))
        return around if around is not None and around.module() is module else None


class _LookingHandle:
    """One hook around a module that looks for hooks."""

    def __init__(self, module: Any, hook: ModuleHook) -> None:
        self.id, self.key, self.hook = -1, id(module), hook
        around = _arounds.get(self.key)
        if around is None or around.module() is not module:
            around = _arounds[self.key] = _Around(module, None)
        around.hooks.insert(0, hook)
        for cls in _classes_that_look():
            if not isinstance(cls.__dict__.get("_compiled_call_impl"), _Calls):
                cls._compiled_call_impl = _Calls()  # type: ignore[attr-defined]

    def remove(self) -> None:
        around = _arounds.get(self.key)
        if around is not None and self.hook in around.hooks:
            around.hooks.remove(self.hook)
            if not around.hooks:
                del _arounds[self.key]
        for cls in _classes_that_look():
            if not _arounds and isinstance(cls.__dict__.get("_compiled_call_impl"), _Calls):
                del cls._compiled_call_impl  # type: ignore[attr-defined]


class ModuleHook:
    """Calls `before()` and `after()` around each forward pass of a module, also one that raises; around other hooks.

    `outermost`: around those of ours too that come later. Where it is told that a forward pass has ended, no range of
    the module is open any more. `inputs`: is called first, with what the module is called with.
    """

    def __init__(
        self,
        module: Any,
        before: Callable[[], None],
        after: Callable[[], None],
        outermost: bool = False,
        inputs: Callable[[Any, Any], None] | None = None,
    ) -> None:
        self.module = weakref.ref(module)
        self.before, self.after, self.inputs = before, after, inputs
        self.inside = 0
        self.late = False  # others came while the module ran, and are around this one, which is to be outermost
        self.handles: list[Any] = []
        global _changes
        with _lock:
            _living[id(self)] = self
            _changes += 1
            if outermost:
                _outermost[id(module)] = self
            _follow_compiler()
            self.place()
            _keep_out_of_states()

    def place(self) -> None:
        with _lock:
            module = self.module()
            if _compiling or self.handles or module is None or _compiled_with_guards_on(type(module)):
                return
            if is_compiled_in_place(module):
                self.handles = [_CompiledHandle(module, self)]
            elif _looks_for_hooks(module):
                if not keeps_out(module):
                    self.handles = [_LookingHandle(module, self)]
            else:
                passes = self.inputs is not None
                call = _Call(self.enter, 3 if passes else 2, passes)
                self.handles = [
                    module.register_forward_pre_hook(call, prepend=True, with_kwargs=passes),
                    module.register_forward_hook(_Call(self.leave, 3), always_call=True),
                ]
            around = _outermost.get(id(module))
            if around is not None and around is not self and around.handles:
                around.late = around.inside > 0
                if not around.late:
                    around.lift()
                    around.place()

    def enter(self, args: Any = (), kwargs: Any = None) -> None:
        if id(self) not in _living:
            return  # removed since torch made its list of hooks to call
        self.inside += 1
        if self.inputs is not None:
            self.inputs(args, kwargs or {})
        self.before()

    def leave(self) -> None:
        self.inside = max(0, self.inside - 1)
        self.after()
        if (
            self.late and sys.exc_info()[0] is None
        ):  # behind a call that raised torch goes through the hooks as they lie
            self.go_around()

    def go_around(self) -> None:
        """Those that came while the module ran: from its next call on."""
        with _lock:
            if self.late and not self.inside:
                self.late = False
                self.lift()
                self.place()

    def lift(self) -> None:
        for handle in self.handles:
            handle.remove()
        self.handles = []

    def remove(self) -> None:
        global _changes
        with _lock:
            self.lift()
            _living.pop(id(self), None)
            _changes += 1
            for key in [key for key, hook in _outermost.items() if hook is self]:
                del _outermost[key]
            if not _living:
                _let_into_states()
                _forget_compiler()


def of(module: Any) -> list[ModuleHook]:
    """Ours on this module, in the order in which they came."""
    return [hook for hook in list(_living.values()) if hook.module() is module and hook.handles]


def after_fork() -> None:
    """In the child: a thread that is not there may have held the lock."""
    global _lock
    _lock = threading.RLock()


def _classes_that_look() -> tuple[type, ...]:
    layer = getattr(sys.modules.get("torch.nn"), "TransformerEncoderLayer", None)
    return () if layer is None else (layer,)


def _looks_for_hooks(module: Any) -> bool:
    """torch answers by one operator in place of this module, unless it or one in it has hooks."""
    return isinstance(module, _classes_that_look())


def compiles() -> bool:
    """Did this process ask for something to be compiled?"""
    return _asked_for or "frames" in getattr(sys.modules.get("torch._dynamo.utils"), "counters", {})


def keeps_out(module: Any) -> bool:
    """It looks for hooks, and we cannot stand around it: nothing in it may have any."""
    if not _looks_for_hooks(module):
        return False
    return not hasattr(type(module), "_compiled_call_impl") or (compiles() and torch_version.before(2, 13))


# torch.compile --------------------------------------------------------------------------------------------------------
def _follow_compiler() -> None:
    """Asks torch to be told of compiling, once its compiler is loaded; never loads it."""
    global _told_by, _compiling
    callbacks = sys.modules.get("torch._dynamo.callback")
    told_by: Any = getattr(callbacks, "callback_handler", None)
    starts = getattr(told_by, "start_callbacks", None)
    if starts is None or _compiling_starts in starts:  # torch._dynamo.reset() forgets us
        return
    told_by.register_start_callback(_compiling_starts)
    told_by.register_end_callback(_compiling_ends)
    _told_by = told_by
    _compiling = getattr(told_by, "_CompilationCallbackHandler__pending_callbacks_counter", 0) > 0  # since before


def _forget_compiler() -> None:
    if _told_by is not None and _compiling_starts in _told_by.start_callbacks:
        _told_by.remove_start_callback(_compiling_starts)
        _told_by.remove_end_callback(_compiling_ends)


def is_compiled_in_place(module: Any) -> bool:
    return module.__dict__.get("_compiled_call_impl") is not None


def compiled_in_place(module: Any) -> None:
    """Its hooks would be called inside of the program from now on."""
    with _lock:
        for hook in list(_living.values()):
            if hook.module() is module and not hook.inside:
                hook.lift()
                hook.place()


def before_compile() -> None:
    """Something is to be compiled later. Where torch will not tell when (before 2.5), modules lose their hooks now."""
    global _asked_for
    with _lock:
        _asked_for = True
        if _living:
            _follow_compiler()
        if _told_by is None:
            _lift_all()


def _compiled_with_guards_on(cls: type) -> bool:
    """Whether a hook that comes or goes may make torch compile anew what has a module of this class."""
    if not torch_version.before(2, 13) or cls.__module__.startswith(("torch.nn.", "torch.ao.", "torch._dynamo.")):
        return False
    return compiles()


def _lift_all() -> None:
    for hook in list(_living.values()):
        if not hook.inside:
            hook.lift()


def _compiling_starts(*_: object) -> None:
    global _compiling
    with _lock:
        _compiling = True
        _lift_all()


def _compiling_ends(*_: object) -> None:
    global _compiling
    with _lock:
        _compiling = False
        config = sys.modules.get("torch._dynamo.config")
        if getattr(config, "skip_nnmodule_hook_guards", False):
            for hook in list(_living.values()):
                hook.place()


def without_hooks(original: Any) -> Any:
    """The same function, during which no module has hooks of ours."""

    def call(*args: Any, **kwargs: Any) -> Any:
        lifted = [hook for hook in list(_living.values()) if hook.handles]
        for hook in lifted:
            hook.lift()
        try:
            return original(*args, **kwargs)
        finally:
            for hook in lifted:
                if id(hook) in _living:  # not removed meanwhile
                    hook.place()

    return call


# Copies and files -----------------------------------------------------------------------------------------------------
def _usual_state(module: Any) -> Any:
    """What a class without __getstate__ of its own is copied and pickled by."""
    if hasattr(object, "__getstate__"):  # Python 3.11
        return object.__getstate__(module)
    names = copyreg._slotnames(type(module))  # type: ignore[attr-defined]
    slots = {name: getattr(module, name) for name in names if hasattr(module, name)}
    return (module.__dict__, slots) if slots else module.__dict__


def _without_ours(module: Any, whole: Any) -> Any:
    state = whole[0] if isinstance(whole, tuple) else whole
    ours = {handle.id for hook in list(_living.values()) if hook.module() is module for handle in hook.handles}
    if not ours or not isinstance(state, dict):
        return whole
    state = dict(state)
    for name in _HOOKS:
        hooks = state.get(name)
        if hooks:
            state[name] = type(hooks)((number, hook) for number, hook in hooks.items() if number not in ours)
    return (state, *whole[1:]) if isinstance(whole, tuple) else state


_own_getstate: Any = None  # torch's, if it has one
_our_getstate: Any = None


def _keep_out_of_states() -> None:
    global _own_getstate, _our_getstate
    import torch

    own = torch.nn.Module.__dict__.get("__getstate__")
    if _our_getstate is not None and own is _our_getstate:
        return
    usual = own if own is not None else _usual_state

    def __getstate__(module: Any) -> Any:
        return _without_ours(module, usual(module))

    _own_getstate, _our_getstate = own, functools.wraps(usual)(__getstate__)
    torch.nn.Module.__getstate__ = _our_getstate


def _let_into_states() -> None:
    import torch

    if _our_getstate is None or torch.nn.Module.__dict__.get("__getstate__") is not _our_getstate:
        return
    if _own_getstate is None:
        del torch.nn.Module.__getstate__
    else:
        torch.nn.Module.__getstate__ = _own_getstate
