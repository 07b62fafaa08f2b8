"""Two ranks, four micro batches a step: gradients travel after each of them, though only their sum is used."""

from __future__ import annotations

import contextlib

import torch
from clock import Clock, leave, options
from torch import Tensor, nn
from torch import distributed as dist
from torch.nn import functional as F
from torch.nn.parallel import DistributedDataParallel

COLUMNS, WIDTH, DEPTH, CLASSES, BATCH, MICRO = 128, 1024, 3, 10, 16, 4


class Block(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.norm, self.linear = nn.LayerNorm(WIDTH), nn.Linear(WIDTH, WIDTH)

    def forward(self, x: Tensor) -> Tensor:
        return x + F.gelu(self.linear(self.norm(x)))


def main() -> None:
    args = options(__doc__, steps=60)
    dist.init_process_group("gloo")
    rank = dist.get_rank()
    torch.manual_seed(0)
    model = DistributedDataParallel(
        nn.Sequential(nn.Linear(COLUMNS, WIDTH), *(Block() for _ in range(DEPTH)), nn.Linear(WIDTH, CLASSES))
    )
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    torch.manual_seed(1 + rank)
    clock = Clock()
    for step in range(args.steps):
        optimizer.zero_grad(set_to_none=False)
        for micro in range(MICRO):
            waits = args.fixed and micro < MICRO - 1
            with model.no_sync() if waits else contextlib.nullcontext():
                x = torch.randn(BATCH, COLUMNS)
                loss = F.cross_entropy(model(x), x[:, :CLASSES].argmax(dim=1)) / MICRO
                loss.backward()  # fault
        optimizer.step()
        clock.tick()
        if rank == 0 and step % 10 == 0:
            print(f"step {step:4d}  loss {MICRO * loss.item():.4f}")
    if rank == 0:
        clock.report()
    leave()


if __name__ == "__main__":
    main()
