"""Items that are bought together: an embedding of each, learned by Adam in its oldest form."""

from __future__ import annotations

import torch
from clock import Clock, options
from torch import Tensor, nn
from torch.nn import functional as F

ITEMS, WIDTH, BATCH = 30000, 64, 256


class Together(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.items = nn.Embedding(ITEMS, WIDTH)
        self.tower = nn.Sequential(nn.Linear(WIDTH, 256), nn.GELU(), nn.Linear(256, WIDTH))

    def forward(self, first: Tensor, second: Tensor) -> Tensor:
        """How well each first goes with each second."""
        return self.tower(self.items(first)) @ self.items(second).T


def main() -> None:
    args = options(__doc__, steps=300)
    torch.manual_seed(0)
    model = Together()
    if args.fixed:
        optimizer = torch.optim.Adam(model.parameters(), lr=1e-3, fused=True)
    else:
        optimizer = torch.optim.Adam(model.parameters(), lr=1e-3, foreach=False)  # fault
    clock = Clock()
    for step in range(args.steps):
        first = torch.randint(ITEMS, (BATCH,))
        second = (first + torch.randint(1, 5, (BATCH,))) % ITEMS
        loss = F.cross_entropy(model(first, second), torch.arange(BATCH))
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()  # fault: where it costs
        clock.tick()
        if step % 25 == 0:
            print(f"step {step:4d}  loss {loss.item():.4f}")
    clock.report()


if __name__ == "__main__":
    main()
