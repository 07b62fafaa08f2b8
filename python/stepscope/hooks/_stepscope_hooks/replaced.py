"""Functions of torch that have one of ours in their place, until everything is taken out again.

Several of ours may stand in one place, each calling the one before it, and go in any order: the place gets torch's own
back when the last of them goes.
"""

from __future__ import annotations

import functools

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any


class _Place:
    def __init__(self, owner: Any, name: str, own: Any) -> None:
        self.owner, self.name, self.own = owner, name, own
        self.layers: list[Any] = []  # ours, the newest last; those that went are None below others


_places: dict[tuple[int, str], _Place] = {}


class Replaced:
    def __init__(self) -> None:
        self.all: list[tuple[_Place, Any]] = []

    def replace(self, owner: Any, name: str, wrap: Callable[[Any], Any]) -> None:
        """Puts wrap(its own) there; nothing where this torch has no such name."""
        own = getattr(owner, name, None)
        if own is None:
            return
        place = _places.get((id(owner), name))
        if place is None or own not in place.layers:
            place = _places[id(owner), name] = _Place(owner, name, own)
        ours = functools.wraps(own)(wrap(own))
        setattr(owner, name, ours)
        place.layers.append(ours)
        self.all.append((place, ours))

    def undo(self) -> None:
        """What somebody else replaced meanwhile is left, and does nothing."""
        for place, ours in self.all:
            on_top = getattr(place.owner, place.name) is place.layers[-1]
            place.layers[place.layers.index(ours)] = None
            if not on_top:
                continue
            while place.layers and place.layers[-1] is None:
                place.layers.pop()
            setattr(place.owner, place.name, place.layers[-1] if place.layers else place.own)
            if not place.layers:
                _places.pop((id(place.owner), place.name), None)
        self.all = []
