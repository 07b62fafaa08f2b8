"""A transformer that fills in masked words, with the activation written out as in the code of the first GPT-2."""

from __future__ import annotations

import math

import torch
from clock import Clock, options
from torch import Tensor, nn
from torch.nn import functional as F

WORDS, LENGTH, WIDTH, HEADS, LAYERS, BATCH = 1024, 64, 128, 4, 3, 24


def gelu(x: Tensor) -> Tensor:
    return 0.5 * x * (1 + torch.tanh(math.sqrt(2 / math.pi) * (x + 0.044715 * torch.pow(x, 3))))  # fault


def fused_gelu(x: Tensor) -> Tensor:
    return F.gelu(x, approximate="tanh")


class Filler(nn.Module):
    def __init__(self, fixed: bool) -> None:
        super().__init__()
        self.words, self.positions = nn.Embedding(WORDS, WIDTH), nn.Embedding(LENGTH, WIDTH)
        layer = nn.TransformerEncoderLayer(
            WIDTH, HEADS, 4 * WIDTH, dropout=0.0, activation=fused_gelu if fixed else gelu, batch_first=True
        )
        self.encoder = nn.TransformerEncoder(layer, LAYERS, enable_nested_tensor=False)
        self.head = nn.Linear(WIDTH, WORDS)

    def forward(self, x: Tensor) -> Tensor:
        return self.head(self.encoder(self.words(x) + self.positions.weight))


def main() -> None:
    args = options(__doc__, steps=60)
    torch.manual_seed(0)
    model = Filler(args.fixed)
    optimizer = torch.optim.AdamW(model.parameters(), lr=5e-4, fused=True)
    text = (torch.arange(40000) ** 2 + 7 * torch.arange(40000)) % (WORDS - 1) + 1
    clock = Clock()
    for step in range(args.steps):
        starts = torch.randint(len(text) - LENGTH, (BATCH, 1))
        words = text[starts + torch.arange(LENGTH)]
        hidden = torch.rand(words.shape) < 0.15
        logits = model(words.masked_fill(hidden, 0))
        loss = F.cross_entropy(logits[hidden], words[hidden])
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        clock.tick()
        if step % 10 == 0:
            print(f"step {step:4d}  loss {loss.item():.4f}")
    clock.report()


if __name__ == "__main__":
    main()
