"""A small GPT answers requests word by word, and reads each answer from its beginning for every word."""

from __future__ import annotations

import torch
from clock import Clock, options
from torch import Tensor, nn
from torch.nn import functional as F

WORDS, WIDTH, HEADS, LAYERS, PROMPT, NEW, BATCH = 1000, 192, 6, 4, 16, 24, 4
Past = tuple[Tensor, Tensor]


class Attention(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.qkv, self.out = nn.Linear(WIDTH, 3 * WIDTH), nn.Linear(WIDTH, WIDTH)

    def forward(self, x: Tensor, past: Past | None) -> tuple[Tensor, Past]:
        batch, length, width = x.shape
        q, k, v = self.qkv(x).view(batch, length, 3, HEADS, width // HEADS).permute(2, 0, 3, 1, 4)
        if past is not None:
            k, v = torch.cat([past[0], k], dim=2), torch.cat([past[1], v], dim=2)
        y = F.scaled_dot_product_attention(q, k, v, is_causal=past is None)
        return self.out(y.transpose(1, 2).reshape(batch, length, width)), (k, v)


class Block(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.norms = nn.ModuleList([nn.LayerNorm(WIDTH), nn.LayerNorm(WIDTH)])
        self.attention = Attention()
        self.mlp = nn.Sequential(nn.Linear(WIDTH, 4 * WIDTH), nn.GELU(), nn.Linear(4 * WIDTH, WIDTH))

    def forward(self, x: Tensor, past: Past | None) -> tuple[Tensor, Past]:
        y, past = self.attention(self.norms[0](x), past)
        x = x + y
        return x + self.mlp(self.norms[1](x)), past


class GPT(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.words, self.positions = nn.Embedding(WORDS, WIDTH), nn.Embedding(PROMPT + NEW, WIDTH)
        self.blocks = nn.ModuleList([Block() for _ in range(LAYERS)])
        self.head = nn.Linear(WIDTH, WORDS, bias=False)

    def forward(self, words: Tensor, start: int = 0, past: list[Past] | None = None) -> tuple[Tensor, list[Past]]:
        x = self.words(words) + self.positions.weight[start : start + words.shape[1]]
        kept = []
        for number, block in enumerate(self.blocks):
            x, here = block(x, past[number] if past else None)
            kept.append(here)
        return self.head(x[:, -1]), kept


def answer(model: GPT, prompt: Tensor, cached: bool) -> Tensor:
    words, past = prompt, None
    for _ in range(NEW):
        if past is None:
            logits, kept = model(words)  # fault: for every word
            past = kept if cached else None
        else:
            logits, past = model(words[:, -1:], words.shape[1] - 1, past)
        words = torch.cat([words, logits.argmax(dim=1, keepdim=True)], dim=1)
    return words[:, PROMPT:]


@torch.inference_mode()
def main() -> None:
    args = options(__doc__, steps=60)
    torch.manual_seed(0)
    model = GPT().eval()
    clock = Clock()
    for request in range(args.steps):
        prompt = torch.randint(WORDS, (BATCH, PROMPT))
        said = answer(model, prompt, cached=args.fixed)
        clock.tick()
        if request % 10 == 0:
            print(f"request {request:4d}  says {said[0, :6].tolist()}")
    clock.report()


if __name__ == "__main__":
    main()
