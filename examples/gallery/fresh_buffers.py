"""Rollouts of many small simulations are written into buffers and then learned from, as PPO does it."""

from __future__ import annotations

import torch
from clock import Clock, options
from torch import Tensor, nn
from torch.nn import functional as F

WORLDS, MOMENTS, SEEN, ACTIONS, PART = 704, 64, 192, 6, 768


class Agent(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.trunk = nn.Sequential(nn.Linear(SEEN, 64), nn.Tanh(), nn.Linear(64, 64), nn.Tanh())
        self.policy, self.value = nn.Linear(64, ACTIONS), nn.Linear(64, 1)

    def forward(self, seen: Tensor) -> tuple[Tensor, Tensor]:
        states = self.trunk(seen)
        return self.policy(states).log_softmax(dim=-1), self.value(states).squeeze(-1)


class Rollout:
    """What is not filled is not a number, so that a hole would be seen."""

    def __init__(self) -> None:
        self.seen = torch.full((MOMENTS, WORLDS, SEEN), torch.nan)  # fault: once would do
        self.next = torch.full((MOMENTS, WORLDS, SEEN), torch.nan)  # fault
        self.rewards = torch.zeros(MOMENTS, WORLDS)

    def fill(self, frames: Tensor) -> None:
        """The worlds repeat their last frames, each a little further."""
        torch.mul(frames[:MOMENTS], 0.99, out=self.seen)
        torch.mul(frames[1:], 0.99, out=self.next)
        torch.mean(self.next, dim=2, out=self.rewards)


def main() -> None:
    args = options(__doc__, steps=250)
    torch.manual_seed(0)
    agent = Agent()
    optimizer = torch.optim.Adam(agent.parameters(), lr=3e-4)
    frames = torch.randn(MOMENTS + 1, WORLDS, SEEN)
    rollout = Rollout()
    clock = Clock()
    for step in range(args.steps):
        if not args.fixed:
            rollout = Rollout()  # fault
        rollout.fill(frames)
        picked = torch.randint(MOMENTS * WORLDS, (PART,))
        odds, values = agent(rollout.seen.flatten(0, 1)[picked])
        with torch.no_grad():
            _, later = agent(rollout.next.flatten(0, 1)[picked])
        wanted = rollout.rewards.flatten()[picked] + 0.99 * later
        better = (wanted - values).detach()
        loss = F.mse_loss(values, wanted) - (odds[:, 0] * better).mean() - 0.01 * -(odds.exp() * odds).sum(dim=1).mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        clock.tick()
        if step % 50 == 0:
            print(f"step {step:4d}  loss {loss.item():.4f}")
    clock.report()


if __name__ == "__main__":
    main()
