"""Volumes of a scanner are copied to a GPU from memory that the driver has to copy once more."""

from __future__ import annotations

import torch
from clock import Clock, need_cuda, options
from torch import nn
from torch.nn import functional as F

SIDE, BATCH, KEPT = 64, 16, 8


def network() -> nn.Module:
    widths = (1, 16, 32, 64)
    stages = [nn.Sequential(nn.Conv3d(a, b, 3, 2, 1), nn.BatchNorm3d(b), nn.ReLU()) for a, b in zip(widths, widths[1:])]
    return nn.Sequential(*stages, nn.AdaptiveAvgPool3d(1), nn.Flatten(), nn.Linear(64, 4))


def main() -> None:
    args = options(__doc__, steps=200)
    need_cuda()
    torch.manual_seed(0)
    model = network().cuda()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01, momentum=0.9)
    batches = [torch.randn(BATCH, 1, SIDE, SIDE, SIDE) for _ in range(KEPT)]
    if args.fixed:
        batches = [batch.pin_memory() for batch in batches]
    labels = torch.randint(4, (BATCH,), device="cuda")
    clock = Clock(period=20)
    for step in range(args.steps):
        volumes = batches[step % KEPT].to("cuda", non_blocking=args.fixed)  # fault
        loss = F.cross_entropy(model(volumes), labels)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        clock.tick()
        if step % 20 == 0:
            print(f"step {step:4d}  loss {loss.item():.4f}")
    clock.report()


if __name__ == "__main__":
    main()
