"""Probes on a frozen encoder on a GPU, one for each of many tasks, and a look at the loss of each as it is there."""

from __future__ import annotations

import torch
from clock import Clock, need_cuda, options
from torch import Tensor, nn
from torch.nn import functional as F

WORDS, LENGTH, WIDTH, HEADS, LAYERS, BATCH, TASKS = 4000, 256, 1024, 16, 6, 192, 24


def encoder() -> nn.Module:
    layers = [nn.TransformerEncoderLayer(WIDTH, HEADS, 4 * WIDTH, 0.0, batch_first=True) for _ in range(LAYERS)]
    return nn.Sequential(nn.Embedding(WORDS, WIDTH), *layers).eval().requires_grad_(False)


def probe() -> nn.Module:
    return nn.Sequential(nn.LayerNorm(WIDTH), nn.Linear(WIDTH, 256), nn.GELU(), nn.Linear(256, 10))


def losses(probes: nn.ModuleList, whole: Tensor, words: Tensor, smallest: list[float] | None) -> Tensor:
    """The mean over all tasks; `smallest` of each is kept up to date."""
    total = torch.zeros((), device="cuda")
    for task, head in enumerate(probes):
        loss = F.cross_entropy(head(whole), words[:, task] % 10)
        if smallest is not None:
            smallest[task] = min(smallest[task], loss.item())  # fault
        total = total + loss
    return total / TASKS


def main() -> None:
    args = options(__doc__, steps=100)
    need_cuda()
    torch.manual_seed(0)
    backbone, probes = encoder().cuda(), nn.ModuleList(probe() for _ in range(TASKS)).cuda()
    optimizer = torch.optim.AdamW(probes.parameters(), lr=3e-4, fused=True)
    smallest = None if args.fixed else [float("inf")] * TASKS
    clock = Clock(period=20)
    for step in range(args.steps):
        words = torch.randint(WORDS, (BATCH, LENGTH), device="cuda")
        with torch.autocast("cuda", torch.bfloat16):
            with torch.no_grad():
                whole = backbone(words).mean(dim=1)
            loss = losses(probes, whole, words, smallest)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        clock.tick()
        if step % 20 == 0:
            print(f"step {step:4d}  loss {loss.item():.4f}")
    clock.report()


if __name__ == "__main__":
    main()
