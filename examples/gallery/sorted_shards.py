"""Two ranks read sentences from a corpus that is sorted by length: the second rank has the long half."""

from __future__ import annotations

import torch
from clock import Clock, leave, options
from torch import Tensor, nn
from torch import distributed as dist
from torch.nn import functional as F
from torch.nn.parallel import DistributedDataParallel
from torch.nn.utils.rnn import pad_sequence
from torch.utils.data import DataLoader

WORDS, WIDTH, BATCH = 800, 96, 16


def corpus(count: int) -> list[Tensor]:
    generator = torch.Generator().manual_seed(0)
    lengths = torch.randint(16, 80, (count,), generator=generator).sort().values
    return [torch.randint(1, WORDS, (length,), generator=generator) for length in lengths.tolist()]


class Encoder(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.words = nn.Embedding(WORDS, WIDTH, padding_idx=0)
        self.layers = nn.ModuleList(
            [nn.TransformerEncoderLayer(WIDTH, 4, 4 * WIDTH, 0.0, batch_first=True) for _ in range(2)]
        )
        self.head = nn.Linear(WIDTH, WORDS)

    def forward(self, words: Tensor) -> Tensor:
        x = self.words(words)
        for layer in self.layers:
            x = layer(x)
        return self.head(x)


def batches(count: int, rank: int, world: int, mixed: bool) -> list[list[int]]:
    """Of sentences that are about as long as one another, in an order that all ranks share."""
    if mixed:
        mine = list(range(rank, count, world))
    else:
        mine = list(range(rank * count // world, (rank + 1) * count // world))  # fault
    order = torch.randperm(len(mine) // BATCH, generator=torch.Generator().manual_seed(0))
    return [mine[BATCH * number : BATCH * (number + 1)] for number in order.tolist()]


def padded(rows: list[Tensor]) -> Tensor:
    return pad_sequence(rows, batch_first=True)


def main() -> None:
    args = options(__doc__, steps=60)
    dist.init_process_group("gloo")
    rank, world = dist.get_rank(), dist.get_world_size()
    torch.manual_seed(0)
    sentences = corpus(args.steps * BATCH * world)
    sampler = batches(len(sentences), rank, world, mixed=args.fixed)
    loader = DataLoader(sentences, batch_sampler=sampler, collate_fn=padded)
    model = DistributedDataParallel(Encoder())
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)
    clock = Clock()
    for step, words in enumerate(loader):
        loss = F.cross_entropy(model(words).flatten(0, 1), words.flatten(), ignore_index=0)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        clock.tick()
        if rank == 0 and step % 10 == 0:
            print(f"step {step:4d}  loss {loss.item():.4f}")
    if rank == 0:
        clock.report()
    leave()


if __name__ == "__main__":
    main()
