"""A residual network over time series that keeps no activations, though they would fit many times over."""

from __future__ import annotations

import torch
from clock import Clock, options
from torch import Tensor, nn
from torch.nn import functional as F
from torch.utils.checkpoint import checkpoint

CHANNELS, LENGTH, DEPTH, BATCH = 96, 128, 6, 16


class Block(nn.Module):
    def __init__(self, dilation: int) -> None:
        super().__init__()
        self.filter = nn.Conv1d(CHANNELS, CHANNELS, 3, padding=dilation, dilation=dilation)
        self.gate = nn.Conv1d(CHANNELS, CHANNELS, 3, padding=dilation, dilation=dilation)
        self.out = nn.Conv1d(CHANNELS, CHANNELS, 1)

    def forward(self, x: Tensor) -> Tensor:
        return x + self.out(torch.tanh(self.filter(x)) * torch.sigmoid(self.gate(x)))


class Forecast(nn.Module):
    def __init__(self, keep: bool) -> None:
        super().__init__()
        self.enter = nn.Conv1d(1, CHANNELS, 1)
        self.blocks = nn.ModuleList([Block(2 ** (i % 4)) for i in range(DEPTH)])
        self.leave = nn.Conv1d(CHANNELS, 1, 1)
        self.keep = keep

    def forward(self, x: Tensor) -> Tensor:
        x = self.enter(x)
        for block in self.blocks:
            if self.keep:
                x = block(x)
            else:
                x = checkpoint(block, x, use_reentrant=False)  # fault
        return self.leave(x)


def main() -> None:
    args = options(__doc__, steps=50)
    torch.manual_seed(0)
    model = Forecast(keep=args.fixed)
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)
    moments = torch.arange(LENGTH + 1) / 10
    clock = Clock()
    for step in range(args.steps):
        series = torch.sin(moments * (0.5 + torch.rand(BATCH, 1, 1))) + 0.05 * torch.randn(BATCH, 1, LENGTH + 1)
        loss = F.mse_loss(model(series[..., :-1]), series[..., 1:])
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        clock.tick()
        if step % 10 == 0:
            print(f"step {step:4d}  loss {loss.item():.4f}")
    clock.report()


if __name__ == "__main__":
    main()
