"""A small GPT that learns to add, digit by digit: fused attention, a fused optimizer, sums that are made beforehand."""

from __future__ import annotations

import torch
from clock import Clock, options
from torch import Tensor, nn
from torch.nn import functional as F

SIGNS, LENGTH, WIDTH, HEADS, LAYERS, BATCH = 12, 24, 192, 6, 3, 48


class Block(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.norms = nn.ModuleList([nn.LayerNorm(WIDTH), nn.LayerNorm(WIDTH)])
        self.qkv, self.out = nn.Linear(WIDTH, 3 * WIDTH), nn.Linear(WIDTH, WIDTH)
        self.mlp = nn.Sequential(nn.Linear(WIDTH, 4 * WIDTH), nn.GELU(), nn.Linear(4 * WIDTH, WIDTH))

    def forward(self, x: Tensor) -> Tensor:
        q, k, v = self.qkv(self.norms[0](x)).unflatten(2, (3, HEADS, -1)).permute(2, 0, 3, 1, 4)
        x = x + self.out(F.scaled_dot_product_attention(q, k, v, is_causal=True).transpose(1, 2).flatten(2))
        return x + self.mlp(self.norms[1](x))


class GPT(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.signs, self.positions = nn.Embedding(SIGNS, WIDTH), nn.Embedding(LENGTH, WIDTH)
        self.blocks = nn.Sequential(*(Block() for _ in range(LAYERS)))
        self.head = nn.Linear(WIDTH, SIGNS, bias=False)

    def forward(self, x: Tensor) -> Tensor:
        return self.head(self.blocks(self.signs(x) + self.positions.weight))


def sums(count: int) -> Tensor:
    """Rows such as 00120034 + 07000001 = 07120035, as numbers below 12."""
    places = 10 ** torch.arange(7, -1, -1)
    a, b = torch.randint(10**7, (2, count, 1))
    plus, equals = torch.full((count, 1), 10), torch.full((count, 1), 11)
    row = torch.cat([a // places % 10, plus, b // places % 10, equals, (a + b) // places % 10], dim=1)
    return row[:, 1 : LENGTH + 2]


def main() -> None:
    args = options(__doc__, steps=50)
    torch.manual_seed(0)
    model = GPT()
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3, fused=True)
    rows = sums(20000)
    clock = Clock()
    for step in range(args.steps):
        batch = rows[torch.randint(len(rows), (BATCH,))]
        loss = F.cross_entropy(model(batch[:, :-1]).flatten(0, 1), batch[:, 1:].flatten())
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        clock.tick()
        if step % 10 == 0:
            print(f"step {step:4d}  loss {loss.item():.4f}")
    clock.report()


if __name__ == "__main__":
    main()
