"""Sensor windows from an object store that takes its time for each, classified by a GRU."""

from __future__ import annotations

import time

import torch
from clock import Clock, options
from torch import Tensor, nn
from torch.nn import functional as F
from torch.utils.data import DataLoader, Dataset

LENGTH, CHANNELS, CLASSES, BATCH = 64, 12, 6, 16


class Store(Dataset):
    """Each read waits for the network, as reads of an object store do, and uses no core meanwhile."""

    def __init__(self, count: int) -> None:
        self.count = count

    def __len__(self) -> int:
        return self.count

    def __getitem__(self, index: int) -> tuple[Tensor, int]:
        time.sleep(0.008)
        label = index % CLASSES
        moments = torch.arange(LENGTH).unsqueeze(1) * (1 + torch.arange(CHANNELS)) / LENGTH
        noise = torch.randn(LENGTH, CHANNELS, generator=torch.Generator().manual_seed(index))
        return torch.sin(moments * (1 + label)) + 0.5 * noise, label


class Recurrent(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.gru = nn.GRU(CHANNELS, 96, num_layers=2, batch_first=True)
        self.head = nn.Linear(96, CLASSES)

    def forward(self, windows: Tensor) -> Tensor:
        states, _ = self.gru(windows)
        return self.head(states[:, -1])


def main() -> None:
    args = options(__doc__, steps=90)
    torch.manual_seed(0)
    workers = 4 if args.fixed else 1
    loader = DataLoader(Store(args.steps * BATCH), BATCH, num_workers=workers, prefetch_factor=4)  # fault
    model = Recurrent()
    optimizer = torch.optim.Adam(model.parameters(), lr=2e-3)
    clock = Clock()
    for step, (windows, labels) in enumerate(loader):
        loss = F.cross_entropy(model(windows), labels)
        optimizer.zero_grad()
        loss.backward()
        nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        clock.tick()
        if step % 20 == 0:
            print(f"step {step:4d}  loss {loss.item():.4f}")
    clock.report()


if __name__ == "__main__":
    main()
