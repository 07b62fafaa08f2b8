"""Watches for a profiler that the job constructs itself. torch allows one at a time and raises at the second."""

from __future__ import annotations

import functools
import threading

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any


class Watch:
    def __init__(self, seen: Callable[[], None]) -> None:
        import torch

        self.seen = seen
        self.patched: list[tuple[Any, Any, Any]] = []  # (class, our __init__, its own)
        for owner in (torch.profiler._KinetoProfile, torch.autograd.profiler.profile):
            self.patch(owner)

    def patch(self, owner: Any) -> None:
        original = owner.__init__

        @functools.wraps(original)
        def watched(*args: Any, **kwargs: Any) -> Any:
            if not ours():
                self.seen()
            return original(*args, **kwargs)

        owner.__init__ = watched
        self.patched.append((owner, watched, original))

    def remove(self) -> None:
        for owner, watched, original in self.patched:
            if owner.__init__ is watched:
                owner.__init__ = original
        self.patched = []


_own = threading.local()


def ours() -> bool:
    return getattr(_own, "depth", 0) > 0


class own_profiler:
    """Within this block a profiler is constructed by stepscope."""

    def __enter__(self) -> None:
        _own.depth = getattr(_own, "depth", 0) + 1

    def __exit__(self, *exc: object) -> None:
        _own.depth -= 1
