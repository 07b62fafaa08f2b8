#!/usr/bin/env python3
"""Writes tiny_snapshot.pickle: four steps of a training that keeps a little of each, and where memory then runs out.

    tests/traces/make_tiny_snapshot.py

Segments, blocks and events are those of the modeled allocator (tests/python/allocator.py).
"""

from __future__ import annotations

import contextlib
import sys
from pathlib import Path
from typing import Any

HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent / "python"))

from allocator import GIB, MIB, Allocator, OutOfMemory, dump  # noqa: E402

OUTER = {"filename": "/job/train.py", "line": 40, "name": "main"}


def stack(file: str, line: int, name: str) -> list[dict[str, Any]]:
    return [{"filename": file, "line": line, "name": name}, OUTER]


def step(gpu: Allocator, optimizer: str) -> None:
    forward = stack("/job/model.py", 12, "forward")
    activations = [gpu.malloc(100 * MIB, forward) for _ in range(3)]
    gpu.malloc(12 * MIB, stack("/job/train.py", 21, "log_output"))  # nobody frees it
    activations += [gpu.malloc(100 * MIB, forward) for _ in range(3)]
    gpu.mark("backward", "START")
    gradients = [gpu.malloc(40 * MIB) for _ in range(2)]
    for address in reversed(activations):
        gpu.free(address)
    gpu.mark("backward", "END")
    gpu.mark(optimizer, "START")
    gpu.mark(optimizer, "END")
    for address in gradients:
        gpu.free(address, stack("/opt/torch/optim/optimizer.py", 300, "zero_grad"))


def main() -> None:
    gpu = Allocator(GIB + 160 * MIB)
    gpu.free(gpu.malloc(960 * MIB, stack("/job/train.py", 8, "warm_up")))  # one segment for all that follows
    before = len(gpu.events)
    for _ in range(4):
        gpu.malloc(40 * MIB, stack("/opt/torch/nn/modules/module.py", 900, "_apply"))
    for _ in range(4):
        step(gpu, "Optimizer.step#SGD.step")
    with contextlib.suppress(OutOfMemory):
        gpu.malloc(500 * MIB, stack("/job/model.py", 31, "attention"))
    dump(gpu.snapshot(newest=len(gpu.events) - before), HERE / "tiny_snapshot.pickle")


if __name__ == "__main__":
    main()
