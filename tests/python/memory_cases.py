"""Nine small models that element counting gets wrong, and the truth of what autograd keeps of each.

The truth is taken without any profiler: all storages that one forward pass saves for its backward pass, parameters'
own left out. Views, ties and what is saved twice are one storage there, as in memory.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch import nn
from torch.utils.checkpoint import checkpoint


class Attention(nn.Module):
    """Its scores and weights are made by functions: no module below sees them."""

    def __init__(self, width: int) -> None:
        super().__init__()
        self.project, self.out = nn.Linear(width, 3 * width), nn.Linear(width, width)

    def forward(self, x: Any) -> Any:
        q, k, v = self.project(x).chunk(3, -1)
        return self.out((q @ k.transpose(-2, -1)).softmax(-1) @ v)


class Checkpointed(nn.Module):
    def __init__(self, reentrant: bool = False) -> None:
        super().__init__()
        self.block = nn.Sequential(nn.Linear(512, 512), nn.ReLU(), nn.Linear(512, 512))
        self.reentrant = reentrant

    def forward(self, x: Any) -> Any:
        return checkpoint(self.block, x, use_reentrant=self.reentrant)


class Autocast(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.layers = nn.Sequential(nn.Linear(512, 512), nn.GELU(), nn.Linear(512, 512))

    def forward(self, x: Any) -> Any:
        with torch.autocast("cpu", dtype=torch.bfloat16):
            return self.layers(x)


def _tied() -> nn.Module:
    model = nn.Sequential(nn.Embedding(1000, 64), nn.Linear(64, 1000, bias=False))
    model[1].weight = model[0].weight
    return model


def _shared() -> nn.Module:
    one = nn.Linear(512, 512)
    return nn.Sequential(one, one, one)


def _block(middle: nn.Module, *more: nn.Module) -> nn.Module:
    return nn.Sequential(nn.Linear(512, 512), middle, *more, nn.Linear(512, 512))


CASES: dict[str, tuple[Callable[[], nn.Module], Callable[[], Any]]] = {
    "mlp": (lambda: _block(nn.ReLU()), lambda: torch.randn(128, 512)),
    "in-place ReLU": (lambda: _block(nn.ReLU(inplace=True)), lambda: torch.randn(128, 512)),
    "views": (lambda: _block(nn.Identity(), nn.Flatten(), nn.Identity()), lambda: torch.randn(128, 512)),
    "functional attention": (lambda: Attention(64), lambda: torch.randn(4, 512, 64)),
    "shared module": (_shared, lambda: torch.randn(128, 512)),
    "tied weights": (_tied, lambda: torch.randint(0, 1000, (8, 32))),
    "LSTM, tuple output": (lambda: nn.LSTM(32, 32, batch_first=True), lambda: torch.randn(2, 8, 32)),
    "checkpointed block": (Checkpointed, lambda: torch.randn(128, 512).requires_grad_()),
    "bf16 autocast": (Autocast, lambda: torch.randn(128, 512)),
}


def make(name: str) -> tuple[nn.Module, Any]:
    torch.manual_seed(0)
    model, batch = CASES[name]
    return model(), batch()


def scalar(output: Any) -> Any:
    return (output[0] if isinstance(output, tuple) else output).float().square().mean()


def kept_bytes(model: nn.Module, forward: Callable[[], Any]) -> int:
    """The truth."""
    storages: dict[int, int] = {}

    def pack(tensor: Any) -> Any:
        storages[tensor.untyped_storage().data_ptr()] = tensor.untyped_storage().nbytes()
        return tensor.detach()

    with torch.autograd.graph.saved_tensors_hooks(pack, lambda tensor: tensor):
        output = forward()
    own = {parameter.untyped_storage().data_ptr() for parameter in model.parameters()}
    found = sum(size for address, size in storages.items() if address not in own)
    del output
    return found
