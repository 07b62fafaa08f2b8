"""Embeddings of documents lie in shards on disk; each step reads a shard and uses a few rows of it."""

from __future__ import annotations

import tempfile
from pathlib import Path

import numpy as np
import torch
from clock import Clock, options
from torch import Tensor, nn
from torch.nn import functional as F

SHARDS, ROWS, WIDTH, BATCH = 4, 32768, 256, 256


def write_shards(folder: Path) -> None:
    rng = np.random.default_rng(0)
    for number in range(SHARDS):
        np.save(folder / f"{number}.npy", rng.standard_normal((ROWS, WIDTH), dtype=np.float32))


class Shards:
    def __init__(self, folder: Path, mapped: bool) -> None:
        self.folder, self.mapped = folder, mapped
        self.rng = np.random.default_rng(1)

    def batch(self, step: int) -> Tensor:
        rows = np.sort(self.rng.integers(0, ROWS, BATCH))
        path = self.folder / f"{step % SHARDS}.npy"
        shard = np.load(path, mmap_mode="r") if self.mapped else np.load(path)  # fault
        return torch.from_numpy(shard[rows])


class Autoencoder(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.encode = nn.Sequential(nn.Linear(WIDTH, 768), nn.GELU(), nn.Linear(768, 64))
        self.decode = nn.Sequential(nn.Linear(64, 768), nn.GELU(), nn.Linear(768, WIDTH))

    def forward(self, x: Tensor) -> Tensor:
        return self.decode(F.dropout(self.encode(x), 0.1, self.training))


def train(steps: int, mapped: bool, folder: Path) -> None:
    write_shards(folder)
    shards, model = Shards(folder, mapped), Autoencoder()
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3, fused=True)
    clock = Clock()
    for step in range(steps):
        rows = shards.batch(step)
        loss = F.mse_loss(model(rows), rows)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        clock.tick()
        if step % 25 == 0:
            print(f"step {step:4d}  loss {loss.item():.4f}")
    clock.report()


def main() -> None:
    args = options(__doc__, steps=300)
    torch.manual_seed(0)
    with tempfile.TemporaryDirectory() as folder:
        train(args.steps, args.fixed, Path(folder))


if __name__ == "__main__":
    main()
