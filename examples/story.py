"""A small model that tells from a passage which kind of file it comes from, in two forms of the same forward.

    stepscope run --name before -- python examples/story.py before
    stepscope run --name after -- python examples/story.py after

`before` looks for the rare words of each passage in Python, one passage after the other, while all but one core and the
device wait; `after` does so for the whole batch in torch. Both learn the same. Plain torch, nothing else.
"""

from __future__ import annotations

import argparse
import time
from pathlib import Path

import torch
from torch import Tensor, nn
from torch.nn import functional as F

ROOT = Path(__file__).resolve().parent.parent
KINDS = ("docs/**/*.md", "src/**/*.h", "src/**/*.cc", "python/**/*.py")
WORDS = 8192  # a word is three bytes in a row, as a number below this
LENGTH = 2048  # of a passage, in bytes
KEEP = 56  # the rarest words of a passage: what the model sees of it


class InPython(nn.Module):
    """As one writes it first: clear, and right."""

    def __init__(self, counts: Tensor) -> None:
        super().__init__()
        self.counts = counts.tolist()

    def words(self, passage: list[int]) -> list[int]:
        return [(a * 961 + b * 31 + c) % WORDS for a, b, c in zip(passage, passage[1:], passage[2:])]  # fault

    def rarest(self, words: list[int]) -> list[int]:
        return sorted(words, key=self.counts.__getitem__)[:KEEP]  # fault

    def forward(self, passages: Tensor) -> Tensor:
        rows = [self.rarest(self.words(passage)) for passage in passages.tolist()]
        return torch.tensor(rows, device=passages.device)


class InTorch(nn.Module):
    """The same of all passages at once, where the model is."""

    def __init__(self, counts: Tensor) -> None:
        super().__init__()
        self.register_buffer("counts", counts)

    def forward(self, passages: Tensor) -> Tensor:
        words = words_of(passages)
        rarest = self.counts[words].argsort(dim=1, stable=True)[:, :KEEP]
        return words.gather(1, rarest)


class Classifier(nn.Module):
    def __init__(self, rarest: nn.Module, width: int) -> None:
        super().__init__()
        self.rarest = rarest
        self.embedding = nn.Embedding(WORDS, width)
        self.mlp = nn.Sequential(nn.Linear(width, 4 * width), nn.GELU(), nn.Linear(4 * width, width))
        self.head = nn.Linear(width, len(KINDS))

    def forward(self, passages: Tensor) -> Tensor:
        return self.head(self.mlp(self.embedding(self.rarest(passages))).mean(dim=1))


def words_of(texts: Tensor) -> Tensor:
    x = texts.long()
    return (x[..., :-2] * 961 + x[..., 1:-1] * 31 + x[..., 2:]) % WORDS


def own_text(pattern: str) -> Tensor:
    files = sorted(path for path in ROOT.glob(pattern) if path.is_file())
    return torch.frombuffer(bytearray(b"\n".join(path.read_bytes() for path in files)), dtype=torch.uint8)


class Passages:
    """Passages of random places of random kinds, a batch at once."""

    def __init__(self) -> None:
        texts = [own_text(pattern) for pattern in KINDS]
        self.text = torch.cat(texts)
        self.places = torch.tensor([len(text) - LENGTH for text in texts])
        self.starts = torch.tensor([0, *(len(text) for text in texts[:-1])]).cumsum(dim=0)

    def batch(self, size: int) -> tuple[Tensor, Tensor]:
        kinds = torch.randint(len(KINDS), (size,))
        starts = self.starts[kinds] + (torch.rand(size) * self.places[kinds]).long()
        return self.text[starts[:, None] + torch.arange(LENGTH)], kinds


def main() -> None:
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("form", choices=("before", "after"))
    options.add_argument("--steps", type=int, default=50)
    options.add_argument("--batch", type=int, default=256)
    options.add_argument("--width", type=int, default=64)
    args = options.parse_args()

    torch.manual_seed(0)
    device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
    data = Passages()
    counts = words_of(data.text).bincount(minlength=WORDS)
    model = Classifier(InPython(counts) if args.form == "before" else InTorch(counts), args.width).to(device)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9)

    moments = [time.perf_counter()]
    for step in range(args.steps):
        passages, kinds = data.batch(args.batch)
        loss = F.cross_entropy(model(passages.to(device)), kinds.to(device))
        optimizer.zero_grad(set_to_none=True)
        loss.backward()
        optimizer.step()
        moments.append(time.perf_counter())
        if step % (args.steps // 8 or 1) == 0 or step == args.steps - 1:
            print(f"step {step:4d}  loss {loss.item():.4f}")
    print(f"{args.steps} steps in {moments[-1] - moments[0]:.1f} s")
    print(f"step_ms {1e3 * torch.tensor(moments, dtype=torch.float64).diff()[args.steps // 10 :].median():.3f}")


if __name__ == "__main__":
    main()
