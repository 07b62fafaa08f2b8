"""Clicks on advertisements, with the quality over everything so far watched at each step."""

from __future__ import annotations

import torch
from clock import Clock, options
from torch import Tensor, nn
from torch.nn import functional as F

USERS, ITEMS, WIDTH, BATCH = 5000, 2000, 32, 2048


class Clicks(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.users, self.items = nn.Embedding(USERS, WIDTH), nn.Embedding(ITEMS, WIDTH)
        self.mlp = nn.Sequential(nn.Linear(2 * WIDTH, 128), nn.ReLU(), nn.Linear(128, 64), nn.ReLU(), nn.Linear(64, 1))

    def forward(self, users: Tensor, items: Tensor) -> Tensor:
        return self.mlp(torch.cat([self.users(users), self.items(items)], dim=1)).squeeze(1)


class EverythingSoFar:
    """The share of right guesses among all there ever were, from all there ever were."""

    def __init__(self) -> None:
        self.scores, self.clicks = torch.empty(0), torch.empty(0)

    def add(self, scores: Tensor, clicks: Tensor) -> float:
        self.scores = torch.cat([self.scores, scores])  # fault
        self.clicks = torch.cat([self.clicks, clicks])  # fault
        return float(((self.scores > 0) == (self.clicks > 0)).float().mean())


class Counts:
    """The same from two numbers."""

    def __init__(self) -> None:
        self.right = self.seen = 0

    def add(self, scores: Tensor, clicks: Tensor) -> float:
        self.right += int(((scores > 0) == (clicks > 0)).sum())
        self.seen += len(scores)
        return self.right / self.seen


def main() -> None:
    args = options(__doc__, steps=300)
    torch.manual_seed(0)
    model = Clicks()
    optimizer = torch.optim.Adagrad(model.parameters(), lr=0.02)
    quality = Counts() if args.fixed else EverythingSoFar()
    clock = Clock()
    for step in range(args.steps):
        users, items = torch.randint(USERS, (BATCH,)), torch.randint(ITEMS, (BATCH,))
        clicks = ((users * 7 + items * 3) % 10 < 3).float()
        scores = model(users, items)
        loss = F.binary_cross_entropy_with_logits(scores, clicks)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        right = quality.add(scores.detach(), clicks)
        clock.tick()
        if step % 50 == 0:
            print(f"step {step:4d}  loss {loss.item():.4f}  right {right:.4f}")
    clock.report()


if __name__ == "__main__":
    main()
