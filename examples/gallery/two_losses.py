"""One trunk and four questions about each picture; each answer is taught by a backward pass of its own."""

from __future__ import annotations

import torch
from clock import Clock, options
from torch import Tensor, nn
from torch.nn import functional as F

SIDE, BATCH, TASKS = 48, 32, 4


class Questions(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        widths = (3, 24, 48, 64)
        stages = [
            nn.Sequential(nn.Conv2d(a, b, 3, 2, 1), nn.BatchNorm2d(b), nn.ReLU()) for a, b in zip(widths, widths[1:])
        ]
        self.trunk = nn.Sequential(*stages, nn.Conv2d(64, 64, 3, 1, 1), nn.ReLU())
        self.heads = nn.ModuleList([nn.Linear(64, 5) for _ in range(TASKS)])

    def forward(self, pictures: Tensor) -> list[Tensor]:
        states = self.trunk(pictures).mean(dim=(2, 3))
        return [head(states) for head in self.heads]


def main() -> None:
    args = options(__doc__, steps=100)
    torch.manual_seed(0)
    model = Questions()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.02, momentum=0.9)
    pictures = torch.rand(256, 3, SIDE, SIDE)
    truth = torch.randint(5, (256, TASKS))
    clock = Clock()
    for step in range(args.steps):
        picked = torch.randint(256, (BATCH,))
        losses = [F.cross_entropy(answer, truth[picked, task]) for task, answer in enumerate(model(pictures[picked]))]
        optimizer.zero_grad()
        if args.fixed:
            torch.stack(losses).sum().backward()
        else:
            for loss in losses:
                loss.backward(retain_graph=True)  # fault
        optimizer.step()
        clock.tick()
        if step % 20 == 0:
            print(f"step {step:4d}  loss {sum(loss.item() for loss in losses):.4f}")
    clock.report()


if __name__ == "__main__":
    main()
