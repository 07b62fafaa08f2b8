"""What autograd keeps for the backward pass, seen as it is kept and as it is let go: torch's hooks on saved tensors.

The graph holds a `Kept` in the tensor's place; its end is the end of what autograd keeps. Where hooks are, torch no
longer refuses tensors that were changed in place: `unpack` does it, in torch's words. What else hooks would change for
the job is given back in kept_beside.py. Hooks lie on a stack of each thread; ours only ever lie at its bottom, so that
a `with` of the job's own never takes them for its own.
"""

from __future__ import annotations

import re
import threading
import weakref

from . import torch_version

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, Protocol

    class Watcher(Protocol):
        """Who is told of tensors that autograd keeps; whatever it raises ends here."""

        def keep(self, tensor: Any, watched: bool) -> tuple[Any, ...]:
            """Entries with a list `gone`, which each is put into when autograd lets go of the tensor. `watched`: or
            when its memory is free, if that is earlier."""

        def observe(self, tensor: Any) -> None:
            """Kept by somebody else on behalf of autograd: as long as its memory is there."""

        def failed(self, error: Exception) -> None: ...


_MODIFIED = (
    "one of the variables needed for gradient computation has been modified by an inplace operation: [{kind} {shape}]"
    "{maker} is at version {version}; expected version {expected} instead. Hint: {hint}"
)
_ANOMALY_OFF = (
    "enable anomaly detection to find the operation that failed to compute its gradient, with "
    "torch.autograd.set_detect_anomaly(True{more})."
)
_ANOMALY_ON = (
    "the backtrace further above shows the operation that failed to compute its gradient. The variable in question "
    "was changed in there or anywhere later. Good luck!"
)


class Kept:
    __slots__ = ("entries", "maker", "origin", "own_unpack", "value", "version")

    def __init__(self, value: Any) -> None:
        self.entries: tuple[Any, ...] = ()
        self.maker = -1  # number of the node of the operation that made it
        self.origin: Any = None  # a weak reference to the tensor as the job has it
        self.own_unpack: Any = None  # of the job's own hooks
        self.value = value  # a tensor; with hooks of the job's own what these made of it
        self.version: int | None = None

    def __del__(self) -> None:
        for entry in self.entries:
            entry.gone.append(entry)


def unpack(kept: Kept) -> Any:
    if kept.own_unpack is not None:
        return kept.own_unpack(kept.value)
    if kept.version is not None and kept.value._version != kept.version:
        raise RuntimeError(_modified(kept))
    return kept.value


def _modified(kept: Kept) -> str:
    import torch

    tensor = kept.value
    hint = _ANOMALY_ON
    if not torch.is_anomaly_enabled():
        hint = _ANOMALY_OFF.format(more="" if torch_version.before(2, 13) else ", check_nan=False")
    return _MODIFIED.format(
        kind=tensor.type(),
        shape=list(tensor.shape),
        maker=_maker(kept),
        version=tensor._version,
        expected=kept.version,
        hint=hint,
    )


def _maker(kept: Kept) -> str:
    """Of a result that its own node keeps that node; else what made the tensor as it is now."""
    import torch

    current = getattr(torch._C, "_current_autograd_node", lambda: None)()
    tensor = kept.origin()
    own = current is not None and current._sequence_nr() == kept.maker
    node = current if own else getattr(tensor, "grad_fn", None)
    if node is None:
        return ""
    name = node.name()
    if not torch_version.before(2, 13):
        name = re.sub(r"Backward\d+$", "", name)
    return f", which is output {getattr(tensor, 'output_nr', 0)} of {name},"


class Stack:
    """Of hooks on saved tensors, in this thread. torch before 2.8 does not show it: there ours are counted, and whether
    any lie there is learned from torch's refusal to switch them off."""

    def __init__(self, pack: Any) -> None:
        import torch

        autograd = torch._C._autograd
        self.own = pack
        self.shown: Any = getattr(autograd, "_top_saved_tensors_default_hooks", None)
        self.disabled: Any = autograd._saved_tensors_hooks_get_disabled_error_message
        self.disable, self.enable = autograd._saved_tensors_hooks_disable, autograd._saved_tensors_hooks_enable
        self.add: Any = autograd._push_saved_tensors_default_hooks
        self.take: Any = autograd._pop_saved_tensors_default_hooks
        self.counted = threading.local()  # `mine`: whether ours lie there; `above`: how many others came after

    def is_mine(self) -> bool:
        """Whether ours are those that are called."""
        if self.shown is not None:
            top = self.shown(True)
            return top is not None and top[0] is self.own
        return getattr(self.counted, "mine", False) and getattr(self.counted, "above", 0) == 0

    def takes_ours(self) -> bool:
        """Whether nothing lies there, and hooks are not switched off."""
        if self.disabled() is not None:
            return False
        if self.shown is not None:
            return self.shown(True) is None
        try:
            self.disable("")
            return True
        except RuntimeError:
            return False
        finally:
            self.enable()

    def others(self, change: int) -> None:
        """Hooks of the job's own came (1) or went (-1)."""
        self.counted.above = max(0, getattr(self.counted, "above", 0) + change)

    def push(self) -> None:
        if self.takes_ours():
            self.add(self.own, unpack)
            self.counted.mine, self.counted.above = True, 0

    def pop(self) -> bool:
        if not self.is_mine():
            return False
        self.take()
        self.counted.mine = False
        return True


class Keeper:
    """The hooks of this process, for all who watch."""

    def __init__(self) -> None:
        self.watchers: list[Watcher] = []
        self.expected = 0  # who will come
        self.stack: Stack | None = None
        self.beside: Any = None  # what gives back to the job what hooks would take

    def expect(self) -> None:
        """Somebody will come. Early: `call = Function.apply` of the job, when it is imported, then gets ours."""
        from .kept_beside import Beside

        self.expected += 1
        if self.stack is None:
            self.stack = Stack(self.pack_quietly)
            self.beside = Beside(self, self.stack)
            self.beside.install()

    def comes(self, watcher: Watcher | None) -> None:
        """Who was expected, or does not come after all."""
        self.expected -= 1
        if watcher is not None:
            self.watchers = [*self.watchers, watcher]
        self.look()

    def leave(self, watcher: Watcher) -> None:
        self.watchers = [other for other in self.watchers if other is not watcher]
        self.look()

    def look(self) -> None:
        """Brings the hooks where they belong, as soon as none of the job's own lie in the way."""
        if self.stack is None:
            return
        if self.watchers:
            self.stack.push()
        elif self.expected == 0 and (self.stack.pop() or self.stack.takes_ours()):
            self.beside.uninstall()
            self.stack = self.beside = None

    def pack_quietly(self, tensor: Any) -> Kept:
        import torch

        if not torch._C._has_torch_function_unary(tensor):
            return self.pack(tensor)
        with torch._C.DisableTorchFunction():  # code of the job's own would run
            return self.pack(tensor)

    def pack(self, tensor: Any) -> Kept:
        import torch

        maker = tensor.grad_fn
        if torch._C._get_tracing_state() is not None:
            return Kept(tensor.data)  # what else we did would become part of the traced program
        kept = Kept(tensor if maker is None else tensor.detach())  # with its maker the graph would hold itself
        kept.version, kept.origin = tensor._version, weakref.ref(tensor)
        if maker is not None:
            kept.maker = maker._sequence_nr()
        self.see(tensor, kept)
        return kept

    def see(self, tensor: Any, kept: Kept, watched: bool = False) -> None:
        for watcher in self.watchers:
            try:
                kept.entries += watcher.keep(tensor, watched)
            except Exception as error:
                watcher.failed(error)

    def observe(self, tensor: Any) -> None:
        for watcher in self.watchers:
            try:
                watcher.observe(tensor)
            except Exception as error:
                watcher.failed(error)

    def failed(self, error: Exception) -> None:
        for watcher in self.watchers:
            watcher.failed(error)

    def backward_ended(self) -> None:
        if self.beside is not None:
            self.beside.functions.look()


keeper = Keeper()
