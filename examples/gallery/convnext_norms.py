"""A ConvNeXt of small images, whose norms want the channels last and whose convolutions have them first."""

from __future__ import annotations

import torch
from clock import Clock, options
from torch import Tensor, nn
from torch.nn import functional as F

SIDE, WIDTH, DEPTH, CLASSES, BATCH = 32, 64, 3, 10, 16


class Block(nn.Module):
    def __init__(self, last: bool) -> None:
        super().__init__()
        self.depthwise = nn.Conv2d(WIDTH, WIDTH, 7, padding=3, groups=WIDTH)
        self.norm = nn.LayerNorm(WIDTH)
        self.up, self.down = nn.Linear(WIDTH, 2 * WIDTH), nn.Linear(2 * WIDTH, WIDTH)
        self.last = last

    def forward(self, x: Tensor) -> Tensor:
        """Where the channels are last in memory already, a permutation is only another view."""
        y = self.depthwise(x).permute(0, 2, 3, 1)
        if not self.last:
            y = y.contiguous()  # fault
        y = self.down(F.gelu(self.up(self.norm(y)))).permute(0, 3, 1, 2)
        if not self.last:
            y = y.contiguous()  # fault
        return x + y


def main() -> None:
    args = options(__doc__, steps=40)
    torch.manual_seed(0)
    stem, head = nn.Conv2d(3, WIDTH, 2, 2), nn.Linear(WIDTH, CLASSES)
    model = nn.Sequential(stem, *(Block(args.fixed) for _ in range(DEPTH)), nn.AdaptiveAvgPool2d(1), nn.Flatten(), head)
    images, labels = torch.rand(512, 3, 2 * SIDE, 2 * SIDE), torch.randint(CLASSES, (512,))
    if args.fixed:
        model, images = model.to(memory_format=torch.channels_last), images.to(memory_format=torch.channels_last)
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)
    clock = Clock()
    for step in range(args.steps):
        picked = torch.randint(len(images), (BATCH,))
        loss = F.cross_entropy(model(images[picked]), labels[picked])
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        clock.tick()
        if step % 10 == 0:
            print(f"step {step:4d}  loss {loss.item():.4f}")
    clock.report()


if __name__ == "__main__":
    main()
