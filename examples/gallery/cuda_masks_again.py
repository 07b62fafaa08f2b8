"""A table of users and items on a GPU; the same large mask is brought there at every step."""

from __future__ import annotations

import torch
from clock import Clock, need_cuda, options
from torch import nn
from torch.nn import functional as F

USERS, ITEMS, WIDTH, BATCH = 4000, 4000, 128, 1024


def main() -> None:
    args = options(__doc__, steps=150)
    need_cuda()
    torch.manual_seed(0)
    users, items = nn.Embedding(USERS, WIDTH).cuda(), nn.Embedding(ITEMS, WIDTH).cuda()
    optimizer = torch.optim.Adam([*users.parameters(), *items.parameters()], lr=1e-3, fused=True)
    allowed = torch.rand(USERS, ITEMS) < 0.9
    if args.fixed:
        allowed = allowed.cuda()
    clock = Clock(period=20)
    for step in range(args.steps):
        picked = torch.randint(USERS, (BATCH,), device="cuda")
        here = allowed.to("cuda")  # fault
        scores = (users(picked) @ items.weight.T).masked_fill(~here[picked], -1e4)
        loss = F.cross_entropy(scores, picked % ITEMS)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        clock.tick()
        if step % 20 == 0:
            print(f"step {step:4d}  loss {loss.item():.4f}")
    clock.report()


if __name__ == "__main__":
    main()
