"""Functions of torch that have one of ours in their place, until everything is taken out again."""

from __future__ import annotations

import functools

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any


class Replaced:
    def __init__(self) -> None:
        self.all: list[tuple[Any, str, Any, Any]] = []  # owner, name, ours, its own

    def replace(self, owner: Any, name: str, wrap: Callable[[Any], Any]) -> None:
        """Puts wrap(its own) there; nothing where this torch has no such name."""
        own = getattr(owner, name, None)
        if own is None:
            return
        ours = functools.wraps(own)(wrap(own))
        setattr(owner, name, ours)
        self.all.append((owner, name, ours, own))

    def undo(self) -> None:
        """What somebody else replaced meanwhile is left, and does nothing."""
        for owner, name, ours, own in self.all:
            if getattr(owner, name) is ours:
                setattr(owner, name, own)
        self.all = []
