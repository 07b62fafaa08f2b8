"""Tells a memory state of the passes of its model where no `stepscope run` does: in code of the job's own.

Beside the hooks of a run, which count steps and mark phases, this is one more observer with hooks of its own.
"""

from __future__ import annotations

import threading

from . import marks, phases, roots
from .kept_tensors import keeper

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable
    from typing import Any

    from .memory_state import MemoryState


class Passes:
    def __init__(self, state: MemoryState, models: Iterable[Any]) -> None:
        self.state, self.models = state, models
        self.phases = phases.Phases(self)
        self.thread: int | None = None  # that runs the passes
        self.open: list[int] = []  # a pass within a pass, as in a backward pass that recomputes, is a part of it

    def begin(self) -> None:
        self.phases.install(first_call=False)
        self.phases.roots = [roots.Root(model, self.phases, outermost=False) for model in self.models]

    def end(self) -> None:
        self.phases.uninstall()

    def phase_begins(self, phase: int) -> None:
        self.thread = self.thread or threading.get_ident()
        if threading.get_ident() == self.thread:
            keeper.look()
            self.open.append(phase)

    def phase_ends(self, phase: int) -> None:
        if threading.get_ident() != self.thread:
            return
        if phase in self.open:
            del self.open[self.open.index(phase) :]
        if self.open:
            return
        try:
            if phase == marks.FORWARD:
                self.state.forward_ended()
            elif phase == marks.BACKWARD:
                self.state.backward_ended()
        except Exception as error:
            self.state.problem(f"measuring memory failed: {type(error).__name__}: {error}")

    def optimizer_begins(self, optimizer: Any) -> None:
        self.phase_begins(marks.OPTIMIZER)

    def optimizer_ends(self, optimizer: Any, kwargs: dict[str, Any]) -> None:
        self.phase_ends(marks.OPTIMIZER)

    def loader_seen(self, iterator: Any) -> None:
        pass

    def batch_came(self) -> None:
        pass

    def backward_ended(self) -> None:
        pass

    def forward_ended(self, gradients: bool) -> None:
        pass

    def first_forward(self) -> None:
        pass
