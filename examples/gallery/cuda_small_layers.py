"""A deep and narrow network on a GPU: each kernel is done before the next one is launched."""

from __future__ import annotations

import torch
from clock import Clock, need_cuda, options
from torch import Tensor, nn
from torch.nn import functional as F

COLUMNS, WIDTH, DEPTH, BATCH = 64, 96, 60, 128


class Block(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.norm = nn.LayerNorm(WIDTH)
        self.up, self.down = nn.Linear(WIDTH, WIDTH), nn.Linear(WIDTH, WIDTH)

    def forward(self, x: Tensor) -> Tensor:
        return x + self.down(F.gelu(self.up(self.norm(x))))  # fault: where they are launched


def main() -> None:
    args = options(__doc__, steps=300)
    need_cuda()
    torch.manual_seed(0)
    model: nn.Module = nn.Sequential(
        nn.Linear(COLUMNS, WIDTH), *(Block() for _ in range(DEPTH)), nn.Linear(WIDTH, 10)
    ).cuda()
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3, fused=True)
    if args.fixed:
        model = torch.cuda.make_graphed_callables(model, (torch.randn(BATCH, COLUMNS, device="cuda"),))
    rows = torch.randn(8192, COLUMNS, device="cuda")
    clock = Clock(period=20)
    for step in range(args.steps):
        x = rows[torch.randint(8192, (BATCH,), device="cuda")]
        loss = F.cross_entropy(model(x), x[:, :10].argmax(dim=1))  # fault
        optimizer.zero_grad(set_to_none=False)
        loss.backward()  # fault
        optimizer.step()
        clock.tick()
        if step % 20 == 0:
            print(f"step {step:4d}  loss {loss.item():.4f}")
    clock.report()


if __name__ == "__main__":
    main()
