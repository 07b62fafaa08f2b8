"""Digits by a wide network that sees them as rows of numbers, all of them in memory."""

from __future__ import annotations

import torch
from clock import Clock, options
from torch import nn
from torch.nn import functional as F

PIXELS, WIDTH, CLASSES, BATCH = 784, 768, 10, 512


def main() -> None:
    args = options(__doc__, steps=80)
    torch.manual_seed(0)
    model = nn.Sequential(
        nn.Linear(PIXELS, WIDTH), nn.ReLU(), nn.Linear(WIDTH, WIDTH), nn.ReLU(), nn.Linear(WIDTH, CLASSES)
    )
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9)
    labels = torch.randint(CLASSES, (10000,))
    rows = torch.rand(CLASSES, PIXELS)[labels] + 0.5 * torch.randn(10000, PIXELS)
    clock = Clock()
    for step in range(args.steps):
        picked = torch.randint(len(rows), (BATCH,))
        with torch.autocast("cpu", torch.bfloat16):
            answer = model(rows[picked])
        loss = F.cross_entropy(answer.float(), labels[picked])
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        clock.tick()
        if step % 20 == 0:
            print(f"step {step:4d}  loss {loss.item():.4f}")
    clock.report()


if __name__ == "__main__":
    main()
