#!/usr/bin/env python3
"""A small GPT on a GPU in forms that a recording should tell apart; see record.sh. It knows nothing of stepscope.

job.py FORM [--steps N] [--width N] [--narrow] [--pause MS]

The last line says what a step takes, as a median of ten together.
"""

from __future__ import annotations

import argparse
import contextlib
import statistics
import time
from collections.abc import Callable, Iterator

import torch
from torch import Tensor, nn
from torch.nn import functional as F
from torch.utils.data import DataLoader, Dataset

WORDS, HEADS, LAYERS, LENGTH, BATCH = 2048, 8, 4, 128, 16
TOGETHER = 10  # steps between two looks at the clock with the device at rest
FORMS = {
    "eager": "a training as it comes",
    "compiled": "its model through torch.compile",
    "inference": "the forward pass alone, in inference mode",
    "graph": "the whole step in one CUDA graph",
    "loader": "batches of a DataLoader that is slow, in the main process",
    "item": "the loss of each layer is read at once",
    "pageable": "batches come from memory that is not pinned, and are large",
    "greedy": "eager, until memory runs out",
}


class Block(nn.Module):
    def __init__(self, width: int, hidden: int) -> None:
        super().__init__()
        self.norms = nn.ModuleList(nn.LayerNorm(width) for _ in range(2))
        self.qkv, self.out = nn.Linear(width, 3 * width), nn.Linear(width, width)
        self.up, self.down = nn.Linear(width, hidden), nn.Linear(hidden, width)

    def forward(self, x: Tensor) -> Tensor:
        batch, length, width = x.shape
        q, k, v = self.qkv(self.norms[0](x)).view(batch, length, 3, HEADS, width // HEADS).permute(2, 0, 3, 1, 4)
        attended = F.scaled_dot_product_attention(q, k, v, is_causal=True)
        x = x + self.out(attended.transpose(1, 2).reshape(batch, length, width))
        return x + self.down(F.gelu(self.up(self.norms[1](x))))


class GPT(nn.Module):
    def __init__(self, width: int, hidden: list[int], looked_at: bool = False) -> None:
        super().__init__()
        self.words, self.places = nn.Embedding(WORDS, width), nn.Embedding(LENGTH, width)
        self.blocks = nn.ModuleList(Block(width, one) for one in hidden)
        self.head = nn.Linear(width, WORDS)
        self.looked_at, self.largest = looked_at, 0.0

    def forward(self, words: Tensor) -> Tensor:
        x = self.words(words) + self.places.weight[: words.shape[1]]
        for block in self.blocks:
            x = block(x)
            if self.looked_at:
                self.largest = max(self.largest, x.detach().abs().max().item())
        return self.head(x)


class Sentences(Dataset[Tensor]):
    """Words that take some milliseconds to make, and what a camera saw beside them (thrown away)."""

    def __len__(self) -> int:
        return 1 << 20

    def __getitem__(self, index: int) -> Tensor:
        words = torch.tensor([(index * 31 + place * 17) % WORDS for place in range(LENGTH)])
        torch.randn(1 << 14).sort()
        return words


def batches(form: str) -> Iterator[Tensor]:
    if form == "loader":
        yield from DataLoader(Sentences(), BATCH, pin_memory=True)
    rows = 1 << 15 if form == "pageable" else BATCH
    kept = [torch.randint(WORDS, (rows, LENGTH)) for _ in range(4)]
    kept = kept if form == "pageable" else [one.pin_memory() for one in kept]
    while True:
        yield from kept


def model_of(args: argparse.Namespace) -> nn.Module:
    hidden = [4 * args.width] * LAYERS
    if args.narrow:
        hidden[1] //= 2
    return GPT(args.width, hidden, looked_at=args.form == "item").cuda()


def training(args: argparse.Namespace) -> Callable[[Tensor], None]:
    form, model = args.form, model_of(args)
    run: Callable[[Tensor], Tensor] = torch.compile(model) if form == "compiled" else model
    optimizer = torch.optim.AdamW(model.parameters(), lr=3e-4, fused=True, capturable=form == "graph")
    hoard: list[Tensor] = []

    def step(words: Tensor) -> None:
        here = words.to("cuda", non_blocking=form != "pageable")[:BATCH]
        with torch.autocast("cuda", torch.bfloat16):
            loss = F.cross_entropy(run(here).flatten(0, 1).float(), here.roll(-1, 1).flatten())
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        if args.pause:
            torch.cuda.synchronize()
            time.sleep(args.pause / 1e3)
        if form == "greedy":
            hoard.append(torch.empty(1 << 28, dtype=torch.uint8, device="cuda"))

    return captured(step, torch.randint(WORDS, (BATCH, LENGTH))) if form == "graph" else step


def captured(step: Callable[[Tensor], None], words: Tensor) -> Callable[[Tensor], None]:
    held = words.cuda()
    side = torch.cuda.Stream()
    side.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(side):  # as torch wants it before a capture
        for _ in range(3):
            step(held)
    torch.cuda.current_stream().wait_stream(side)
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        step(held)

    def replay(words: Tensor) -> None:
        held.copy_(words, non_blocking=True)
        graph.replay()

    return replay


def inference(args: argparse.Namespace) -> Callable[[Tensor], None]:
    model = model_of(args).eval()

    def step(words: Tensor) -> None:
        with torch.inference_mode(), torch.autocast("cuda", torch.bfloat16):
            model(words.to("cuda", non_blocking=True))[:, -1].argmax(-1).cpu()

    return step


def options() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("form", choices=FORMS, help="; ".join(f"{name}: {text}" for name, text in FORMS.items()))
    parser.add_argument("--steps", type=int, default=100)
    parser.add_argument("--width", type=int, default=512)
    parser.add_argument("--each", action="store_true", help="also say what each ten steps took, one by one")
    parser.add_argument("--narrow", action="store_true", help="half the hidden width in one layer")
    parser.add_argument("--pause", type=float, default=0, metavar="MS", help="after each step, with the device at rest")
    return parser


def main() -> None:
    args = options().parse_args()
    torch.manual_seed(0)
    if args.form == "greedy":
        torch.cuda.set_per_process_memory_fraction(0.05)
    step = inference(args) if args.form == "inference" else training(args)
    moments = []
    with contextlib.closing(batches(args.form)) as source:  # type: ignore[type-var]
        for number, words in zip(range(args.steps), source):
            if number % TOGETHER == 0:
                torch.cuda.synchronize()
                moments.append(time.perf_counter())
            step(words)
    torch.cuda.synchronize()
    spans = [1e3 * (end - start) / TOGETHER for start, end in zip(moments[1:], moments[2:])]
    if args.each:
        print("each_ms " + " ".join(f"{one:.2f}" for one in spans))
    print(f"{args.form}: step_ms {statistics.median(spans):.3f}" if spans else args.form, flush=True)


if __name__ == "__main__":
    main()
