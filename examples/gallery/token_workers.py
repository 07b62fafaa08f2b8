"""A sentiment model on reviews that the workers of the loader split into word pieces."""

from __future__ import annotations

import random

import torch
from clock import Clock, options
from torch import Tensor, nn
from torch.nn import functional as F
from torch.utils.data import DataLoader, Dataset

PIECES, LENGTH, BATCH = 2048, 256, 32
SYLLABLES = [a + b for a in "bcdfglmnprstvw" for b in ("a", "e", "i", "o", "u", "an", "er", "ing", "out", "ess")]


def reviews(count: int) -> list[str]:
    rng = random.Random(0)
    words = ["".join(rng.choices(SYLLABLES, k=rng.randint(1, 4))) for _ in range(3000)]
    return [" ".join(rng.choices(words, k=300)) for _ in range(count)]


class Pieces:
    """Longest match first, as WordPiece does it; a word is always split alike."""

    def __init__(self, remember: bool) -> None:
        self.vocabulary = {piece: number for number, piece in enumerate(SYLLABLES, 1)}
        self.known: dict[str, list[int]] = {}
        self.remember = remember

    def split(self, word: str) -> list[int]:
        pieces, start = [], 0
        while start < len(word):
            for end in range(len(word), start, -1):  # fault
                if word[start:end] in self.vocabulary:
                    pieces.append(self.vocabulary[word[start:end]] * 29 % PIECES)
                    start = end
                    break
            else:
                start += 1
        return pieces

    def of(self, text: str) -> list[int]:
        found = []
        for word in text.split():
            if not self.remember:
                found += self.split(word)  # fault
                continue
            if word not in self.known:
                self.known[word] = self.split(word)
            found += self.known[word]
        return found[:LENGTH]


class Reviews(Dataset):
    def __init__(self, count: int, remember: bool) -> None:
        self.texts = reviews(512)
        self.pieces = Pieces(remember)
        self.count = count

    def __len__(self) -> int:
        return self.count

    def __getitem__(self, index: int) -> tuple[Tensor, int]:
        row = self.pieces.of(self.texts[index * 7 % len(self.texts)].lower())
        return torch.tensor(row + [0] * (LENGTH - len(row))), index % 2


class Sentiment(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.embedding = nn.EmbeddingBag(PIECES, 96, mode="mean", padding_idx=0)
        self.mlp = nn.Sequential(nn.Linear(96, 512), nn.GELU(), nn.Linear(512, 512), nn.GELU(), nn.Linear(512, 2))

    def forward(self, pieces: Tensor) -> Tensor:
        return self.mlp(self.embedding(pieces))


def main() -> None:
    args = options(__doc__, steps=200)
    torch.manual_seed(0)
    data = Reviews(args.steps * BATCH, remember=args.fixed)
    loader = DataLoader(data, BATCH, num_workers=1, prefetch_factor=4)
    model = Sentiment()
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)
    clock = Clock()
    for step, (pieces, labels) in enumerate(loader):  # fault: here the step waits for what the workers do above
        loss = F.cross_entropy(model(pieces), labels)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        clock.tick()
        if step % 20 == 0:
            print(f"step {step:4d}  loss {loss.item():.4f}")
    clock.report()


if __name__ == "__main__":
    main()
