"""Clicks on advertisements, and a watch over how the users drift."""

from __future__ import annotations

import torch
from clock import Clock, options
from torch import Tensor, nn
from torch.nn import functional as F

USERS, ITEMS, WIDTH, BATCH = 5000, 2000, 32, 4096


class Clicks(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.users, self.items = nn.Embedding(USERS, WIDTH), nn.Embedding(ITEMS, WIDTH)
        self.mlp = nn.Sequential(
            nn.Linear(2 * WIDTH, 256), nn.ReLU(), nn.Linear(256, 128), nn.ReLU(), nn.Linear(128, 1)
        )

    def forward(self, users: Tensor, items: Tensor) -> Tensor:
        return self.mlp(torch.cat([self.users(users), self.items(items)], dim=1)).squeeze(1)


class EverythingSoFar:
    """Mean and spread of the users that were seen, from all that were ever seen."""

    def __init__(self) -> None:
        self.seen = torch.empty(0, WIDTH)

    def add(self, users: Tensor) -> Tensor:
        self.seen = torch.cat([self.seen, users])  # fault
        return torch.stack([self.seen.mean(dim=0), self.seen.var(dim=0, correction=0)])


class Sums:
    """The same from three numbers a column."""

    def __init__(self) -> None:
        self.count, self.sum, self.squares = 0, torch.zeros(WIDTH), torch.zeros(WIDTH)

    def add(self, users: Tensor) -> Tensor:
        self.count += len(users)
        self.sum += users.sum(dim=0)
        self.squares += users.square().sum(dim=0)
        mean = self.sum / self.count
        return torch.stack([mean, self.squares / self.count - mean.square()])


def main() -> None:
    args = options(__doc__, steps=160)
    torch.manual_seed(0)
    model = Clicks()
    optimizer = torch.optim.Adagrad(model.parameters(), lr=0.02)
    drift = Sums() if args.fixed else EverythingSoFar()
    clock = Clock()
    for step in range(args.steps):
        users, items = torch.randint(USERS, (BATCH,)), torch.randint(ITEMS, (BATCH,))
        clicks = ((users * 7 + items * 3) % 10 < 3).float()
        scores = model(users, items)
        loss = F.binary_cross_entropy_with_logits(scores, clicks)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        spread = drift.add(model.users.weight.detach()[users])[1].mean()
        clock.tick()
        if step % 50 == 0:
            print(f"step {step:4d}  loss {loss.item():.4f}  spread {spread.item():.4f}")
    clock.report()


if __name__ == "__main__":
    main()
