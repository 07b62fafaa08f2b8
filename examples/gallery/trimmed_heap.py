"""Cells in pictures of a microscope, found by a small U-Net; the C library is left as it comes."""

from __future__ import annotations

import torch
from clock import Clock, keep_memory, options
from torch import Tensor, nn
from torch.nn import functional as F

SIDE, BATCH, WIDTH = 96, 16, 8


def block(before: int, after: int) -> nn.Sequential:
    layers = []
    for channels in (before, after):
        layers += [nn.Conv2d(channels, after, 3, 1, 1), nn.GroupNorm(4, after), nn.ReLU()]
    return nn.Sequential(*layers)


class UNet(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.down1, self.down2, self.bottom = block(1, WIDTH), block(WIDTH, 2 * WIDTH), block(2 * WIDTH, 2 * WIDTH)
        self.up2, self.up1 = block(4 * WIDTH, WIDTH), block(2 * WIDTH, WIDTH)
        self.head = nn.Conv2d(WIDTH, 1, 1)

    def forward(self, pictures: Tensor) -> Tensor:
        fine = self.down1(pictures)
        coarse = self.down2(F.max_pool2d(fine, 2))
        bottom = self.bottom(F.max_pool2d(coarse, 2))
        x = self.up2(torch.cat([coarse, F.interpolate(bottom, scale_factor=2.0)], dim=1))
        x = self.up1(torch.cat([fine, F.interpolate(x, scale_factor=2.0)], dim=1))
        return self.head(x)


def cells(count: int) -> tuple[Tensor, Tensor]:
    """Bright spots on a noisy ground, and where they are."""
    seeds = (torch.rand(count, 1, SIDE // 8, SIDE // 8) < 0.1).float()
    masks = (F.interpolate(seeds, scale_factor=8.0, mode="bilinear") > 0.4).float()
    return masks + 0.5 * torch.randn_like(masks), masks


def main() -> None:
    args = options(__doc__, steps=60, keeps_memory=False)
    if args.fixed:
        keep_memory()  # or MALLOC_TRIM_THRESHOLD_=1073741824 MALLOC_MMAP_MAX_=0 before python
    torch.manual_seed(0)
    pictures, masks = cells(64)
    model = UNet()
    optimizer = torch.optim.AdamW(model.parameters(), lr=2e-3)
    clock = Clock()
    for step in range(args.steps):
        at = torch.randint(len(pictures), (BATCH,))
        loss = F.binary_cross_entropy_with_logits(model(pictures[at]), masks[at])  # fault: all that it makes is new
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        clock.tick()
        if step % 10 == 0:
            print(f"step {step:4d}  loss {loss.item():.4f}")
    clock.report()


if __name__ == "__main__":
    main()
