"""A recommender with large tables that saves itself every few steps, since a job once died."""

from __future__ import annotations

import tempfile
from pathlib import Path

import torch
from clock import Clock, options
from torch import Tensor, nn
from torch.nn import functional as F

TABLES, ROWS, WIDTH, BATCH, EVERY = 4, 100000, 32, 512, 5


class Recommender(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.tables = nn.ModuleList([nn.Embedding(ROWS, WIDTH, sparse=True) for _ in range(TABLES)])
        self.mlp = nn.Sequential(
            nn.Linear(TABLES * WIDTH, 512), nn.ReLU(), nn.Linear(512, 512), nn.ReLU(), nn.Linear(512, 1)
        )

    def forward(self, keys: Tensor) -> Tensor:
        found = [table(keys[:, number]) for number, table in enumerate(self.tables)]
        return self.mlp(torch.cat(found, dim=1)).squeeze(1)


def save(model: nn.Module, optimizer: torch.optim.Optimizer, step: int, folder: Path) -> None:
    state = {"model": model.state_dict(), "optimizer": optimizer.state_dict(), "step": step}
    torch.save(state, folder / "new.pt")
    (folder / "new.pt").replace(folder / "last.pt")


def train(steps: int, often: bool, folder: Path) -> None:
    model = Recommender()
    optimizer = torch.optim.Adagrad(model.parameters(), lr=0.05)
    clock = Clock(period=EVERY)
    for step in range(steps):
        keys = torch.randint(ROWS, (BATCH, TABLES))
        bought = ((keys.sum(dim=1) % 7) < 3).float()
        loss = F.binary_cross_entropy_with_logits(model(keys), bought)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        if often and (step + 1) % EVERY == 0:
            save(model, optimizer, step, folder)  # fault
        clock.tick()
        if step % 20 == 0:
            print(f"step {step:4d}  loss {loss.item():.4f}")
    clock.report()
    save(model, optimizer, steps, folder)


def main() -> None:
    args = options(__doc__, steps=200)
    torch.manual_seed(0)
    with tempfile.TemporaryDirectory() as folder:
        train(args.steps, not args.fixed, Path(folder))


if __name__ == "__main__":
    main()
