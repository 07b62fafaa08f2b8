"""A residual CNN of small pictures that lie in memory and are mirrored a batch at once."""

from __future__ import annotations

import torch
from clock import Clock, options
from torch import Tensor, nn
from torch.nn import functional as F

SIDE, CLASSES, BATCH = 32, 10, 64


class Residual(nn.Module):
    def __init__(self, width: int) -> None:
        super().__init__()
        self.first, self.second = (nn.Conv2d(width, width, 3, padding=1, bias=False) for _ in range(2))
        self.norms = nn.ModuleList([nn.BatchNorm2d(width), nn.BatchNorm2d(width)])

    def forward(self, x: Tensor) -> Tensor:
        y = F.relu(self.norms[0](self.first(x)), inplace=True)
        return F.relu(x + self.norms[1](self.second(y)), inplace=True)


def main() -> None:
    args = options(__doc__, steps=50)
    torch.manual_seed(0)
    stem = nn.Conv2d(3, 32, 3, 2, 1)
    head = [nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(64, CLASSES)]
    model = nn.Sequential(stem, Residual(32), nn.Conv2d(32, 64, 3, 2, 1), Residual(64), *head)
    model = model.to(memory_format=torch.channels_last)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.05, momentum=0.9, weight_decay=1e-4)
    labels = torch.randint(CLASSES, (2048,))
    shapes = F.interpolate(torch.rand(CLASSES, 3, 4, 4), size=(SIDE, SIDE), mode="bilinear")
    images = (shapes[labels] + 0.3 * torch.rand(2048, 3, SIDE, SIDE)).contiguous(memory_format=torch.channels_last)
    clock = Clock()
    for step in range(args.steps):
        picked = torch.randint(len(images), (BATCH,))
        batch = images[picked]
        if step % 2:
            batch = batch.flip(3)
        loss = F.cross_entropy(model(batch), labels[picked])
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        clock.tick()
        if step % 10 == 0:
            print(f"step {step:4d}  loss {loss.item():.4f}")
    clock.report()


if __name__ == "__main__":
    main()
