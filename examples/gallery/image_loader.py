"""A small CNN on photographs that are cropped, mirrored and recolored sample by sample."""

from __future__ import annotations

import numpy as np
import torch
from clock import Clock, options
from torch import Tensor, nn
from torch.nn import functional as F
from torch.utils.data import DataLoader, Dataset

SIDE, CROP, CLASSES, BATCH = 96, 64, 10, 32


class Photographs(Dataset):
    def __init__(self, count: int) -> None:
        rng = np.random.default_rng(0)
        self.images = rng.integers(0, 256, (256, SIDE, SIDE, 3), dtype=np.uint8)
        self.labels = rng.integers(0, CLASSES, 256)
        self.count = count

    def __len__(self) -> int:
        return self.count

    def __getitem__(self, index: int) -> tuple[Tensor, int]:
        rng = np.random.default_rng(index)
        top, left = rng.integers(0, SIDE - CROP, 2)
        image = self.images[index % 256, top : top + CROP, left : left + CROP].astype(np.float32) / 255
        if rng.random() < 0.5:
            image = image[:, ::-1]
        gamma = rng.uniform(0.8, 1.25)
        image = np.clip(image**gamma + rng.normal(0, 0.02, image.shape), 0, 1)
        image = (image - image.mean(axis=(0, 1))) / image.std(axis=(0, 1))
        return torch.from_numpy(image.transpose(2, 0, 1).astype(np.float32)), int(self.labels[index % 256])


def network() -> nn.Module:
    widths = (3, 32, 48, 64)
    layers: list[nn.Module] = []
    for before, after in zip(widths, widths[1:]):
        layers += [nn.Conv2d(before, after, 3, 2, 1, bias=False), nn.BatchNorm2d(after), nn.ReLU()]
    return nn.Sequential(*layers, nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(64, CLASSES))


def main() -> None:
    args = options(__doc__, steps=120)
    torch.manual_seed(0)
    workers = 1 if args.fixed else 0
    loader = DataLoader(Photographs(args.steps * BATCH), BATCH, num_workers=workers)  # fault
    model = network()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.05, momentum=0.9)
    clock = Clock()
    for step, (images, labels) in enumerate(loader):
        loss = F.cross_entropy(model(images), labels)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        clock.tick()
        if step % 20 == 0:
            print(f"step {step:4d}  loss {loss.item():.4f}")
    clock.report()


if __name__ == "__main__":
    main()
