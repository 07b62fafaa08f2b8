"""A compiled transformer on sentences of many lengths, compiled for each length that it meets."""

from __future__ import annotations

import torch
from clock import Clock, options
from torch import Tensor, nn
from torch.nn import functional as F

WORDS, WIDTH, HEADS, LAYERS, BATCH, EVERY = 600, 128, 4, 2, 16, 5


class Tagger(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.words = nn.Embedding(WORDS, WIDTH)
        self.norms = nn.ModuleList([nn.LayerNorm(WIDTH) for _ in range(LAYERS)])
        self.qkv = nn.ModuleList([nn.Linear(WIDTH, 3 * WIDTH) for _ in range(LAYERS)])
        self.out = nn.ModuleList([nn.Linear(WIDTH, WIDTH) for _ in range(LAYERS)])
        self.head = nn.Linear(WIDTH, 12)

    def forward(self, words: Tensor) -> Tensor:
        x = self.words(words)
        for norm, qkv, out in zip(self.norms, self.qkv, self.out):
            q, k, v = qkv(norm(x)).unflatten(2, (3, HEADS, -1)).permute(2, 0, 3, 1, 4)
            x = x + out(F.scaled_dot_product_attention(q, k, v).transpose(1, 2).flatten(2))
        return self.head(x)


def lengths() -> list[int]:
    """Each length comes once, in no order; a batch is of sentences of one length."""
    order = torch.randperm(96, generator=torch.Generator().manual_seed(5))
    return (40 + order).tolist()


def main() -> None:
    args = options(__doc__, steps=80)
    torch.manual_seed(0)
    torch._dynamo.config.recompile_limit = 128
    model = Tagger()
    compiled = torch.compile(model, dynamic=args.fixed, backend="aot_eager")  # fault
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)
    met = lengths()
    clock = Clock(period=EVERY)
    for step in range(args.steps):
        words = torch.randint(WORDS, (BATCH, met[step // EVERY % len(met)]))
        loss = F.cross_entropy(compiled(words).flatten(0, 1), (words % 12).flatten())  # fault: where it costs
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        clock.tick()
        if step % 20 == 0:
            print(f"step {step:4d}  loss {loss.item():.4f}")
    clock.report()


if __name__ == "__main__":
    main()
