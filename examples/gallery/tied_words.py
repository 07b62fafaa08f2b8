"""A model of words whose table is also its last layer, turned around in memory for that in each step."""

from __future__ import annotations

import torch
from clock import Clock, options
from torch import Tensor, nn
from torch.nn import functional as F

WORDS, WIDTH, SEEN, BATCH = 24000, 192, 6, 96


class Next(nn.Module):
    """The word behind `SEEN` others."""

    def __init__(self, turns: bool) -> None:
        super().__init__()
        self.words, self.places = nn.Embedding(WORDS, WIDTH), nn.Embedding(SEEN, WIDTH)
        self.up, self.down = nn.Linear(WIDTH, 4 * WIDTH), nn.Linear(4 * WIDTH, WIDTH)
        self.norm = nn.LayerNorm(WIDTH)
        self.turns = turns

    def odds(self, states: Tensor) -> Tensor:
        if not self.turns:
            return states @ self.words.weight.t()
        return states @ self.words.weight.t().contiguous()  # fault

    def forward(self, seen: Tensor) -> Tensor:
        states = (self.words(seen) * self.places.weight).sum(dim=1)
        states = states + self.down(F.gelu(self.up(states)))
        return self.odds(self.norm(states))


def main() -> None:
    args = options(__doc__, steps=60)
    torch.manual_seed(0)
    model = Next(turns=not args.fixed)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1, fused=True)
    text = torch.randint(WORDS, (20000,)).sort().values.roll(7)
    clock = Clock()
    for step in range(args.steps):
        begin = torch.randint(len(text) - SEEN - 1, (BATCH, 1))
        places = begin + torch.arange(SEEN + 1)
        loss = F.cross_entropy(model(text[places[:, :-1]]), text[places[:, -1]])
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        clock.tick()
        if step % 10 == 0:
            print(f"step {step:4d}  loss {loss.item():.4f}")
    clock.report()


if __name__ == "__main__":
    main()
