"""A mixture of experts on a GPU that decides on the CPU which expert gets which word."""

from __future__ import annotations

import torch
from clock import Clock, need_cuda, options
from torch import Tensor, nn
from torch.nn import functional as F

WORDS, WIDTH, EXPERTS, LAYERS, BATCH = 4000, 256, 8, 4, 4096


class Experts(nn.Module):
    def __init__(self, on_cpu: bool) -> None:
        super().__init__()
        self.router = nn.Linear(WIDTH, EXPERTS)
        self.up = nn.Parameter(torch.randn(EXPERTS, WIDTH, 2 * WIDTH) / WIDTH**0.5)
        self.down = nn.Parameter(torch.randn(EXPERTS, 2 * WIDTH, WIDTH) / (2 * WIDTH) ** 0.5)
        self.on_cpu = on_cpu

    def order(self, odds: Tensor) -> Tensor:
        """Each expert takes the words that want it most, as many as every other."""
        if self.on_cpu:
            return odds.cpu().argsort(dim=0, descending=True, stable=True).to(odds.device)  # fault
        return odds.argsort(dim=0, descending=True, stable=True)

    def forward(self, x: Tensor) -> Tensor:
        odds = self.router(x).softmax(dim=1)
        taken = self.order(odds.detach())[: BATCH // EXPERTS].T
        y = torch.bmm(F.gelu(torch.bmm(x[taken], self.up)), self.down) * odds.T.gather(1, taken).unsqueeze(2)
        return x.index_add(0, taken.flatten(), y.flatten(0, 1))


def main() -> None:
    args = options(__doc__, steps=150)
    need_cuda()
    torch.manual_seed(0)
    layers = [Experts(not args.fixed) for _ in range(LAYERS)]
    model = nn.Sequential(nn.Embedding(WORDS, WIDTH), *layers, nn.Linear(WIDTH, WORDS)).cuda()
    optimizer = torch.optim.AdamW(model.parameters(), lr=3e-4, fused=True)
    clock = Clock(period=20)
    for step in range(args.steps):
        words = torch.randint(WORDS, (BATCH,), device="cuda")
        loss = F.cross_entropy(model(words), (3 * words + 1) % WORDS)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        clock.tick()
        if step % 20 == 0:
            print(f"step {step:4d}  loss {loss.item():.4f}")
    clock.report()


if __name__ == "__main__":
    main()
