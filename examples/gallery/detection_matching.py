"""A detector of boxes: a convolutional backbone, and each prediction matched with the true box that it covers best."""

from __future__ import annotations

import torch
from clock import Clock, options
from torch import Tensor, nn
from torch.nn import functional as F

BATCH, SIDE, BOXES = 96, 40, 6


def images(step: int) -> tuple[Tensor, Tensor]:
    """Pictures, and the true boxes of each as x0, y0, x1, y1 in 0..1."""
    generator = torch.Generator().manual_seed(step)
    corners = torch.rand(BATCH, BOXES, 2, generator=generator) * 0.7
    sizes = 0.1 + 0.2 * torch.rand(BATCH, BOXES, 2, generator=generator)
    return torch.rand(BATCH, 3, SIDE, SIDE, generator=generator), torch.cat([corners, corners + sizes], dim=2)


class Detector(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        widths = (3, 16, 32, 64)
        stages = [
            nn.Sequential(nn.Conv2d(a, b, 3, 2, 1), nn.BatchNorm2d(b), nn.ReLU()) for a, b in zip(widths, widths[1:])
        ]
        self.backbone = nn.Sequential(*stages)
        self.head = nn.Conv2d(64, 5, 1)

    def forward(self, pictures: Tensor) -> tuple[Tensor, Tensor]:
        raw = self.head(self.backbone(pictures)).flatten(2).transpose(1, 2)
        centers, sizes = raw[..., :2].sigmoid(), 0.5 * raw[..., 2:4].sigmoid()
        return torch.cat([centers - sizes / 2, centers + sizes / 2], dim=2), raw[..., 4]


def overlap(boxes: Tensor, others: Tensor) -> Tensor:
    """Intersection over union of all pairs; any leading dimensions."""
    a, b = boxes.unsqueeze(-2), others.unsqueeze(-3)
    shared = (torch.minimum(a[..., 2:], b[..., 2:]) - torch.maximum(a[..., :2], b[..., :2])).clamp(min=0).prod(-1)
    areas = (a[..., 2:] - a[..., :2]).prod(-1) + (b[..., 2:] - b[..., :2]).prod(-1)
    return shared / (areas - shared + 1e-6)


def loss_of(boxes: Tensor, scores: Tensor, truth: Tensor) -> Tensor:
    """Of one picture, or of several at once."""
    best, which = overlap(boxes.detach(), truth).max(dim=-1)
    matched = truth.gather(-2, which.unsqueeze(-1).expand(*which.shape, 4))
    distance = (F.smooth_l1_loss(boxes, matched, reduction="none").mean(-1) * best).mean()
    return 5 * distance + F.binary_cross_entropy_with_logits(scores, best)


def one_by_one(boxes: Tensor, scores: Tensor, truth: Tensor) -> Tensor:
    losses = [loss_of(boxes[i], scores[i], truth[i]) for i in range(len(boxes))]  # fault
    return torch.stack(losses).mean()


def main() -> None:
    args = options(__doc__, steps=80)
    torch.manual_seed(0)
    model = Detector()
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)
    clock = Clock()
    for step in range(args.steps):
        pictures, truth = images(step % 8)
        boxes, scores = model(pictures)
        loss = loss_of(boxes, scores, truth) if args.fixed else one_by_one(boxes, scores, truth)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        clock.tick()
        if step % 20 == 0:
            print(f"step {step:4d}  loss {loss.item():.4f}")
    clock.report()


if __name__ == "__main__":
    main()
