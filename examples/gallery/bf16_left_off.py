"""A mixer of patches under autocast, but for its large products: someone kept them in single precision against NaN."""

from __future__ import annotations

import torch
from clock import Clock, options
from torch import Tensor, nn
from torch.nn import functional as F

PATCHES, WIDTH, DEPTH, CLASSES, BATCH = 64, 256, 4, 20, 16


class Mix(nn.Module):
    def __init__(self, lower: bool) -> None:
        super().__init__()
        self.lower = lower
        self.norms = nn.ModuleList([nn.LayerNorm(WIDTH), nn.LayerNorm(WIDTH)])
        self.across = nn.Linear(PATCHES, PATCHES)
        self.mlp = nn.Sequential(nn.Linear(WIDTH, 4 * WIDTH), nn.ReLU(), nn.Linear(4 * WIDTH, WIDTH))

    def forward(self, x: Tensor) -> Tensor:
        x = x + self.across(self.norms[0](x).transpose(1, 2)).transpose(1, 2)
        with torch.autocast("cpu", torch.bfloat16, enabled=self.lower):
            return x + self.mlp(self.norms[1](x.float()))  # fault


class Mixer(nn.Module):
    def __init__(self, lower: bool) -> None:
        super().__init__()
        self.enter = nn.Linear(192, WIDTH)
        self.blocks = nn.Sequential(*(Mix(lower) for _ in range(DEPTH)))
        self.head = nn.Linear(WIDTH, CLASSES)

    def forward(self, patches: Tensor) -> Tensor:
        return self.head(self.blocks(self.enter(patches)).mean(dim=1))


def main() -> None:
    args = options(__doc__, steps=50)
    torch.manual_seed(0)
    model = Mixer(lower=args.fixed)
    optimizer = torch.optim.AdamW(model.parameters(), lr=3e-4, fused=True)
    patches, labels = torch.randn(256, PATCHES, 192), torch.randint(CLASSES, (256,))
    clock = Clock()
    for step in range(args.steps):
        picked = torch.randint(256, (BATCH,))
        with torch.autocast("cpu", torch.bfloat16):
            answer = model(patches[picked])
        loss = F.cross_entropy(answer.float(), labels[picked])
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        clock.tick()
        if step % 10 == 0:
            print(f"step {step:4d}  loss {loss.item():.4f}")
    clock.report()


if __name__ == "__main__":
    main()
