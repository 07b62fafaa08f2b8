"""An encoder on a GPU with a head for each of many tasks, and a look at the loss of each as soon as it is there."""

from __future__ import annotations

import torch
from clock import Clock, need_cuda, options
from torch import Tensor, nn
from torch.nn import functional as F

WORDS, LENGTH, WIDTH, HEADS, LAYERS, BATCH, TASKS = 4000, 256, 1024, 16, 6, 48, 24


class Encoder(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.words = nn.Embedding(WORDS, WIDTH)
        layers = [nn.TransformerEncoderLayer(WIDTH, HEADS, 4 * WIDTH, 0.0, batch_first=True) for _ in range(LAYERS)]
        self.layers = nn.Sequential(*layers)
        self.heads = nn.ModuleList(
            nn.Sequential(nn.LayerNorm(WIDTH), nn.Linear(WIDTH, 256), nn.GELU(), nn.Linear(256, 10))
            for _ in range(TASKS)
        )

    def forward(self, words: Tensor) -> Tensor:
        return self.layers(self.words(words)).mean(dim=1)


def losses_of(model: Encoder, words: Tensor, smallest: list[float] | None) -> Tensor:
    """The sum over all tasks; `smallest` of each is kept up to date."""
    whole, total = model(words), torch.zeros((), device="cuda")
    for task, head in enumerate(model.heads):
        loss = F.cross_entropy(head(whole), words[:, task] % 10)
        if smallest is not None:
            smallest[task] = min(smallest[task], loss.item())  # fault
        total = total + loss
    return total / TASKS


def main() -> None:
    args = options(__doc__, steps=120)
    need_cuda()
    torch.manual_seed(0)
    model = Encoder().cuda()
    optimizer = torch.optim.AdamW(model.parameters(), lr=3e-4, fused=True)
    smallest = None if args.fixed else [float("inf")] * TASKS
    clock = Clock(period=20)
    for step in range(args.steps):
        words = torch.randint(WORDS, (BATCH, LENGTH), device="cuda")
        with torch.autocast("cuda", torch.bfloat16):
            loss = losses_of(model, words, smallest)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        clock.tick()
        if step % 20 == 0:
            print(f"step {step:4d}  loss {loss.item():.4f}")
    clock.report()


if __name__ == "__main__":
    main()
