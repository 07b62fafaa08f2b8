"""Two ranks train a tagger of words; the first also counts in Python what was said of each, and the other waits."""

from __future__ import annotations

from collections import Counter

import torch
from clock import Clock, leave, options
from torch import Tensor, nn
from torch import distributed as dist
from torch.nn import functional as F
from torch.nn.parallel import DistributedDataParallel

WORDS, TAGS, LENGTH, WIDTH, BATCH = 6000, 20, 32, 32, 48


class Tagger(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.words = nn.Embedding(WORDS, WIDTH)
        self.states = nn.Conv1d(WIDTH, 2 * WIDTH, 3, padding=1)
        self.head = nn.Linear(2 * WIDTH, TAGS)

    def forward(self, words: Tensor) -> Tensor:
        states = F.gelu(self.states(self.words(words).transpose(1, 2)))
        return self.head(states.transpose(1, 2))


class Report:
    """Which tags each word was given, and how often it was wrong."""

    def __init__(self) -> None:
        self.given: dict[int, Counter[int]] = {}
        self.wrong: Counter[int] = Counter()

    def add(self, words: Tensor, given: Tensor, truth: Tensor) -> None:
        for word, tag, right in zip(words.flatten().tolist(), given.flatten().tolist(), truth.flatten().tolist()):
            self.given.setdefault(word, Counter())[tag] += 1  # fault
            self.wrong[word] += tag != right  # fault
        worst = sorted(self.given, key=lambda word: self.wrong[word] / sum(self.given[word].values()))[-10:]  # fault
        self.worst = [(word, self.given[word].most_common(3)) for word in worst]


def main() -> None:
    args = options(__doc__, steps=80)
    dist.init_process_group("gloo")
    rank = dist.get_rank()
    torch.manual_seed(0)
    model = DistributedDataParallel(Tagger())
    optimizer = torch.optim.AdamW(model.parameters(), lr=2e-3)
    report = Report()
    torch.manual_seed(1 + rank)
    clock = Clock()
    for step in range(args.steps):
        words = torch.randint(WORDS, (BATCH, LENGTH))
        truth = (words + words.roll(1, dims=1)) % TAGS
        logits = model(words)
        loss = F.cross_entropy(logits.flatten(0, 1), truth.flatten())
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        if rank == 0 and (not args.fixed or step == args.steps - 1):
            report.add(words, logits.argmax(dim=2), truth)  # fault
        clock.tick()
        if rank == 0 and step % 20 == 0:
            print(f"step {step:4d}  loss {loss.item():.4f}")
    if rank == 0:
        clock.report()
    leave()


if __name__ == "__main__":
    main()
