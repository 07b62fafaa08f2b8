"""What hooks on saved tensors would take from the job, given back while ours are there (kept_tensors.py).

- torch calls the newest hooks only: those of the job's own are called as ever, and what they keep is seen.
- A recomputation of checkpointed code has hooks too; what it keeps belongs to autograd until its memory is free.
- A function of the job's own (autograd.Function) would get plain tensors in place of those that it saved, without what
  Megatron-LM and others attach to parameters. Ours go aside while it is called; what it saved is looked at afterwards.
- torch.func refuses to work where hooks are, and so does register_hooks of one saved tensor: they meet none.
"""

from __future__ import annotations

import functools
import sys
import threading
import weakref

from .kept_tensors import Kept
from .own_code import keep_from_compiler
from .replaced import Replaced

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from .kept_tensors import Keeper, Stack


class Beside:
    def __init__(self, keeper: Keeper, stack: Stack) -> None:
        self.keeper, self.stack = keeper, stack
        self.replaced = Replaced()
        self.aside = threading.local()  # `by_torch`: ours went for torch.func
        self.own_apply: Any = None  # torch's, as it stands in its class
        self.our_apply: Any = None
        self.functions = Functions(keeper)

    def install(self) -> None:
        import torch

        hooks = torch.autograd.graph.saved_tensors_hooks
        self.replaced.replace(hooks, "__enter__", self.around_enter)
        self.replaced.replace(hooks, "__exit__", self.around_exit)
        self.replaced.replace(torch._C._autograd, "_saved_tensors_hooks_disable", self.before_disable)
        self.replaced.replace(torch._C._autograd, "_saved_tensors_hooks_enable", self.after_enable)
        self.replaced.replace(torch._C._autograd.SavedTensor, "register_hooks", self.around_register)
        self.replace_apply(torch.autograd.Function)
        keep_from_compiler()

    def uninstall(self) -> None:
        import torch

        self.replaced.undo()
        if self.our_apply is not None and torch.autograd.Function.__dict__.get("apply") is self.our_apply:
            torch.autograd.Function.apply = self.own_apply
        self.our_apply = None

    # Hooks of the job's own --------------------------------------------------------------------------------------
    def around_enter(self, original: Any) -> Any:
        keeper, stack = self.keeper, self.stack

        def __enter__(context: Any) -> Any:
            pack, unpack = context.pack_hook, context.unpack_hook
            seen = _seen_pack(keeper, context, pack, unpack) if keeper.watchers else None
            if seen is not None:
                context.pack_hook, context.unpack_hook = seen
            try:
                result = original(context)
            finally:
                context.pack_hook, context.unpack_hook = pack, unpack
            stack.others(1)
            return result

        return __enter__

    def around_exit(self, original: Any) -> Any:
        def __exit__(context: Any, *error: Any) -> Any:
            result = original(context, *error)
            self.stack.others(-1)
            if not self.keeper.watchers:
                self.keeper.look()
            return result

        return __exit__

    def before_disable(self, original: Any) -> Any:
        def disable(*args: Any, **kwargs: Any) -> Any:
            if self.stack.pop():
                self.aside.by_torch = True
            return original(*args, **kwargs)

        return disable

    def after_enable(self, original: Any) -> Any:
        def enable(*args: Any, **kwargs: Any) -> Any:
            result = original(*args, **kwargs)
            if getattr(self.aside, "by_torch", False):
                self.aside.by_torch = False
                self.keeper.look()
            return result

        return enable

    def around_register(self, original: Any) -> Any:
        def register_hooks(saved: Any, pack: Any, unpack: Any) -> Any:
            kept = getattr(saved, "data", None)  # since torch 2.8
            if not isinstance(kept, Kept) or kept.own_unpack is not None:
                return original(saved, pack, unpack)
            import torch

            with torch.no_grad():
                value = pack(kept.value)
            kept.value, kept.own_unpack, entries = value, unpack, kept.entries
            kept.entries = ()
            for entry in entries:  # what the job's hook made of it is its own
                entry.gone.append(entry)
            return None

        return register_hooks

    # Functions of the job's own ----------------------------------------------------------------------------------
    def replace_apply(self, cls: Any) -> None:
        own = cls.__dict__.get("apply")
        if not isinstance(own, classmethod):
            return
        stack, keeper, functions = self.stack, self.keeper, self.functions
        original = own.__func__

        @functools.wraps(original)
        def apply(cls: Any, *args: Any, **kwargs: Any) -> Any:
            if not keeper.watchers or not stack.pop():
                return original(cls, *args, **kwargs)
            try:
                result = original(cls, *args, **kwargs)
            finally:
                stack.push()
            if keeper.watchers:
                functions.saw(result)
            return result

        self.own_apply, self.our_apply = own, classmethod(apply)
        cls.apply = self.our_apply


def _seen_pack(keeper: Keeper, context: Any, pack: Any, unpack: Any) -> tuple[Any, Any] | None:
    """Hooks that do the same and show what they keep; None: they keep nothing, or belong to torch's compiler."""
    kind = type(context)
    if kind.__module__ == "torch.utils.checkpoint" and kind.__name__ == "_checkpoint_hook":
        return None
    if isinstance(pack, sys.modules["torch"].nn.Module):
        return None
    if kind.__module__ == "torch.utils.checkpoint" and kind.__name__ == "_recomputation_hook":

        @functools.wraps(pack)
        def recomputed(tensor: Any) -> Any:
            keeper.observe(tensor)
            return pack(tensor)

        return recomputed, unpack

    def chained(tensor: Any) -> Kept:
        kept = Kept(pack(tensor))
        kept.own_unpack = unpack
        for part in _tensors(kept.value):
            keeper.see(part, kept)
        return kept

    from .kept_tensors import unpack as ours

    return chained, ours


def _tensors(value: Any, depth: int = 2) -> list[Any]:
    import torch

    if isinstance(value, torch.Tensor):
        return [value]
    if isinstance(value, dict):
        value = list(value.values())
    if depth == 0 or not isinstance(value, (tuple, list)):
        return []
    return [found for part in value for found in _tensors(part, depth - 1)]


class Functions:
    """Calls of the job's own functions whose saved tensors are there."""

    def __init__(self, keeper: Keeper) -> None:
        self.keeper = keeper
        self.living: dict[int, tuple[weakref.ref[Any], Kept]] = {}  # a Kept that holds entries and no tensor
        self.calls = 0

    def saw(self, result: Any) -> None:
        try:
            node = _node(result)
            kept = Kept(None)
            for tensor in node.saved_tensors if node is not None else ():
                if tensor is not None:
                    self.keeper.see(tensor, kept, watched=True)
            if kept.entries:
                self.calls += 1
                key, living = self.calls, self.living
                living[key] = (weakref.ref(node, lambda _: living.pop(key, None)), kept)
        except Exception as error:
            self.keeper.failed(error)

    def look(self) -> None:
        """After a backward pass: where it let go of what they saved, nothing is kept."""
        for key, (node, _) in list(self.living.items()):
            if not _holds(node()):
                self.living.pop(key, None)


def _node(result: Any) -> Any:
    import torch

    base = torch.autograd.function.BackwardCFunction
    for tensor in result if isinstance(result, tuple) else (result,):
        node = tensor.grad_fn if isinstance(tensor, torch.Tensor) else None
        if isinstance(node, base):
            return node
    return None


def _holds(node: Any) -> bool:
    try:
        return node is not None and node.saved_tensors is not None
    except RuntimeError:  # as torch refuses a second backward pass
        return False
