"""Handwriting by a small CNN, tested on all test images after every few steps."""

from __future__ import annotations

import torch
from clock import Clock, options
from torch import Tensor, nn
from torch.nn import functional as F

SIDE, CLASSES, BATCH, EVERY = 28, 10, 96, 5


class Digits(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.features = nn.Sequential(
            nn.Conv2d(1, 24, 3, 1, 1),
            nn.ReLU(),
            nn.MaxPool2d(2),
            nn.Conv2d(24, 48, 3, 1, 1),
            nn.ReLU(),
            nn.MaxPool2d(2),
        )
        self.head = nn.Sequential(nn.Linear(48 * 49, 96), nn.ReLU(), nn.Linear(96, CLASSES))

    def forward(self, images: Tensor) -> Tensor:
        return self.head(self.features(images).flatten(1))


def digits(count: int) -> tuple[Tensor, Tensor]:
    shapes = F.interpolate(torch.rand(CLASSES, 1, 7, 7, generator=torch.Generator().manual_seed(3)), size=(SIDE, SIDE))
    labels = torch.randint(CLASSES, (count,))
    return shapes[labels] + 0.4 * torch.randn(count, 1, SIDE, SIDE), labels


@torch.inference_mode()
def evaluate(model: nn.Module, images: Tensor, labels: Tensor) -> float:
    model.eval()
    right = sum((model(x).argmax(dim=1) == y).sum() for x, y in zip(images.split(256), labels.split(256)))
    model.train()
    return float(right) / len(labels)


def main() -> None:
    args = options(__doc__, steps=80)
    torch.manual_seed(0)
    (images, labels), test = digits(4000), digits(1200)
    model = Digits()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.05, momentum=0.9)
    clock = Clock(period=EVERY)
    for step in range(args.steps):
        picked = torch.randint(len(images), (BATCH,))
        loss = F.cross_entropy(model(images[picked]), labels[picked])
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        if not args.fixed and (step + 1) % EVERY == 0:
            evaluate(model, *test)  # fault
        clock.tick()
        if step % 20 == 0:
            print(f"step {step:4d}  loss {loss.item():.4f}")
    print(f"right {evaluate(model, *test):.3f}")
    clock.report()


if __name__ == "__main__":
    main()
