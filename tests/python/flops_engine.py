"""What stands for an engine of DeepSpeed where its package is not: the names that its profiler asks for."""

from __future__ import annotations

from typing import Any


class Timer:
    def __init__(self, ms: float) -> None:
        self.ms = ms

    def elapsed(self, reset: bool = True) -> float:
        return self.ms


class Engine:
    world_size, dp_world_size, mp_world_size = 1, 1, 1
    has_moe_layers = False

    def __init__(self, **values: Any) -> None:
        self.ms = {"fwd": 0.0, "bwd": 0.0, "step": 0.0}
        for name, value in values.items():
            setattr(self, name, value)

    def timers(self, name: str) -> Timer:
        return Timer(self.ms[name])

    def wall_clock_breakdown(self) -> bool:
        return True

    def train_micro_batch_size_per_gpu(self) -> int:
        return 32
