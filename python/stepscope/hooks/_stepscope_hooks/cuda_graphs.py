"""CUDA graphs of the job. While one is captured nothing of ours may ask the device for anything: that would end the
capture, and the job with it. One that holds a step of an optimizer is a step of the job each time it is replayed.
"""

from __future__ import annotations

import contextlib
import threading
import weakref

from .replaced import Replaced

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any


_captured: dict[int, weakref.ref[Any]] = {}  # graphs whose capture runs, by the thread that began it


def capturing() -> bool:
    """Whether any thread of this process captures a graph."""
    return bool(_captured) and any(graph() is not None for graph in list(_captured.values()))


class CudaGraphs:
    def __init__(self, replayed: Callable[[], None]) -> None:
        """`replayed` is called after each replay that was a step."""
        self.replayed = replayed
        self.replaced = Replaced()
        self.of_steps: weakref.WeakSet[Any] = weakref.WeakSet()
        self.captured = False  # anything

    def install(self) -> None:
        import torch

        kind = getattr(torch.cuda, "CUDAGraph", None)
        for name, wrap in (("capture_begin", self.begins), ("capture_end", self.ends), ("replay", self.replays)):
            self.replaced.replace(kind, name, wrap)

    def uninstall(self) -> None:
        self.replaced.undo()

    def stepped(self) -> bool:
        """An optimizer did: in a capture of this thread, so that nothing is computed yet?"""
        captured = _captured.get(threading.get_ident())
        graph = captured() if captured is not None else None
        if graph is None:
            return False
        self.of_steps.add(graph)
        return True

    # In the place of torch's own ----------------------------------------------------------------------------------
    def begins(self, own: Any) -> Any:
        def capture_begin(graph: Any, *args: Any, **kwargs: Any) -> Any:
            self.captured = True
            with contextlib.suppress(Exception):  # of a class derived from torch's, that cannot be kept in a set
                self.of_steps.discard(graph)
                _captured[threading.get_ident()] = weakref.ref(graph)
            try:
                return own(graph, *args, **kwargs)
            except BaseException:
                _captured.pop(threading.get_ident(), None)
                raise

        return capture_begin

    def ends(self, own: Any) -> Any:
        def capture_end(graph: Any, *args: Any, **kwargs: Any) -> Any:
            try:
                return own(graph, *args, **kwargs)
            finally:
                _captured.pop(threading.get_ident(), None)

        return capture_end

    def replays(self, own: Any) -> Any:
        def replay(graph: Any, *args: Any, **kwargs: Any) -> Any:
            result = own(graph, *args, **kwargs)
            if self.of_steps and graph in self.of_steps:
                self.replayed()
            return result

        return replay
