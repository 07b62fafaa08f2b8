"""Two ranks train a deep convolutional network; its gradients go over the wire in crumbs."""

from __future__ import annotations

import torch
from clock import Clock, leave, options
from torch import Tensor, nn
from torch import distributed as dist
from torch.nn import functional as F
from torch.nn.parallel import DistributedDataParallel

CHANNELS, SIDE, DEPTH, CLASSES, BATCH = 32, 16, 24, 10, 16


class Block(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.convolution = nn.Conv2d(CHANNELS, CHANNELS, 3, padding=1)
        self.norm = nn.GroupNorm(4, CHANNELS)
        self.gain = nn.Parameter(torch.zeros(CHANNELS, 1, 1))

    def forward(self, x: Tensor) -> Tensor:
        return x + self.gain * F.relu(self.norm(self.convolution(x)))


def main() -> None:
    args = options(__doc__, steps=80)
    dist.init_process_group("gloo")
    rank = dist.get_rank()
    torch.manual_seed(0)
    blocks = [Block() for _ in range(DEPTH)]
    head = [nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(CHANNELS, CLASSES)]
    bucket_mb = 25 if args.fixed else 0.0001
    model = DistributedDataParallel(
        nn.Sequential(nn.Conv2d(3, CHANNELS, 3, padding=1), *blocks, *head),
        bucket_cap_mb=bucket_mb,  # fault
    )
    optimizer = torch.optim.SGD(model.parameters(), lr=0.02, momentum=0.9)
    torch.manual_seed(1 + rank)
    clock = Clock()
    for step in range(args.steps):
        images, labels = torch.rand(BATCH, 3, SIDE, SIDE), torch.randint(CLASSES, (BATCH,))
        loss = F.cross_entropy(model(images), labels)
        optimizer.zero_grad()
        loss.backward()  # fault: where they are sent
        optimizer.step()
        clock.tick()
        if rank == 0 and step % 20 == 0:
            print(f"step {step:4d}  loss {loss.item():.4f}")
    if rank == 0:
        clock.report()
    leave()


if __name__ == "__main__":
    main()
