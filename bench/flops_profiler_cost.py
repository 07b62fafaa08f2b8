#!/usr/bin/env python3
"""What a profiled step costs: stepscope.flops beside torch's FlopCounterMode and, where it is installed, DeepSpeed.

    bench/flops_profiler_cost.py [--rounds N]

A 6-layer GPT of 256 channels on one thread, forward and backward of 2 rows of 128 tokens. All take a step in turn, in
one process, and CPU time is what is compared. What comes before and after the step (starting and stopping torch's
profiler, its JSON, counting) is told by itself. DeepSpeed patches torch while it profiles and counts forward alone.
"""

from __future__ import annotations

import argparse
import contextlib
import importlib
import importlib.util
import io
import os
import statistics
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
sys.path[:0] = [str(ROOT / "python"), str(ROOT / "tests" / "python"), str(ROOT / "bench")]

import torch  # noqa: E402
from flops_nets import Gpt  # noqa: E402
from recording_cost import interval, line  # noqa: E402
from torch.utils.flop_counter import FlopCounterMode  # noqa: E402

from stepscope.flops import FlopsProfiler  # noqa: E402

Contestant = Callable[["Training"], dict[str, float]]  # CPU ns by part; "step" is compared
PARTS = ("start", "stop and JSON", "counting")


class Training:
    def __init__(self) -> None:
        torch.set_num_threads(1)
        torch.manual_seed(0)
        self.model = Gpt(hidden=256, heads=8, kv_heads=8, layers=6, words=2000, attention="fused", checkpointed=False)
        self.words = torch.randint(0, 2000, (2, 128))

    def step(self) -> None:
        self.model.zero_grad(set_to_none=True)
        self.model(self.words).float().square().sum().backward()


class Clock:
    """CPU time of the parts that follow each other."""

    def __init__(self) -> None:
        self.parts: dict[str, float] = {}
        self.last = time.process_time_ns()

    def ends(self, part: str) -> None:
        now = time.process_time_ns()
        self.parts[part], self.last = now - self.last, now


def plain(training: Training) -> dict[str, float]:
    clock = Clock()
    training.step()
    clock.ends("step")
    return clock.parts


def ours(training: Training) -> dict[str, float]:
    profiler = FlopsProfiler(training.model)
    clock = Clock()
    profiler.start_profile()
    clock.ends("start")
    training.step()
    clock.ends("step")
    profiler.stop_profile()
    clock.ends("stop and JSON")
    profiler.get_total_flops()
    clock.ends("counting")
    profiler.end_profile()
    return clock.parts


def torch_profiler(training: Training) -> dict[str, float]:
    with torch.profiler.profile(activities=[torch.profiler.ProfilerActivity.CPU], record_shapes=True):
        clock = Clock()
        training.step()
        clock.ends("step")
    return clock.parts


def flop_counter(training: Training) -> dict[str, float]:
    clock = Clock()
    with FlopCounterMode(display=False):
        training.step()
    clock.ends("step")
    return clock.parts


@contextlib.contextmanager
def quiet() -> Iterator[None]:
    with contextlib.redirect_stdout(io.StringIO()), contextlib.redirect_stderr(io.StringIO()):
        yield


def deepspeed() -> Contestant | None:
    if importlib.util.find_spec("deepspeed") is None:
        return None
    with quiet():
        theirs: Any = importlib.import_module("deepspeed.profiling.flops_profiler.profiler")

    def contestant(training: Training) -> dict[str, float]:
        with quiet():
            profiler = theirs.FlopsProfiler(training.model)
            clock = Clock()
            profiler.start_profile()
            training.step()
            profiler.end_profile()
            clock.ends("step")
        return clock.parts

    return contestant


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rounds", type=int, default=30)
    args = parser.parse_args()
    os.environ.setdefault("KINETO_LOG_LEVEL", "6")
    contestants: dict[str, Contestant] = {
        "plain": plain,
        "stepscope.flops": ours,
        "torch.profiler with shapes": torch_profiler,
        "FlopCounterMode": flop_counter,
    }
    theirs = deepspeed()
    if theirs is not None:
        contestants["DeepSpeed (forward alone)"] = theirs
    found: dict[str, list[dict[str, float]]] = {name: [] for name in contestants}
    training = Training()
    for number in range(args.rounds + 2):
        for name in list(contestants) if number % 2 else list(contestants)[::-1]:
            parts = contestants[name](training)
            if number >= 2:  # what is slow only once is over
                found[name].append(parts)
    base = [parts["step"] for parts in found["plain"]]
    step_ms = statistics.median(base) / 1e6
    print(f"a profiled step / the plain step, CPU time, {args.rounds} alternating rounds (plain: {step_ms:.1f} ms)")
    for name, all_parts in found.items():
        if name == "plain":
            continue
        median, low, high = interval([parts["step"] / plain for parts, plain in zip(all_parts, base)])
        wanted = "wanted <= 1.10" if name == "stepscope.flops" else ""
        line(name, f"{median:.3f} [{low:.3f} {high:.3f}]", wanted)
    print("stepscope.flops beside the step, CPU time")
    for part in PARTS:
        line(part, f"{statistics.median(parts[part] for parts in found['stepscope.flops']) / 1e6:.1f} ms")
    return 0


if __name__ == "__main__":
    sys.exit(main())
