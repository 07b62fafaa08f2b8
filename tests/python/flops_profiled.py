"""What the tests of stepscope.flops share: a small model, and that nothing stays behind after a test."""

from __future__ import annotations

import gc
import sys
from collections.abc import Iterator
from typing import Any

import pytest
import torch
from torch import nn

from stepscope._recording import _hooks

PATCHED = ("linear", "conv2d", "relu", "softmax", "embedding", "scaled_dot_product_attention", "layer_norm")


class Net(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.inner = nn.Sequential(nn.Linear(8, 8), nn.ReLU())
        self.absent = None
        self.register_module("none", None)

    def forward(self, x: torch.Tensor, fails: bool = False) -> torch.Tensor:
        y = self.inner(x)
        if fails:
            raise KeyError("of the model")
        return y


X = torch.ones(4, 8)
FLOP = 2 * 4 * 8 * 8


def functions() -> list[Any]:
    of_tensors = [torch.matmul, torch.bmm, torch.addmm, torch.einsum, torch.Tensor.matmul, torch.Tensor.__matmul__]
    return [getattr(nn.functional, name) for name in PATCHED] + of_tensors


@pytest.fixture(autouse=True)
def nothing_stays_behind() -> Iterator[None]:
    """After each test: no profiler, no hook of ours, nothing of torch in another place."""
    hooks, before, forward = _hooks(), functions(), nn.Module.__call__
    yield
    gc.collect()
    assert hooks.flop_measure.moments.measured_by is None
    assert not hooks.flop_measure.other_profiler.runs()
    assert sys.modules["_stepscope_hooks.module_hooks"]._living == {}
    assert functions() == before and nn.Module.__call__ is forward


def is_bare(model: Any) -> bool:
    hooks = ("_forward_hooks", "_forward_pre_hooks", "_forward_hooks_always_called")
    ours = ("extra_repr", "__flops__", "__macs__", "__params__", "__duration__")
    return not any(getattr(one, name) for one in model.modules() for name in hooks) and not any(
        name in vars(one) for one in model.modules() for name in ours
    )
