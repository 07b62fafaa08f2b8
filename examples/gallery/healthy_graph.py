"""Papers and whom they cite: a graph network whose neighbors are summed by one product with a sparse matrix."""

from __future__ import annotations

import torch
from clock import Clock, options
from torch import Tensor, nn
from torch.nn import functional as F

NODES, EDGES, FEATURES, WIDTH, CLASSES = 6000, 40000, 256, 192, 7


class Net(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        widths = (FEATURES, WIDTH, WIDTH)
        self.layers = nn.ModuleList([nn.Linear(2 * a, b) for a, b in zip(widths, widths[1:])])
        self.head = nn.Linear(WIDTH, CLASSES)

    def forward(self, x: Tensor, means: Tensor) -> Tensor:
        for layer in self.layers:
            x = F.relu(layer(torch.cat([x, torch.sparse.mm(means, x)], dim=1)))
        return self.head(x)


def main() -> None:
    args = options(__doc__, steps=50)
    torch.manual_seed(0)
    labels = torch.randint(CLASSES, (NODES,))
    x = F.one_hot(labels, FEATURES) + torch.randn(NODES, FEATURES)
    edges = torch.randint(NODES, (2, EDGES))
    shares = 1 / edges[0].bincount(minlength=NODES).clamp(min=1)[edges[0]]
    means = torch.sparse_coo_tensor(edges, shares, (NODES, NODES), check_invariants=True).coalesce()
    known = torch.arange(0, NODES, 2)
    model = Net()
    optimizer = torch.optim.Adam(model.parameters(), lr=3e-3, fused=True)
    clock = Clock()
    for step in range(args.steps):
        loss = F.cross_entropy(model(x, means)[known], labels[known])
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        clock.tick()
        if step % 10 == 0:
            print(f"step {step:4d}  loss {loss.item():.4f}")
    clock.report()


if __name__ == "__main__":
    main()
