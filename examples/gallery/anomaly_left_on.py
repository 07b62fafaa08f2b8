"""A walker learns by policy gradient; a search for NaN of weeks ago is still switched on."""

from __future__ import annotations

import torch
from clock import Clock, options
from torch import Tensor, nn

STATES, ACTIONS, EPISODE, AGENTS = 12, 4, 16, 256


class Policy(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.cell = nn.GRUCell(STATES, 192)
        self.actor, self.critic = nn.Linear(192, ACTIONS), nn.Linear(192, 1)

    def forward(self, seen: Tensor, memory: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        memory = self.cell(seen, memory)
        return self.actor(memory).log_softmax(dim=1), self.critic(memory).squeeze(1), memory


def episode(policy: Policy, pushes: Tensor) -> Tensor:
    """All agents walk together; the loss of what they did."""
    place, memory = torch.randn(AGENTS, STATES), torch.zeros(AGENTS, 192)
    chosen, values, rewards = [], [], []
    for _ in range(EPISODE):
        odds, value, memory = policy(place, memory)
        action = torch.multinomial(odds.detach().exp(), 1)
        place = 0.9 * place + pushes[action.squeeze(1)]
        chosen.append(odds.gather(1, action).squeeze(1))
        values.append(value)
        rewards.append(-place.square().mean(dim=1))
    returns = torch.stack(rewards).flip(0).cumsum(0).flip(0)
    better = returns - torch.stack(values)
    return -(torch.stack(chosen) * better.detach()).mean() + 0.5 * better.square().mean()


def main() -> None:
    args = options(__doc__, steps=60)
    torch.manual_seed(0)
    if not args.fixed:
        torch.autograd.set_detect_anomaly(True)  # fault
    policy = Policy()
    optimizer = torch.optim.Adam(policy.parameters(), lr=1e-3)
    pushes = torch.randn(ACTIONS, STATES)
    clock = Clock()
    for step in range(args.steps):
        loss = episode(policy, pushes)
        optimizer.zero_grad()
        loss.backward()  # fault: where it costs
        nn.utils.clip_grad_norm_(policy.parameters(), 1.0)
        optimizer.step()
        clock.tick()
        if step % 20 == 0:
            print(f"step {step:4d}  loss {loss.item():.4f}")
    clock.report()


if __name__ == "__main__":
    main()
