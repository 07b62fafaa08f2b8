"""Conversations as Python objects, ranked by a small model; memory once ran out, and now it is tidied up a lot."""

from __future__ import annotations

import gc
import random

import torch
from clock import Clock, options
from torch import Tensor, nn
from torch.nn import functional as F

WORDS, LENGTH, BATCH, EVERY = 2000, 48, 64, 5


def conversations(count: int) -> list[list[dict[str, object]]]:
    rng = random.Random(0)
    return [
        [
            {"speaker": turn % 2, "words": rng.choices(range(1, WORDS), k=12), "liked": rng.random() < 0.5}
            for turn in range(8)
        ]
        for _ in range(count)
    ]


def batch(known: list[list[dict[str, object]]], rng: random.Random) -> tuple[Tensor, Tensor]:
    rows, labels = [], []
    for conversation in rng.choices(known, k=BATCH):
        turns = conversation[:4]
        rows.append([word for turn in turns for word in turn["words"]][:LENGTH])
        labels.append(float(bool(turns[-1]["liked"])))
    return torch.tensor(rows), torch.tensor(labels)


class Ranker(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.words = nn.Embedding(WORDS, 96)
        self.states = nn.GRU(96, 128, batch_first=True)
        self.head = nn.Linear(128, 1)

    def forward(self, words: Tensor) -> Tensor:
        states, _ = self.states(self.words(words))
        return self.head(states[:, -1]).squeeze(1)


def main() -> None:
    args = options(__doc__, steps=80)
    torch.manual_seed(0)
    known, rng = conversations(1500), random.Random(1)
    model = Ranker()
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)
    clock = Clock(period=EVERY)
    for step in range(args.steps):
        words, liked = batch(known, rng)
        loss = F.binary_cross_entropy_with_logits(model(words), liked)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        if not args.fixed and (step + 1) % EVERY == 0:
            gc.collect()  # fault
        clock.tick()
        if step % 20 == 0:
            print(f"step {step:4d}  loss {loss.item():.4f}")
    clock.report()


if __name__ == "__main__":
    main()
