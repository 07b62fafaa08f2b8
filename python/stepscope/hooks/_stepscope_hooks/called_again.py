"""Calls of a module that was given the very same before, in the same step: what the first call gave would do.

Looked for in the step that is recorded with stacks, whose times nobody reads.
"""

from __future__ import annotations

import contextlib
import weakref
from threading import get_ident

from .contents import Contents

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Hashable, Iterator
    from typing import Any

    At = tuple[str, int, int]  # file, first line of the function, line

_MOST_TENSORS = 32  # of a call
_MOST_MODULES = 20_000  # that are looked at, again with each call
_MOST_OF_ONE = 64  # module
_PLAIN = (bool, int, float, str, type(None))


class _Call:
    """What a module was given, and what it is made of. Holds no tensor: one that is gone is another one, wherever its
    memory is. Raises where it cannot be told."""

    def __init__(self, module: Any, args: Any, kwargs: Any, number: int, memory: Contents) -> None:
        import torch

        self.number = number
        self.modules = 0  # in it
        self.learns = torch.is_grad_enabled()
        self.owners: list[weakref.ref[Any]] = []  # of the memory of each tensor
        key: list[Hashable] = [torch.is_autocast_enabled()]
        for name, value in _flat(args, kwargs):
            if type(value) in (torch.Tensor, torch.nn.Parameter):
                self.owners.append(weakref.ref(value if value._base is None else value._base))
                key.append((name, tuple(value.shape), value.stride(), value.dtype, *memory.of(value)))
            elif isinstance(value, _PLAIN):
                key.append((name, value))
            else:
                raise TypeError(f"{type(value).__name__} may change inside")
        for one in module.modules():
            self.modules += 1
            key.append(one.training)
            # What a norm that learns keeps of a batch is for later, and nothing that it gives now depends on it.
            keeps = one._buffers if not (one.training and isinstance(one, torch.nn.modules.batchnorm._NormBase)) else {}
            for held in (one._parameters, keeps):
                key += [memory.of(tensor) for tensor in held.values() if tensor is not None]
            key += [(name, _state(value, memory)) for name, value in vars(one).items() if name not in _OF_TORCH]
        self.key = tuple(key)

    def is_same(self, other: _Call) -> bool:
        mine, others = [one() for one in self.owners], [one() for one in other.owners]
        return bool(mine) and all(a is not None and a is b for a, b in zip(mine, others))


_OF_TORCH = frozenset(
    ("training", "_parameters", "_buffers", "_modules", "_non_persistent_buffers_set", "_is_full_backward_hook")
)


def _state(value: Any, memory: Contents) -> Hashable:
    """Of what else a module keeps, as a flag that turns part of it off, or what it remembers from call to call."""
    import torch

    if isinstance(value, _PLAIN):
        return value
    if isinstance(value, torch.Tensor):
        return (id(value), *memory.of(value))
    if isinstance(value, (list, tuple, dict)) and len(value) <= _MOST_TENSORS:
        return type(value).__name__, tuple(id(one) for one in (value.values() if isinstance(value, dict) else value))
    return id(value)


class CalledAgain:
    def __init__(self, place: Callable[[], At | None]) -> None:
        self.place = place  # of the program, that calls the module now
        self.thread = get_ident()
        self.modules = 0  # that were looked at
        self.memory = Contents()
        self.calls: dict[str, int] = {}  # by path of the module
        self.seen: dict[tuple[str, Hashable], _Call] = {}  # the last one of its kind
        self.found: list[tuple[str, int, At]] = []

    def called(self, path: str, module: Any, args: Any, kwargs: Any) -> None:
        if get_ident() != self.thread:
            return
        number = self.calls[path] = self.calls.get(path, 0) + 1
        if self.modules > _MOST_MODULES or number > _MOST_OF_ONE or _in_backward():
            return
        with contextlib.suppress(Exception):  # of what has no memory of its own, or cannot be asked
            call = _Call(module, args, kwargs, number, self.memory)
            self.modules += call.modules
            before = self.seen.get((path, call.key))
            self.seen[path, call.key] = call
            if before is None or not call.is_same(before):
                return
            # What nobody learns from goes, where the other one learns.
            needless = before if call.learns and not before.learns else call
            at = self.place()
            if at is not None:
                self.found.append((path, needless.number, at))

    def rows(self) -> Iterator[tuple[str, int, int, At]]:
        """Path of the module, which of its calls in the step, of how many, and where the program calls it."""
        for path, number, at in self.found:
            yield path, number, self.calls[path], at

    def forget(self) -> None:
        self.seen, self.found = {}, []


def _flat(args: Any, kwargs: Any) -> Iterator[tuple[str, Any]]:
    left: list[tuple[str, Any]] = [*((str(i), one) for i, one in enumerate(args)), *kwargs.items()]
    count = 0
    while left:
        name, value = left.pop()
        if type(value) in (list, tuple):
            left += [(f"{name}.{i}", one) for i, one in enumerate(value)]
        elif type(value) is dict:
            left += [(f"{name}.{key}", one) for key, one in value.items()]
        else:
            yield name, value
        count += 1
        if count > _MOST_TENSORS:
            raise ValueError("too much to compare")


def _in_backward() -> bool:
    """What a backward pass calls is made again to save memory."""
    import torch

    running = getattr(torch._C, "_current_graph_task_id", None)
    return running is not None and running() != -1
