"""Prices of houses from a table of numbers, by a residual network."""

from __future__ import annotations

import numpy as np
import torch
from clock import Clock, options
from torch import Tensor, nn
from torch.nn import functional as F
from torch.utils.data import DataLoader, TensorDataset

ROWS, COLUMNS, WIDTH, BATCH = 8192, 64, 384, 512


class Residual(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.norm = nn.LayerNorm(WIDTH)
        self.up, self.down = nn.Linear(WIDTH, 2 * WIDTH), nn.Linear(2 * WIDTH, WIDTH)

    def forward(self, x: Tensor) -> Tensor:
        return x + self.down(F.relu(self.up(self.norm(x))))  # fault: where it costs


def table(single: bool) -> tuple[Tensor, Tensor]:
    rng = np.random.default_rng(0)
    features = rng.normal(size=(ROWS, COLUMNS))
    prices = np.tanh(features[:, :8]).sum(axis=1, keepdims=True) + 0.1 * rng.normal(size=(ROWS, 1))
    x, y = torch.from_numpy(features), torch.from_numpy(prices)
    return (x.float(), y.float()) if single else (x, y)


def main() -> None:
    args = options(__doc__, steps=90)
    torch.manual_seed(0)
    model = nn.Sequential(nn.Linear(COLUMNS, WIDTH), Residual(), Residual(), Residual(), nn.Linear(WIDTH, 1))
    if not args.fixed:
        model = model.double()  # fault: numpy's numbers are doubles, and so the model had to be
    loader = DataLoader(TensorDataset(*table(single=args.fixed)), BATCH, shuffle=True, drop_last=True)
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)
    clock = Clock()
    step = 0
    while step < args.steps:
        for features, prices in loader:
            loss = F.mse_loss(model(features), prices)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            clock.tick()
            if step % 20 == 0:
                print(f"step {step:4d}  loss {loss.item():.4f}")
            step += 1
            if step == args.steps:
                break
    clock.report()


if __name__ == "__main__":
    main()
