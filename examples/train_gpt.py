"""A small GPT on bytes, trained for some seconds on the text of this repository: plain torch, nothing else.

    stepscope run -- python examples/train_gpt.py

It knows nothing of stepscope. It trains on the GPU where torch sees one, else on the CPU with a smaller model.
"""

from __future__ import annotations

import argparse
import time
from pathlib import Path

import torch
from torch import Tensor, nn
from torch.nn import functional as F
from torch.utils.data import DataLoader, Dataset

ROOT = Path(__file__).resolve().parent.parent
TEXTS = ("*.md", "docs/**/*.md", "src/**/*.h", "src/**/*.cc", "python/**/*.py", "examples/*.py")


class Bytes(Dataset):
    """Random windows of a text, and the same windows one byte further."""

    def __init__(self, text: bytes, length: int, samples: int) -> None:
        self.text = torch.frombuffer(bytearray(text), dtype=torch.uint8)
        self.length = length
        self.samples = samples

    def __len__(self) -> int:
        return self.samples

    def __getitem__(self, index: int) -> tuple[Tensor, Tensor]:
        generator = torch.Generator().manual_seed(index)
        start = int(torch.randint(len(self.text) - self.length - 1, (1,), generator=generator))
        window = self.text[start : start + self.length + 1].long()
        return window[:-1], window[1:]


class Attention(nn.Module):
    def __init__(self, width: int, heads: int) -> None:
        super().__init__()
        self.heads = heads
        self.qkv = nn.Linear(width, 3 * width)
        self.out = nn.Linear(width, width)

    def forward(self, x: Tensor) -> Tensor:
        batch, length, width = x.shape
        q, k, v = self.qkv(x).view(batch, length, 3, self.heads, width // self.heads).permute(2, 0, 3, 1, 4)
        y = F.scaled_dot_product_attention(q, k, v, is_causal=True)
        return self.out(y.transpose(1, 2).reshape(batch, length, width))


class Block(nn.Module):
    def __init__(self, width: int, heads: int) -> None:
        super().__init__()
        self.attention_norm = nn.LayerNorm(width)
        self.attention = Attention(width, heads)
        self.mlp_norm = nn.LayerNorm(width)
        self.mlp = nn.Sequential(nn.Linear(width, 4 * width), nn.GELU(), nn.Linear(4 * width, width))

    def forward(self, x: Tensor) -> Tensor:
        x = x + self.attention(self.attention_norm(x))
        return x + self.mlp(self.mlp_norm(x))


class GPT(nn.Module):
    def __init__(self, width: int, heads: int, layers: int, length: int) -> None:
        super().__init__()
        self.tokens = nn.Embedding(256, width)
        self.positions = nn.Embedding(length, width)
        self.blocks = nn.Sequential(*(Block(width, heads) for _ in range(layers)))
        self.norm = nn.LayerNorm(width)
        self.head = nn.Linear(width, 256, bias=False)

    def forward(self, x: Tensor) -> Tensor:
        positions = torch.arange(x.shape[1], device=x.device)
        return self.head(self.norm(self.blocks(self.tokens(x) + self.positions(positions))))


def own_text() -> bytes:
    files = sorted({path for pattern in TEXTS for path in ROOT.glob(pattern) if path.is_file()})
    return b"\n".join(path.read_bytes() for path in files)


def main() -> None:
    on_gpu = torch.cuda.is_available()
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("--steps", type=int, default=300 if on_gpu else 40)
    options.add_argument("--width", type=int, default=512 if on_gpu else 128)
    options.add_argument("--layers", type=int, default=8 if on_gpu else 4)
    options.add_argument("--length", type=int, default=256 if on_gpu else 64)
    options.add_argument("--batch", type=int, default=32 if on_gpu else 8)
    options.add_argument("--workers", type=int, default=2 if on_gpu else 0, help="processes that load data")
    args = options.parse_args()

    torch.manual_seed(0)
    device = torch.device("cuda" if on_gpu else "cpu")
    text = own_text()
    loader = DataLoader(
        Bytes(text, args.length, args.steps * args.batch), args.batch, num_workers=args.workers, pin_memory=on_gpu
    )
    model = GPT(args.width, heads=args.width // 32, layers=args.layers, length=args.length).to(device)
    optimizer = torch.optim.AdamW(model.parameters(), lr=2e-3 if not on_gpu else 6e-4)
    parameters = sum(p.numel() for p in model.parameters())
    print(f"{parameters / 1e6:.1f} M parameters, {len(text) / 1e3:.0f} kB of text, on {device.type}")

    start = time.perf_counter()
    for step, (inputs, targets) in enumerate(loader):
        logits = model(inputs.to(device, non_blocking=True))
        loss = F.cross_entropy(logits.flatten(0, 1), targets.to(device, non_blocking=True).flatten())
        optimizer.zero_grad(set_to_none=True)
        loss.backward()
        optimizer.step()
        if step % (args.steps // 8 or 1) == 0 or step == args.steps - 1:
            print(f"step {step:4d}  loss {loss.item():.3f}")
    print(f"{args.steps} steps in {time.perf_counter() - start:.1f} s")


if __name__ == "__main__":
    main()
