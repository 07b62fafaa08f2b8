"""A transformer on a GPU whose loop reads a number of every layer from the device at every step."""

from __future__ import annotations

import torch
from clock import Clock, need_cuda, options
from torch import Tensor, nn
from torch.nn import functional as F

WORDS, LENGTH, WIDTH, HEADS, LAYERS, BATCH = 2000, 64, 256, 4, 8, 16


class Filler(nn.Module):
    def __init__(self, watched: bool) -> None:
        super().__init__()
        self.words = nn.Embedding(WORDS, WIDTH)
        layers = [nn.TransformerEncoderLayer(WIDTH, HEADS, 4 * WIDTH, 0.0, batch_first=True) for _ in range(LAYERS)]
        self.layers, self.head = nn.ModuleList(layers), nn.Linear(WIDTH, WORDS)
        self.watched, self.largest = watched, 0.0

    def forward(self, words: Tensor) -> Tensor:
        x = self.words(words)
        for layer in self.layers:
            x = layer(x)
            if self.watched:
                self.largest = max(self.largest, x.abs().max().item())  # fault
        return self.head(x)


def main() -> None:
    args = options(__doc__, steps=200)
    need_cuda()
    torch.manual_seed(0)
    model = Filler(not args.fixed).cuda()
    optimizer = torch.optim.AdamW(model.parameters(), lr=3e-4, fused=True)
    clock = Clock()
    for step in range(args.steps):
        words = torch.randint(WORDS, (BATCH, LENGTH), device="cuda")
        loss = F.cross_entropy(model(words).flatten(0, 1), words.roll(1, dims=1).flatten())
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        clock.tick()
        if step % 50 == 0:
            print(f"step {step:4d}  loss {loss.item():.4f}")
    clock.report()


if __name__ == "__main__":
    main()
