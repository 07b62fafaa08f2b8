"""What a fused optimizer leaves of the time of one that goes through all parameters once per operator, on the CPU.

bench/fused_optimizer.py [--threads N]: the figures of causes/unfused_optimizer.cc
"""

from __future__ import annotations

import argparse
import statistics
import time
from collections.abc import Callable

import torch

SIZES = ((100, 4_000), (50, 40_000), (20, 250_000), (1, 1_900_000), (12, 600_000), (4, 4_000_000), (1, 16_000_000))
KINDS: dict[str, Callable[[list[torch.nn.Parameter], bool], torch.optim.Optimizer]] = {
    "Adam": lambda parameters, fused: torch.optim.Adam(parameters, 1e-3, fused=fused),
    "AdamW": lambda parameters, fused: torch.optim.AdamW(parameters, 1e-3, fused=fused),
    "SGD": lambda parameters, fused: torch.optim.SGD(parameters, 1e-3, momentum=0.9, weight_decay=1e-4, fused=fused),
}
ROUNDS, STEPS, WARM = 3, 8, 2


def step_ms(optimizer: torch.optim.Optimizer, between: torch.Tensor) -> float:
    """Median; `between` is gone through before each step, as the rest of a training step would clear the caches."""
    taken = []
    for _ in range(STEPS):
        for group in optimizer.param_groups:
            for parameter in group["params"]:
                parameter.grad = torch.full_like(parameter, 1e-3)
        between.add_(1)
        start = time.perf_counter()
        optimizer.step()
        taken.append(1e3 * (time.perf_counter() - start))
    return statistics.median(taken[WARM:])


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--threads", type=int, default=torch.get_num_threads())
    torch.set_num_threads(parser.parse_args().threads)
    between = torch.ones(24_000_000)
    for kind, make in KINDS.items():
        for count, size in SIZES:
            parameters = [torch.nn.Parameter(torch.randn(size)) for _ in range(count)]
            pair = make(parameters, False), make(parameters, True)
            rounds = [[step_ms(one, between) for one in pair] for _ in range(ROUNDS)]
            plain, fused = (statistics.median(times) for times in zip(*rounds))
            print(f"{kind:5} {count:4} x {size:10,}  {plain:8.2f} ms  fused {fused:8.2f} ms  left {fused / plain:.2f}")


if __name__ == "__main__":
    main()
