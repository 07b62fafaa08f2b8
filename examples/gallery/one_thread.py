"""An autoencoder of images; someone once set the threads of torch to one, for a laptop."""

from __future__ import annotations

import torch
from clock import Clock, options
from torch import Tensor, nn
from torch.nn import functional as F

SIDE, BATCH = 32, 64


class Autoencoder(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.down = nn.Sequential(
            nn.Conv2d(3, 32, 3, 2, 1), nn.ReLU(), nn.Conv2d(32, 64, 3, 2, 1), nn.ReLU(), nn.Conv2d(64, 96, 3, 1, 1)
        )
        self.up = nn.Sequential(
            nn.Conv2d(96, 64, 3, 1, 1),
            nn.ReLU(),
            nn.Upsample(scale_factor=2),
            nn.Conv2d(64, 32, 3, 1, 1),
            nn.ReLU(),
            nn.Upsample(scale_factor=2),
            nn.Conv2d(32, 3, 3, 1, 1),
        )

    def forward(self, images: Tensor) -> Tensor:
        return self.up(self.down(images)).sigmoid()


def main() -> None:
    args = options(__doc__, steps=60)
    torch.manual_seed(0)
    if not args.fixed:
        torch.set_num_threads(1)  # fault
    model = Autoencoder()
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)
    images = F.interpolate(torch.rand(512, 3, 8, 8), size=(SIDE, SIDE), mode="bilinear")
    clock = Clock()
    for step in range(args.steps):
        batch = images[torch.randint(len(images), (BATCH,))]
        loss = F.mse_loss(model(batch + 0.05 * torch.randn_like(batch)), batch)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        clock.tick()
        if step % 10 == 0:
            print(f"step {step:4d}  loss {loss.item():.4f}")
    clock.report()


if __name__ == "__main__":
    main()
