"""CUDA graphs of the job. While one is captured nothing of ours may ask the device for anything: that would end the
capture, and the job with it. One that holds a step of an optimizer is a step of the job each time it is replayed.
"""

from __future__ import annotations

import weakref

from .replaced import Replaced

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any


class CudaGraphs:
    def __init__(self, replayed: Callable[[], None]) -> None:
        """`replayed` is called after each replay that was a step."""
        self.replayed = replayed
        self.replaced = Replaced()
        self.captured: weakref.ref[Any] | None = None  # the graph whose capture runs
        self.of_steps: weakref.WeakSet[Any] = weakref.WeakSet()

    def install(self) -> None:
        import torch

        kind = getattr(torch.cuda, "CUDAGraph", None)
        for name, wrap in (("capture_begin", self.begins), ("capture_end", self.ends), ("replay", self.replays)):
            self.replaced.replace(kind, name, wrap)

    def uninstall(self) -> None:
        self.replaced.undo()

    @property
    def capturing(self) -> bool:
        return self.captured is not None and self.captured() is not None

    def stepped(self) -> None:
        """An optimizer did, in the capture that runs."""
        graph = self.captured() if self.captured is not None else None
        if graph is not None:
            self.of_steps.add(graph)

    # In the place of torch's own ----------------------------------------------------------------------------------
    def begins(self, own: Any) -> Any:
        def capture_begin(graph: Any, *args: Any, **kwargs: Any) -> Any:
            self.of_steps.discard(graph)
            self.captured = weakref.ref(graph)
            try:
                return own(graph, *args, **kwargs)
            except BaseException:
                self.captured = None
                raise

        return capture_begin

    def ends(self, own: Any) -> Any:
        def capture_end(graph: Any, *args: Any, **kwargs: Any) -> Any:
            try:
                return own(graph, *args, **kwargs)
            finally:
                self.captured = None

        return capture_end

    def replays(self, own: Any) -> Any:
        def replay(graph: Any, *args: Any, **kwargs: Any) -> Any:
            result = own(graph, *args, **kwargs)
            if self.of_steps and graph in self.of_steps:
                self.replayed()
            return result

        return replay
