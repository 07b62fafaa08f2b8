"""Small models whose FLOPs are known by hand; `flops_models.py` says how large they are and what each costs."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional as F
from torch.nn.attention import SDPBackend, sdpa_kernel
from torch.utils.checkpoint import checkpoint


class Cnn(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.c1 = nn.Conv2d(3, 64, 11, stride=4, padding=2)
        self.c2 = nn.Conv2d(64, 192, 5, padding=2)
        self.c3 = nn.Conv2d(192, 256, 3, padding=1)
        self.pool = nn.MaxPool2d(3, 2)
        self.fc = nn.Linear(256 * 7 * 7, 100)

    def forward(self, x: Tensor) -> Tensor:
        x = self.pool(F.relu(self.c1(x)))
        x = self.pool(F.relu(self.c2(x)))
        return self.fc(F.relu(self.c3(x)).flatten(1))


class Block(nn.Module):
    """A transformer block; `attention` says how scaled_dot_product_attention is called."""

    def __init__(self, hidden: int, heads: int, kv_heads: int, attention: str) -> None:
        super().__init__()
        self.heads, self.kv_heads, self.attention = heads, kv_heads, attention
        self.q, self.o = nn.Linear(hidden, hidden), nn.Linear(hidden, hidden)
        self.kv = nn.Linear(hidden, 2 * kv_heads * (hidden // heads))
        self.up, self.down = nn.Linear(hidden, 4 * hidden), nn.Linear(4 * hidden, hidden)
        self.norm1, self.norm2 = nn.LayerNorm(hidden), nn.LayerNorm(hidden)

    def attend(self, q: Tensor, k: Tensor, v: Tensor) -> Tensor:
        if self.attention == "math":
            with sdpa_kernel(SDPBackend.MATH):
                return F.scaled_dot_product_attention(q, k, v, is_causal=True)
        if self.attention == "keywords":
            return F.scaled_dot_product_attention(query=q, key=k, value=v, is_causal=True)
        return F.scaled_dot_product_attention(q, k, v, is_causal=True, enable_gqa=self.kv_heads != self.heads)

    def forward(self, x: Tensor) -> Tensor:
        batch, time, hidden = x.shape
        y = self.norm1(x)
        q = self.q(y).view(batch, time, self.heads, -1).transpose(1, 2)
        k, v = (part.reshape(batch, time, self.kv_heads, -1).transpose(1, 2) for part in self.kv(y).chunk(2, -1))
        x = x + self.o(self.attend(q, k, v).transpose(1, 2).reshape(batch, time, hidden))
        return x + self.down(F.gelu(self.up(self.norm2(x))))


class Gpt(nn.Module):
    def __init__(
        self, hidden: int, heads: int, kv_heads: int, layers: int, words: int, attention: str, checkpointed: bool
    ) -> None:
        super().__init__()
        self.embed = nn.Embedding(words, hidden)
        self.blocks = nn.ModuleList(Block(hidden, heads, kv_heads, attention) for _ in range(layers))
        self.head = nn.Linear(hidden, words, bias=False)
        self.checkpointed = checkpointed

    def forward(self, ids: Tensor) -> Tensor:
        x = self.embed(ids)
        for block in self.blocks:
            x = checkpoint(block, x, use_reentrant=False) if self.checkpointed else block(x)
        return self.head(x)


class OwnMatmul(torch.autograd.Function):
    @staticmethod
    def forward(context: Any, a: Tensor, b: Tensor) -> Tensor:
        context.save_for_backward(a, b)
        return a @ b

    @staticmethod
    def backward(context: Any, grad: Tensor) -> tuple[Tensor, Tensor]:
        a, b = context.saved_tensors
        return grad @ b.mT, a.mT @ grad


class Products(nn.Module):
    """Every way to write a product, and one whose backward is our own."""

    def __init__(self) -> None:
        super().__init__()
        self.batch = nn.Parameter(torch.randn(4, 32, 32))
        self.wide = nn.Parameter(torch.randn(32, 48))
        self.vector = nn.Parameter(torch.randn(48))

    def forward(self, x: Tensor) -> Tensor:
        y = torch.einsum("bti,bio->bto", x, self.batch)
        y = torch.bmm(y, self.batch)
        y = y @ self.batch[0]
        return OwnMatmul.apply(y.reshape(-1, 32), self.wide) @ self.vector


class Experts(nn.Module):
    """Top-2 of 4; which expert sees how many tokens depends on the data, their sum does not."""

    def __init__(self, hidden: int, experts: int, chosen: int) -> None:
        super().__init__()
        self.router = nn.Linear(hidden, experts, bias=False)
        self.chosen = chosen
        self.experts = nn.ModuleList(
            nn.Sequential(nn.Linear(hidden, 4 * hidden), nn.GELU(), nn.Linear(4 * hidden, hidden))
            for _ in range(experts)
        )

    def forward(self, x: Tensor) -> Tensor:
        weight, index = self.router(x).softmax(-1).topk(self.chosen, -1)
        out = torch.zeros_like(x)
        for number, expert in enumerate(self.experts):
            token, slot = (index == number).nonzero(as_tuple=True)
            out = out.index_add(0, token, expert(x[token]) * weight[token, slot, None])
        return out


class GroupedProducts(nn.Module):
    def __init__(self, groups: int, inner: int, outer: int) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.randn(groups, inner, outer, dtype=torch.bfloat16))

    def forward(self, x: Tensor, ends: Tensor) -> Tensor:
        return torch._grouped_mm(x, self.weight, offs=ends)


class OneLinearThrice(nn.Module):
    def __init__(self, width: int) -> None:
        super().__init__()
        self.a = nn.Linear(width, width)
        self.b = self.c = self.a

    def forward(self, x: Tensor) -> Tensor:
        return self.c(self.b(self.a(x)))


class SelfAttention(nn.Module):
    def __init__(self, hidden: int, heads: int) -> None:
        super().__init__()
        self.attention = nn.MultiheadAttention(hidden, heads, batch_first=True)

    def forward(self, x: Tensor) -> Tensor:
        return self.attention(x, x, x, need_weights=False)[0]


class Lstm(nn.Module):
    def __init__(self, width: int, hidden: int) -> None:
        super().__init__()
        self.lstm = nn.LSTM(width, hidden, num_layers=2, batch_first=True)

    def forward(self, x: Tensor) -> Tensor:
        return self.lstm(x)[0]


class Outside(torch.autograd.Function):
    """A product that torch does not see."""

    @staticmethod
    def forward(ctx: Any, data: Any, weight: Any) -> Any:
        ctx.save_for_backward(data, weight)
        return torch.from_numpy(data.detach().numpy() @ weight.detach().numpy().T)

    @staticmethod
    def backward(ctx: Any, gradient: Any) -> Any:
        data, weight = (one.detach().numpy() for one in ctx.saved_tensors)
        return torch.from_numpy(gradient.numpy() @ weight), torch.from_numpy(gradient.numpy().T @ data)


class OutsideNet(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.first = nn.Linear(16, 32, bias=False)
        self.weight = nn.Parameter(torch.rand(8, 32))

    def forward(self, data: Any) -> Any:
        with torch.profiler.record_function("said [flop=1000 backward_flop=2500 bytes=64 type=float32]"):
            hidden = self.first(data)
        return Outside.apply(hidden, self.weight)
