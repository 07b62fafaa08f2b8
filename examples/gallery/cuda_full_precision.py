"""A wide network on a GPU whose products keep all bits of single precision, which tensor cores do not do."""

from __future__ import annotations

import torch
from clock import Clock, need_cuda, options
from torch import Tensor, nn
from torch.nn import functional as F

COLUMNS, WIDTH, DEPTH, BATCH = 512, 2048, 4, 4096


class Block(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.norm = nn.LayerNorm(WIDTH)
        self.up, self.down = nn.Linear(WIDTH, 2 * WIDTH), nn.Linear(2 * WIDTH, WIDTH)

    def forward(self, x: Tensor) -> Tensor:
        return x + self.down(F.gelu(self.up(self.norm(x))))  # fault: where it costs


def main() -> None:
    args = options(__doc__, steps=60)
    need_cuda()
    torch.manual_seed(0)
    torch.set_float32_matmul_precision("high" if args.fixed else "highest")  # fault
    model = nn.Sequential(nn.Linear(COLUMNS, WIDTH), *(Block() for _ in range(DEPTH)), nn.Linear(WIDTH, 10)).cuda()
    optimizer = torch.optim.AdamW(model.parameters(), lr=3e-4, fused=True)
    rows = torch.randn(32768, COLUMNS, device="cuda")
    clock = Clock(period=20)
    for step in range(args.steps):
        x = rows[torch.randint(len(rows), (BATCH,), device="cuda")]
        loss = F.cross_entropy(model(x), x[:, :10].argmax(dim=1))
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        clock.tick()
        if step % 20 == 0:
            print(f"step {step:4d}  loss {loss.item():.4f}")
    clock.report()


if __name__ == "__main__":
    main()
