"""Calls of a module that was given the very same before, in the same step: what the first call gave would do.

Looked for in the step that is recorded with stacks, whose times nobody reads.
"""

from __future__ import annotations

import contextlib
import weakref
from threading import get_ident

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from typing import Any

_MOST_TENSORS = 32  # of a call
_MOST_CALLS = 4096  # of all modules; later ones are not looked at
_PLAIN = (bool, int, float, str, type(None))


class _Call:
    """What a module was given. Holds no tensor: one that is gone is another one, wherever its memory is."""

    def __init__(self, module: Any, args: Any, kwargs: Any, number: int) -> None:
        import torch

        self.number = number
        self.learns = torch.is_grad_enabled()
        self.key: list[Any] = [module.training]
        self.owners: list[Any] = []  # of the memory of each tensor
        for name, value in _flat(args, kwargs):
            if isinstance(value, torch.Tensor):
                owner = value if value._base is None else value._base
                self.owners.append(weakref.ref(owner))
                place = value.data_ptr(), value.storage_offset(), tuple(value.shape), value.stride(), value.dtype
                self.key.append((name, place, value._version))
            elif isinstance(value, _PLAIN):
                self.key.append((name, value))
            else:
                self.key.append((name, id(value), type(value)))
                self.owners.append(weakref.ref(value))  # raises where nobody can tell that it is gone
        self.key += [(one.data_ptr(), one._version) for one in module.parameters()]

    def is_same(self, other: _Call) -> bool:
        mine, others = [one() for one in self.owners], [one() for one in other.owners]
        return bool(mine) and self.key == other.key and all(a is not None and a is b for a, b in zip(mine, others))


class CalledAgain:
    def __init__(self, place: Callable[[], tuple[str, int, int] | None]) -> None:
        self.place = place  # of the program, that calls the module now
        self.thread = get_ident()
        self.looked_at = 0
        self.calls: dict[str, int] = {}  # by path of the module
        self.seen: dict[str, list[_Call]] = {}
        self.found: list[tuple[str, int, tuple[str, int, int] | None, bool]] = []

    def called(self, path: str, module: Any, args: Any, kwargs: Any) -> None:
        if get_ident() != self.thread:
            return
        number = self.calls[path] = self.calls.get(path, 0) + 1
        self.looked_at += 1
        if self.looked_at > _MOST_CALLS or _in_backward():
            return
        with contextlib.suppress(Exception):  # of a tensor that has no memory of its own, or cannot be asked
            call = _Call(module, args, kwargs, number)
            before = self.seen.setdefault(path, [])
            same = next((one for one in before if one.is_same(call)), None)
            before.append(call)
            if same is None:
                return
            # What nobody learns from goes, where the other one learns.
            needless = same if call.learns and not same.learns else call
            self.found.append((path, needless.number, self.place(), _has_chance(module)))

    def rows(self) -> Iterator[tuple[str, int, int, bool, tuple[str, int, int]]]:
        """Path of the module, which of its calls in the step, of how many, whether chance makes them differ, and where
        the program calls it."""
        for path, number, at, chance in self.found:
            if at is not None:
                yield path, number, self.calls[path], chance, at


def _flat(args: Any, kwargs: Any) -> Iterator[tuple[str, Any]]:
    left: list[tuple[str, Any]] = [*((str(i), one) for i, one in enumerate(args)), *kwargs.items()]
    count = 0
    while left:
        name, value = left.pop()
        if isinstance(value, (list, tuple)):
            left += [(f"{name}.{i}", one) for i, one in enumerate(value)]
        elif isinstance(value, dict):
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


def _has_chance(module: Any) -> bool:
    """Dropout that is on, in it: two calls do not give the same."""
    return any(one.training and getattr(one, "p", 0) and "Dropout" in type(one).__name__ for one in module.modules())
