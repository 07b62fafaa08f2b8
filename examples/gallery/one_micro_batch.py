"""A network in two halves, one on each rank; the whole batch goes through at once, and one half always waits."""

from __future__ import annotations

import torch
from clock import Clock, leave, options
from torch import Tensor, nn
from torch import distributed as dist
from torch.nn import functional as F

COLUMNS, WIDTH, DEPTH, CLASSES, BATCH = 64, 384, 3, 10, 1024


class Block(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.norm = nn.LayerNorm(WIDTH)
        self.up, self.down = nn.Linear(WIDTH, WIDTH), nn.Linear(WIDTH, WIDTH)

    def forward(self, x: Tensor) -> Tensor:
        return x + self.down(F.gelu(self.up(self.norm(x))))


def batch(step: int) -> tuple[Tensor, Tensor]:
    """Both halves make the same: one needs the rows, the other the labels."""
    rows = torch.randn(BATCH, COLUMNS, generator=torch.Generator().manual_seed(step))
    return rows, rows[:, :CLASSES].argmax(dim=1)


def first_half(model: nn.Module, rows: Tensor, parts: int) -> None:
    sent, pending = [], []
    for part in rows.chunk(parts):
        sent.append(model(part))
        pending.append(dist.isend(sent[-1].detach(), 1))
    for states in sent:
        gradient = torch.empty_like(states)
        dist.recv(gradient, 1)  # fault: where it waits
        states.backward(gradient)
    for one in pending:
        one.wait()


def second_half(model: nn.Module, labels: Tensor, parts: int) -> Tensor:
    losses = []
    for part in labels.chunk(parts):
        states = torch.empty(len(part), WIDTH)
        dist.recv(states, 0)  # fault: where it waits
        states.requires_grad_()
        loss = F.cross_entropy(model(states), part) / parts
        loss.backward()
        assert states.grad is not None
        dist.send(states.grad, 0)
        losses.append(loss.detach())
    return torch.stack(losses).sum()


def main() -> None:
    args = options(__doc__, steps=60)
    dist.init_process_group("gloo")
    rank = dist.get_rank()
    torch.manual_seed(rank)
    blocks = [Block() for _ in range(DEPTH)]
    half = [nn.Linear(COLUMNS, WIDTH), *blocks] if rank == 0 else [*blocks, nn.Linear(WIDTH, CLASSES)]
    model = nn.Sequential(*half)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.05, momentum=0.9)
    parts = 4 if args.fixed else 1  # fault
    clock = Clock()
    for step in range(args.steps):
        rows, labels = batch(step)
        optimizer.zero_grad()
        if rank == 0:
            first_half(model, rows, parts)
        else:
            loss = second_half(model, labels, parts)
        optimizer.step()
        clock.tick()
        if rank == 1 and step % 10 == 0:
            print(f"step {step:4d}  loss {loss.item():.4f}")
    if rank == 0:
        clock.report()
    leave()


if __name__ == "__main__":
    main()
