"""Friends of friends: a graph network on a made-up social graph, with the threads of a much larger machine."""

from __future__ import annotations

import os

import torch
from clock import Clock, options
from torch import Tensor, nn
from torch.nn import functional as F

NODES, EDGES, FEATURES, WIDTH, CLASSES = 4000, 24000, 48, 64, 8


class Gather(nn.Module):
    """The mean of the neighbors beside the node itself."""

    def __init__(self, before: int, after: int) -> None:
        super().__init__()
        self.own, self.others = nn.Linear(before, after), nn.Linear(before, after, bias=False)

    def forward(self, x: Tensor, edges: Tensor, degrees: Tensor) -> Tensor:
        sums = torch.zeros_like(x).index_add_(0, edges[1], x[edges[0]])
        return self.own(x) + self.others(sums / degrees)


class Net(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        widths = (FEATURES, WIDTH, WIDTH, WIDTH)
        self.layers = nn.ModuleList([Gather(a, b) for a, b in zip(widths, widths[1:])])
        self.head = nn.Linear(WIDTH, CLASSES)

    def forward(self, x: Tensor, edges: Tensor, degrees: Tensor) -> Tensor:
        for layer in self.layers:
            x = F.relu(layer(x, edges, degrees))
        return self.head(x)


def main() -> None:
    args = options(__doc__, steps=100)
    torch.manual_seed(0)
    if not args.fixed:
        torch.set_num_threads(8 * (os.cpu_count() or 1))  # fault
    labels = torch.randint(CLASSES, (NODES,))
    x = F.one_hot(labels, FEATURES) + 0.8 * torch.randn(NODES, FEATURES)
    edges = torch.randint(NODES, (2, EDGES))
    degrees = edges[1].bincount(minlength=NODES).clamp(min=1).unsqueeze(1)
    known = torch.rand(NODES) < 0.5
    model = Net()
    optimizer = torch.optim.Adam(model.parameters(), lr=5e-3)
    clock = Clock()
    for step in range(args.steps):
        loss = F.cross_entropy(model(x, edges, degrees)[known], labels[known])
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        clock.tick()
        if step % 20 == 0:
            print(f"step {step:4d}  loss {loss.item():.4f}")
    clock.report()


if __name__ == "__main__":
    main()
