"""A convolutional network in half precision on a GPU, with the channels where tensor cores do not want them."""

from __future__ import annotations

import torch
from clock import Clock, need_cuda, options
from torch import Tensor, nn
from torch.nn import functional as F

SIDE, WIDTH, DEPTH, CLASSES, BATCH = 56, 128, 8, 10, 64


class Block(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.first, self.second = (nn.Conv2d(WIDTH, WIDTH, 3, padding=1, bias=False) for _ in range(2))
        self.norm = nn.BatchNorm2d(WIDTH)

    def forward(self, x: Tensor) -> Tensor:
        return x + self.second(F.relu(self.norm(self.first(x))))  # fault: where it costs


def main() -> None:
    args = options(__doc__, steps=80)
    need_cuda()
    torch.manual_seed(0)
    layout = torch.channels_last if args.fixed else torch.contiguous_format  # fault
    head = [nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(WIDTH, CLASSES)]
    model = nn.Sequential(nn.Conv2d(3, WIDTH, 3, padding=1), *(Block() for _ in range(DEPTH)), *head)
    model = model.to("cuda", memory_format=layout)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.02, momentum=0.9)
    images = torch.randn(512, 3, SIDE, SIDE, device="cuda").to(memory_format=layout)
    labels = torch.randint(CLASSES, (512,), device="cuda")
    clock = Clock(period=20)
    for step in range(args.steps):
        picked = torch.randint(512, (BATCH,), device="cuda")
        with torch.autocast("cuda", torch.bfloat16):
            loss = F.cross_entropy(model(images[picked]), labels[picked])
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        clock.tick()
        if step % 20 == 0:
            print(f"step {step:4d}  loss {loss.item():.4f}")
    clock.report()


if __name__ == "__main__":
    main()
