"""What a report says of the training that the model is part of: sizes of its groups, batch, latencies of the step.

Input: a DeepSpeed engine, whose names are looked up one by one since versions differ, or what a callback knows. None is
not known.
"""

from __future__ import annotations

import sys
from dataclasses import dataclass
from typing import Any

from .._recording import _hooks


@dataclass(frozen=True)
class Latencies:
    """Seconds of one step."""

    forward: float | None
    backward: float | None
    step: float | None  # of the optimizer

    def since(self, before: Latencies | None) -> Latencies:
        """The same of timers that had run before: an engine's go on over all micro-batches of a step."""
        if before is None:
            return self
        pairs = ((self.forward, before.forward), (self.backward, before.backward), (self.step, before.step))
        return Latencies(*(None if now is None else now - (then or 0.0) for now, then in pairs))


@dataclass(frozen=True)
class Job:
    world_size: int | None
    dp_world_size: int | None
    mp_world_size: int
    batch_size: int | None  # samples of one forward pass on this rank
    passes: int = 1  # forward passes of the step
    expert_tensor_parallel: int | None = None  # None: it has no experts
    latencies: Latencies | None = None


def job_of_engine(engine: Any, model: Any, before: Latencies | None, passes: int) -> Job:
    """`before`: its timers as the measurement began."""
    latencies = latencies_of_engine(engine)
    experts = bool(getattr(engine, "has_moe_layers", False))
    data_parallel = engine.dp_world_size
    if data_parallel is None:  # sequence parallelism has a group of its own
        data_parallel = getattr(engine, "seq_dp_world_size", None)
    return Job(
        world_size=engine.world_size,
        dp_world_size=data_parallel,
        mp_world_size=engine.mp_world_size or 1,
        batch_size=engine.train_micro_batch_size_per_gpu(),
        passes=passes,
        expert_tensor_parallel=_expert_tensor_parallel(engine, model) if experts else None,
        latencies=None if latencies is None else latencies.since(before),
    )


def _expert_tensor_parallel(engine: Any, model: Any) -> int:
    kind = getattr(sys.modules.get("deepspeed.moe.layer"), "MoE", None)
    layers = [one for one in model.modules() if kind is not None and isinstance(one, kind)]
    enabled = next((one.enable_expert_tensor_parallelism for one in layers), False)
    return engine.mp_world_size if enabled else 1


def latencies_of_engine(engine: Any) -> Latencies | None:
    """Of its timers, since it set them to 0; None: it has none."""
    if engine is None or not engine.wall_clock_breakdown():
        return None
    names = sys.modules.get("deepspeed.utils.timer")

    def seconds(constant: str, usual: str) -> float | None:
        elapsed = engine.timers(getattr(names, constant, usual)).elapsed(reset=False) / 1000.0
        return elapsed or None

    return Latencies(
        seconds("FORWARD_GLOBAL_TIMER", "fwd"),
        seconds("BACKWARD_GLOBAL_TIMER", "bwd"),
        seconds("STEP_GLOBAL_TIMER", "step"),
    )


def job_of_process(batch_size: int | None, passes: int, latencies: Latencies | None) -> Job:
    """Of any program: ranks and places as its own libraries tell them."""
    hooks = _hooks()
    _, world, _ = hooks.process.rank()
    sizes = {name: size for name, (_, size) in hooks.parallel.places().items() if size > 0}
    model_parallel = sizes.get("tp", 1) * sizes.get("pp", 1)
    return Job(
        world_size=world,
        dp_world_size=sizes.get("dp", world // model_parallel),
        mp_world_size=model_parallel,
        batch_size=batch_size,
        passes=passes,
        latencies=latencies,
    )
