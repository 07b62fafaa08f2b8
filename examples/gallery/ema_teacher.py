"""A student learns from the moving average of its own weights, as mean teachers do."""

from __future__ import annotations

import copy

import torch
from clock import Clock, options
from torch import Tensor, nn
from torch.nn import functional as F

BATCH, WIDTH, DEPTH = 64, 64, 60


class Block(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.norm = nn.LayerNorm(WIDTH)
        self.up, self.down = nn.Linear(WIDTH, WIDTH), nn.Linear(WIDTH, WIDTH)

    def forward(self, x: Tensor) -> Tensor:
        return x + self.down(F.gelu(self.up(self.norm(x))))


@torch.no_grad()
def follow(teacher: nn.Module, student: nn.Module, decay: float, together: bool) -> None:
    if together:
        torch._foreach_lerp_(list(teacher.parameters()), list(student.parameters()), 1 - decay)
        return
    ours = dict(teacher.named_parameters())
    for name, parameter in student.named_parameters():
        ours[name].copy_(decay * ours[name] + (1 - decay) * parameter)  # fault


def main() -> None:
    args = options(__doc__, steps=150)
    torch.manual_seed(0)
    student = nn.Sequential(*(Block() for _ in range(DEPTH)), nn.Linear(WIDTH, 8))
    teacher = copy.deepcopy(student).requires_grad_(False)
    optimizer = torch.optim.SGD(student.parameters(), lr=0.01, momentum=0.9, foreach=True)
    rows, labels = torch.randn(2048, WIDTH), torch.randint(8, (2048,))
    clock = Clock()
    for step in range(args.steps):
        picked = torch.randint(len(rows), (BATCH,))
        answer = student(rows[picked] + 0.1 * torch.randn(BATCH, WIDTH))
        with torch.no_grad():
            wanted = teacher(rows[picked]).softmax(dim=1)
        loss = F.cross_entropy(answer, labels[picked]) + F.kl_div(
            answer.log_softmax(dim=1), wanted, reduction="batchmean"
        )
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        follow(teacher, student, 0.99, together=args.fixed)
        clock.tick()
        if step % 25 == 0:
            print(f"step {step:4d}  loss {loss.item():.4f}")
    clock.report()


if __name__ == "__main__":
    main()
