"""A service sorts messages; requests queue up, and each is answered alone."""

from __future__ import annotations

from collections import deque

import torch
from clock import Clock, options
from torch import Tensor, nn

WORDS, LENGTH, WIDTH, LAYERS, TOPICS, TOGETHER = 3000, 24, 256, 6, 8, 4


class Topics(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.words = nn.EmbeddingBag(WORDS, WIDTH, mode="mean")
        blocks = [
            nn.Sequential(nn.LayerNorm(WIDTH), nn.Linear(WIDTH, 4 * WIDTH), nn.GELU(), nn.Linear(4 * WIDTH, WIDTH))
            for _ in range(LAYERS)
        ]
        self.blocks = nn.ModuleList(blocks)
        self.head = nn.Linear(WIDTH, TOPICS)

    def forward(self, words: Tensor) -> Tensor:
        x = self.words(words)
        for block in self.blocks:
            x = x + block(x)
        return self.head(x).softmax(dim=1)


class Service:
    def __init__(self, model: nn.Module, most: int) -> None:
        self.model, self.most = model, most
        self.waiting: deque[list[int]] = deque()
        self.answered = 0

    def answer(self) -> list[int]:
        requests = [self.waiting.popleft() for _ in range(min(self.most, len(self.waiting)))]
        odds = self.model(torch.tensor(requests))  # fault
        self.answered += len(requests)
        return odds.argmax(dim=1).tolist()


@torch.inference_mode()
def main() -> None:
    args = options(__doc__, steps=12000)
    torch.manual_seed(0)
    service = Service(Topics().eval(), most=TOGETHER if args.fixed else 1)
    clock = Clock(period=TOGETHER)
    while service.answered < args.steps:
        if not service.waiting:  # a burst of requests
            service.waiting.extend(torch.randint(WORDS, (16 * TOGETHER, LENGTH)).tolist())
        topics = service.answer()
        for _ in topics:
            clock.tick()
        if service.answered % 512 == 0:
            print(f"request {service.answered:4d}  topic {topics[-1]}")
    clock.report()


if __name__ == "__main__":
    main()
