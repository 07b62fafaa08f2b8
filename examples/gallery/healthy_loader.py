"""Sounds that a worker of the loader cuts and mixes while the step before is learned from."""

from __future__ import annotations

import numpy as np
import torch
from clock import Clock, options
from torch import Tensor, nn
from torch.nn import functional as F
from torch.utils.data import DataLoader, Dataset

LENGTH, CLASSES, BATCH = 2048, 8, 32


class Sounds(Dataset):
    def __init__(self, count: int) -> None:
        rng = np.random.default_rng(0)
        moments = np.arange(2 * LENGTH, dtype=np.float32)
        self.tones = [np.sin(moments * 0.02 * (1 + number)).astype(np.float32) for number in range(CLASSES)]
        self.noise = rng.standard_normal(8 * LENGTH, dtype=np.float32)
        self.count = count

    def __len__(self) -> int:
        return self.count

    def __getitem__(self, index: int) -> tuple[Tensor, int]:
        label, rng = index % CLASSES, np.random.default_rng(index)
        start, other = int(rng.integers(LENGTH)), int(rng.integers(7 * LENGTH))
        sound = self.tones[label][start : start + LENGTH] + 0.5 * self.noise[other : other + LENGTH]
        return torch.from_numpy(sound)[None], label


def network() -> nn.Module:
    widths = (1, 32, 64, 96)
    stages = [nn.Sequential(nn.Conv1d(a, b, 9, 4, 4), nn.BatchNorm1d(b), nn.ReLU()) for a, b in zip(widths, widths[1:])]
    return nn.Sequential(*stages, nn.AdaptiveAvgPool1d(1), nn.Flatten(), nn.Linear(96, CLASSES))


def main() -> None:
    args = options(__doc__, steps=120)
    torch.manual_seed(0)
    loader = DataLoader(Sounds(args.steps * BATCH), BATCH, num_workers=1, prefetch_factor=4)
    model = network()
    optimizer = torch.optim.AdamW(model.parameters(), lr=2e-3, fused=True)
    clock = Clock()
    for step, (sounds, labels) in enumerate(loader):
        loss = F.cross_entropy(model(sounds), labels)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        clock.tick()
        if step % 20 == 0:
            print(f"step {step:4d}  loss {loss.item():.4f}")
    clock.report()


if __name__ == "__main__":
    main()
