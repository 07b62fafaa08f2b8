"""`stepscope run --memory`: the state of memory of this process's model, without code in the job.

The model is found at its first forward pass, else after the first step (where torch.compile is used before); what is
measured are the steps from there on, as many as asked for. Files: memory_trace/rankR_dpD_tpT in the run folder.
"""

from __future__ import annotations

import os
import weakref

from . import marks, parallel, process, roots
from .kept_tensors import keeper
from .modules import named

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from .capture import Capture
    from .memory_state import MemoryState


class MemoryWatch:
    def __init__(self, capture: Capture) -> None:
        self.capture, self.notes = capture, capture.notes
        self.steps_left = capture.settings.memory_steps
        self.asked = self.steps_left > 0
        self.waiting = False  # for the model
        self.state: MemoryState | None = None
        self.optimizers: list[weakref.ref[Any]] = []

    def arm(self) -> None:
        if self.asked:
            with self.notes.guard("getting ready to measure memory"):
                keeper.expect()
                self.waiting = True

    def begin(self, models: list[Any]) -> None:
        """At a forward pass of theirs, or between two."""
        if not self.waiting or not models or process.is_data_worker():
            return
        with self.notes.guard("measuring memory"):
            if not self.capture.wants(None):
                self.stop()
                return
            from .memory_state import MemoryState

            rank, _, _ = self.capture.identity or (0, 1, "")
            folder = unused(os.path.join(self.notes.run_folder, "memory_trace", folder_name(rank)))
            self.look_for_optimizers()
            self.state = MemoryState(folder, about(self.notes.host, self.steps_left), self.living, self.notes.problem)
            self.state.step = self.capture.boundary
            self.state.begin(named(models))
            self.stop_waiting()
            self.tell(folder)

    def tell(self, folder: str) -> None:
        inside = os.path.relpath(folder, self.notes.run_folder)
        self.notes.write(memory_trace=inside)

    def look_for_optimizers(self) -> None:
        import torch

        base = getattr(getattr(torch, "optim", None), "Optimizer", None)
        for optimizer in roots.instances(base) if base is not None else []:
            self.optimizer_seen(optimizer)

    def optimizer_seen(self, optimizer: Any) -> None:
        if all(known() is not optimizer for known in self.optimizers):
            self.optimizers = [known for known in self.optimizers if known() is not None]
            self.optimizers.append(weakref.ref(optimizer))

    def living(self) -> list[Any]:
        found = (known() for known in self.optimizers)
        return [optimizer for optimizer in found if optimizer is not None]

    # Whoever calls these in every step of the job looks for a state first, which costs less than a call.

    def phase_begins(self) -> None:
        keeper.look()

    def phase_ends(self, phase: int) -> None:
        state = self.state
        if state is None:
            return
        with self.notes.guard("measuring memory"):
            if phase == marks.FORWARD:
                state.forward_ended()
            elif phase == marks.BACKWARD:
                state.backward_ended()

    def step_ended(self) -> None:
        state = self.state
        if state is None:
            return
        with self.notes.guard("measuring memory"):
            self.steps_left -= 1
            state.step_ended(last=self.steps_left <= 0)
        if self.steps_left <= 0:
            self.end(complete=True)

    def end(self, complete: bool) -> None:
        state, self.state = self.state, None
        if state is not None:
            with self.notes.guard("writing the state of memory"):
                state.end(complete)

    def stop_waiting(self) -> None:
        if self.waiting:
            self.waiting = False
            keeper.comes(None)

    def stop(self) -> None:
        self.stop_waiting()
        self.end(complete=False)

    def forget(self) -> None:
        """In a forked child."""
        if self.state is not None:
            self.state.forget()
        self.state = None

    def finish(self) -> None:
        """At the end of the process."""
        waited = self.waiting
        self.stop()
        if waited and self.asked and self.capture.boundary > 0:
            self.notes.problem("--memory had nothing to measure: no model was found")


def folder_name(rank: int) -> str:
    """rank3_dp3_tp0: of a place that nobody tells, as if all ranks were data parallel."""
    known = parallel.places()
    return f"rank{rank}_dp{known.get('dp', (rank, 0))[0]}_tp{known.get('tp', (0, 0))[0]}"


def unused(folder: str) -> str:
    """Made now; where a process of the same rank wrote into it, such as one before a restart, with a number behind."""
    name, number = folder, 1
    while True:
        try:
            os.makedirs(name)
            return name
        except FileExistsError:
            number += 1
            name = f"{folder}-{number}"


def about(host: str, steps: int) -> dict[str, Any]:
    """Who writes, in front of what is written."""
    import time

    import torch

    rank, world, source = process.rank()
    return {
        "rank": rank,
        "world_size": world,
        "rank_source": source,
        "places": parallel.places(),
        "host": host,
        "pid": os.getpid(),
        "torch": str(torch.__version__),
        "started_unix_ns": time.time_ns(),
        "steps_wanted": steps,
    }
