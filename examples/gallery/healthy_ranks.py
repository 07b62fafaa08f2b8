"""Two ranks with much to compute and little to say: a transformer's step is long against its gradients."""

from __future__ import annotations

import torch
from clock import Clock, leave, options
from torch import Tensor, nn
from torch import distributed as dist
from torch.nn import functional as F
from torch.nn.parallel import DistributedDataParallel

WORDS, LENGTH, WIDTH, HEADS, LAYERS, BATCH = 512, 64, 128, 4, 3, 32


class Filler(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.words, self.positions = nn.Embedding(WORDS, WIDTH), nn.Embedding(LENGTH, WIDTH)
        layer = nn.TransformerEncoderLayer(WIDTH, HEADS, 4 * WIDTH, 0.0, batch_first=True, norm_first=True)
        self.encoder = nn.TransformerEncoder(layer, LAYERS, enable_nested_tensor=False)
        self.head = nn.Linear(WIDTH, WORDS)

    def forward(self, words: Tensor) -> Tensor:
        return self.head(self.encoder(self.words(words) + self.positions.weight))


def main() -> None:
    args = options(__doc__, steps=40)
    dist.init_process_group("gloo")
    rank = dist.get_rank()
    torch.manual_seed(0)
    model = DistributedDataParallel(Filler())
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3, fused=True)
    torch.manual_seed(1 + rank)
    clock = Clock()
    for step in range(args.steps):
        words = torch.randint(WORDS, (BATCH, LENGTH))
        loss = F.cross_entropy(model(words).flatten(0, 1), words.flatten())
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
