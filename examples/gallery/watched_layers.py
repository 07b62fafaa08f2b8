"""A compiled network that looks for values out of bounds in each layer, in Python, and so is compiled in bits."""

from __future__ import annotations

import torch
from clock import Clock, options
from torch import Tensor, nn
from torch.nn import functional as F

COLUMNS, WIDTH, DEPTH, BATCH = 32, 64, 12, 32


class Layer(nn.Module):
    def __init__(self, watched: bool) -> None:
        super().__init__()
        self.linear, self.scale = nn.Linear(WIDTH, WIDTH), nn.Parameter(torch.ones(WIDTH))
        self.watched = watched

    def forward(self, x: Tensor) -> Tensor:
        y = self.linear(x)
        y = y * torch.sigmoid(1.702 * y)
        if self.watched and float(y.detach().mean()) > 1e4:  # fault
            print("out of bounds")
        return x + self.scale * torch.tanh(y) * torch.rsqrt(1 + y.square())


def main() -> None:
    args = options(__doc__, steps=100)
    torch.manual_seed(0)
    layers = [Layer(not args.fixed) for _ in range(DEPTH)]
    model = nn.Sequential(nn.Linear(COLUMNS, WIDTH), *layers, nn.Linear(WIDTH, 1))
    compiled = torch.compile(model)
    optimizer = torch.optim.SGD(model.parameters(), lr=1e-3, momentum=0.9)
    clock = Clock()
    for step in range(args.steps):
        x = torch.randn(BATCH, COLUMNS)
        loss = F.mse_loss(compiled(x), x.square().mean(dim=1, keepdim=True))
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        clock.tick()
        if step % 20 == 0:
            print(f"step {step:4d}  loss {loss.item():.4f}")
    clock.report()


if __name__ == "__main__":
    main()
