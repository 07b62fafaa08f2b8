"""A service finds texts alike: its transformer records all that it would need to learn from them."""

from __future__ import annotations

import contextlib

import torch
from clock import Clock, options
from torch import Tensor, nn

WORDS, LENGTH, WIDTH, HEADS, LAYERS, BATCH = 5000, 24, 64, 4, 6, 2


class Embedder(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.words, self.positions = nn.Embedding(WORDS, WIDTH), nn.Embedding(LENGTH, WIDTH)
        layer = nn.TransformerEncoderLayer(WIDTH, HEADS, 2 * WIDTH, batch_first=True)
        self.encoder = nn.TransformerEncoder(layer, LAYERS, enable_nested_tensor=False)

    def forward(self, words: Tensor) -> Tensor:
        states = self.encoder(self.words(words) + self.positions.weight)
        return nn.functional.normalize(states.mean(dim=1), dim=1)


def main() -> None:
    args = options(__doc__, steps=3000)
    torch.manual_seed(0)
    model = Embedder().eval()
    known = nn.functional.normalize(torch.randn(2000, WIDTH), dim=1)
    clock = Clock()
    with torch.inference_mode() if args.fixed else contextlib.nullcontext():
        for request in range(args.steps):
            words = torch.randint(WORDS, (BATCH, LENGTH))
            scores, alike = (model(words) @ known.T).topk(5, dim=1)  # fault
            clock.tick()
            if request % 500 == 0:
                print(f"request {request:4d}  finds {alike[0].tolist()}  {scores[0, 0].item():.3f}")
    clock.report()


if __name__ == "__main__":
    main()
