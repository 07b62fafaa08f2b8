"""A service that embeds texts: batches of what waits, no gradients, the fast path of the encoder."""

from __future__ import annotations

import torch
from clock import Clock, options
from torch import Tensor, nn

WORDS, LENGTH, WIDTH, HEADS, LAYERS, BATCH = 5000, 48, 256, 8, 4, 16


class Embedder(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.words, self.positions = nn.Embedding(WORDS, WIDTH), nn.Embedding(LENGTH, WIDTH)
        layer = nn.TransformerEncoderLayer(WIDTH, HEADS, 4 * WIDTH, batch_first=True)
        self.encoder = nn.TransformerEncoder(layer, LAYERS, enable_nested_tensor=False)

    def forward(self, words: Tensor) -> Tensor:
        states = self.encoder(self.words(words) + self.positions.weight)
        return nn.functional.normalize(states.mean(dim=1), dim=1)


@torch.inference_mode()
def main() -> None:
    args = options(__doc__, steps=120)
    torch.manual_seed(0)
    model = Embedder().eval()
    known = nn.functional.normalize(torch.randn(2000, WIDTH), dim=1)
    clock = Clock()
    for request in range(args.steps):
        scores, alike = (model(torch.randint(WORDS, (BATCH, LENGTH))) @ known.T).topk(5, dim=1)
        clock.tick()
        if request % 20 == 0:
            print(f"batch {request:4d}  finds {alike[0].tolist()}  {scores[0, 0].item():.3f}")
    clock.report()


if __name__ == "__main__":
    main()
