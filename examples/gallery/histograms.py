"""A classifier of sounds that writes down how all its weights and gradients are spread, at each step."""

from __future__ import annotations

import io
import json

import torch
from clock import Clock, options
from torch import Tensor, nn
from torch.nn import functional as F

BANDS, MOMENTS, CLASSES, BATCH = 40, 64, 12, 32


class Sounds(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.layers = nn.Sequential(
            nn.Conv1d(BANDS, 128, 5, padding=2),
            nn.ReLU(),
            nn.MaxPool1d(2),
            nn.Conv1d(128, 192, 5, padding=2),
            nn.ReLU(),
        )
        self.head = nn.Linear(192, CLASSES)

    def forward(self, sounds: Tensor) -> Tensor:
        return self.head(self.layers(sounds).mean(dim=2))


class Journal:
    """One line of JSON a step, as dashboards read it."""

    def __init__(self) -> None:
        self.lines = io.StringIO()

    def add(self, step: int, model: nn.Module) -> None:
        row: dict[str, object] = {"step": step}
        for name, parameter in model.named_parameters():
            for kind, values in (("weight", parameter.detach()), ("gradient", parameter.grad)):
                counts = torch.histc(values, 64)  # fault
                edges = values.quantile(torch.tensor([0.05, 0.5, 0.95])) if values.numel() < 1e5 else values.aminmax()
                row[f"{name}.{kind}"] = [counts.tolist(), [float(edge) for edge in edges]]  # fault
        self.lines.write(json.dumps(row) + "\n")


def main() -> None:
    args = options(__doc__, steps=200)
    torch.manual_seed(0)
    model, journal = Sounds(), Journal()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.05, momentum=0.9)
    tones = torch.randn(CLASSES, BANDS, 1)
    clock = Clock()
    for step in range(args.steps):
        labels = torch.randint(CLASSES, (BATCH,))
        sounds = tones[labels] + torch.randn(BATCH, BANDS, MOMENTS)
        loss = F.cross_entropy(model(sounds), labels)
        optimizer.zero_grad()
        loss.backward()
        if not args.fixed or step == args.steps - 1:
            journal.add(step, model)  # fault
        optimizer.step()
        clock.tick()
        if step % 20 == 0:
            print(f"step {step:4d}  loss {loss.item():.4f}")
    print(f"{len(journal.lines.getvalue()) / 1e3:.0f} kB of journal")
    clock.report()


if __name__ == "__main__":
    main()
