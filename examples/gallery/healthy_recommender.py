"""What people watch: large tables whose gradients are sparse, crossed features, and a tower."""

from __future__ import annotations

import torch
from clock import Clock, options
from torch import Tensor, nn
from torch.nn import functional as F

TABLES, ROWS, WIDTH, BATCH = 6, 50000, 32, 1024


class Recommender(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.tables = nn.Embedding(TABLES * ROWS, WIDTH, sparse=True)
        self.register_buffer("starts", ROWS * torch.arange(TABLES))
        self.register_buffer("pairs", torch.triu_indices(TABLES, TABLES, 1))
        crosses = TABLES * (TABLES - 1) // 2
        self.tower = nn.Sequential(
            nn.Linear(TABLES * WIDTH + crosses, 512), nn.ReLU(), nn.Linear(512, 256), nn.ReLU(), nn.Linear(256, 1)
        )

    def forward(self, keys: Tensor) -> Tensor:
        x = self.tables(keys + self.starts)
        crossed = torch.bmm(x, x.transpose(1, 2))[:, self.pairs[0], self.pairs[1]]
        return self.tower(torch.cat([x.flatten(1), crossed], dim=1)).squeeze(1)


def main() -> None:
    args = options(__doc__, steps=120)
    torch.manual_seed(0)
    model = Recommender()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.05)
    clock = Clock()
    for step in range(args.steps):
        keys = torch.randint(ROWS, (BATCH, TABLES))
        watched = (keys[:, :2].sum(dim=1) % 5 < 2).float()
        loss = F.binary_cross_entropy_with_logits(model(keys), watched)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        clock.tick()
        if step % 20 == 0:
            print(f"step {step:4d}  loss {loss.item():.4f}")
    clock.report()


if __name__ == "__main__":
    main()
