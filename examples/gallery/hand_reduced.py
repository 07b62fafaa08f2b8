"""Two ranks train a deep network and add up their gradients by hand, weight by weight, once all are there."""

from __future__ import annotations

import torch
from clock import Clock, leave, options
from torch import Tensor, nn
from torch import distributed as dist
from torch.nn import functional as F
from torch.nn.parallel import DistributedDataParallel

COLUMNS, WIDTH, DEPTH, BATCH = 64, 192, 16, 512


class Block(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.norm = nn.LayerNorm(WIDTH)
        self.up, self.down = nn.Linear(WIDTH, WIDTH), nn.Linear(WIDTH, WIDTH)

    def forward(self, x: Tensor) -> Tensor:
        return x + self.down(F.gelu(self.up(self.norm(x))))


def average(model: nn.Module) -> None:
    for parameter in model.parameters():
        dist.all_reduce(parameter.grad)  # fault
        parameter.grad.div_(dist.get_world_size())  # fault


def main() -> None:
    args = options(__doc__, steps=80)
    dist.init_process_group("gloo")
    rank = dist.get_rank()
    torch.manual_seed(0)
    model: nn.Module = nn.Sequential(nn.Linear(COLUMNS, WIDTH), *(Block() for _ in range(DEPTH)), nn.Linear(WIDTH, 10))
    if args.fixed:
        model = DistributedDataParallel(model)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01, momentum=0.9)
    torch.manual_seed(1 + rank)
    clock = Clock()
    for step in range(args.steps):
        x = torch.randn(BATCH, COLUMNS)
        loss = F.cross_entropy(model(x), x[:, :10].argmax(dim=1))
        optimizer.zero_grad()
        loss.backward()
        if not args.fixed:
            average(model)  # fault
        optimizer.step()
        clock.tick()
        if rank == 0 and step % 20 == 0:
            print(f"step {step:4d}  loss {loss.item():.4f}")
    if rank == 0:
        clock.report()
    leave()


if __name__ == "__main__":
    main()
