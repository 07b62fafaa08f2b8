"""A small GPT on a made-up language of numbers, with attention as its first papers write it down."""

from __future__ import annotations

import math

import torch
from clock import Clock, options
from torch import Tensor, nn
from torch.nn import functional as F

WORDS, LENGTH, WIDTH, HEADS, LAYERS, BATCH = 512, 384, 128, 4, 3, 4


class Attention(nn.Module):
    def __init__(self, by_hand: bool) -> None:
        super().__init__()
        self.qkv, self.out = nn.Linear(WIDTH, 3 * WIDTH), nn.Linear(WIDTH, WIDTH)
        self.by_hand = by_hand
        self.register_buffer("mask", torch.ones(LENGTH, LENGTH).tril().bool())

    def scores(self, q: Tensor, k: Tensor, v: Tensor) -> Tensor:
        weights = q @ k.transpose(-2, -1) / math.sqrt(q.shape[-1])  # fault
        weights = weights.masked_fill(~self.mask, float("-inf"))  # fault
        return weights.softmax(dim=-1) @ v  # fault

    def forward(self, x: Tensor) -> Tensor:
        batch, length, width = x.shape
        q, k, v = self.qkv(x).view(batch, length, 3, HEADS, width // HEADS).permute(2, 0, 3, 1, 4)
        y = self.scores(q, k, v) if self.by_hand else F.scaled_dot_product_attention(q, k, v, is_causal=True)
        return self.out(y.transpose(1, 2).reshape(batch, length, width))


class Block(nn.Module):
    def __init__(self, by_hand: bool) -> None:
        super().__init__()
        self.norms = nn.ModuleList([nn.LayerNorm(WIDTH), nn.LayerNorm(WIDTH)])
        self.attention = Attention(by_hand)
        self.mlp = nn.Sequential(nn.Linear(WIDTH, 4 * WIDTH), nn.GELU(), nn.Linear(4 * WIDTH, WIDTH))

    def forward(self, x: Tensor) -> Tensor:
        x = x + self.attention(self.norms[0](x))
        return x + self.mlp(self.norms[1](x))


class GPT(nn.Module):
    def __init__(self, by_hand: bool) -> None:
        super().__init__()
        self.words, self.positions = nn.Embedding(WORDS, WIDTH), nn.Embedding(LENGTH, WIDTH)
        self.blocks = nn.Sequential(*(Block(by_hand) for _ in range(LAYERS)))
        self.head = nn.Linear(WIDTH, WORDS, bias=False)

    def forward(self, x: Tensor) -> Tensor:
        return self.head(self.blocks(self.words(x) + self.positions.weight))


def sentences(step: int) -> tuple[Tensor, Tensor]:
    """Each word is the one before it times a factor of the sentence's own."""
    generator = torch.Generator().manual_seed(step)
    factors = torch.randint(2, 6, (BATCH, 1), generator=generator)
    words = (factors * torch.arange(1, LENGTH + 2) + torch.randint(WORDS, (BATCH, 1), generator=generator)) % WORDS
    return words[:, :-1], words[:, 1:]


def main() -> None:
    args = options(__doc__, steps=60)
    torch.manual_seed(0)
    model = GPT(by_hand=not args.fixed)
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3, fused=True)
    clock = Clock()
    for step in range(args.steps):
        inputs, targets = sentences(step)
        loss = F.cross_entropy(model(inputs).flatten(0, 1), targets.flatten())
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        clock.tick()
        if step % 10 == 0:
            print(f"step {step:4d}  loss {loss.item():.4f}")
    clock.report()


if __name__ == "__main__":
    main()
