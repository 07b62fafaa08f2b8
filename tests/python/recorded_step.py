"""A real training on the CPU whose tensors are allocated in the modeled allocator as a GPU's would be.

Every new storage that an operator of PyTorch makes is an allocation with the Python stack that led to it; it is freed
when PyTorch lets go of the storage. So stacks, sizes and lifetimes are real. What each allocation is for is taken from
the model itself (parameters, their gradients, the optimizer's state, what autograd saved): what tests compare with.
"""

from __future__ import annotations

import contextlib
import sys
import weakref
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import torch
from allocator import Allocator
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_map_only

OWN = (str(Path(__file__)), "torch/utils/_python_dispatch.py", "torch/utils/_stats.py", "torch/utils/_pytree.py")


def python_stack() -> list[dict[str, Any]]:
    """As torch records it with stacks="python": innermost first."""
    frames: list[dict[str, Any]] = []
    frame = sys._getframe(1)
    while frame is not None:
        code = frame.f_code
        if not code.co_filename.endswith(OWN) or code.co_name in ("train", "make_model", "batches", "forward"):
            frames.append({"filename": code.co_filename, "line": frame.f_lineno, "name": code.co_name})
        frame = frame.f_back  # type: ignore[assignment]
    return frames


class Recording(TorchDispatchMode):  # type: ignore[misc]
    """`like_gpu`: the backward pass has no Python stack, as on a GPU, where it runs on a thread of its own."""

    def __init__(self, allocator: Allocator, *, like_gpu: bool = True, scale: int = 16) -> None:
        super().__init__()
        self.allocator, self.like_gpu, self.scale = allocator, like_gpu, scale
        self.places: dict[int, tuple[int, int]] = {}  # of living storages: address and number of the allocation's event
        self.truth: dict[int, str] = {}  # by number of the allocation's event
        self.in_backward = False
        self.ended = False
        self.at_end: dict[str, Any] = {}
        self.alive_at_end: set[int] = set()  # numbers of the events that allocated it

    def end(self) -> None:
        self.ended = True
        self.at_end = self.allocator.snapshot()
        self.alive_at_end = {event for _, event in self.places.values()}

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        out = func(*args, **(kwargs or {}))
        tree_map_only(torch.Tensor, self.track, out)
        return out

    def stack(self) -> list[dict[str, Any]]:
        return [] if self.in_backward and self.like_gpu else python_stack()

    def track(self, tensor: torch.Tensor) -> torch.Tensor:
        storage = tensor.untyped_storage()
        key = storage._cdata
        if key not in self.places and storage.nbytes() > 0:
            address = self.allocator.malloc(storage.nbytes() * self.scale, self.stack())
            self.places[key] = (address, len(self.allocator.events) - 1)
            weakref.finalize(storage, self.gone, key)
        return tensor

    def gone(self, key: int) -> None:
        address, _ = self.places.pop(key)
        if not self.ended:
            self.allocator.free(address, self.stack())

    # ---- what is known of allocations ----

    def know(self, tensors: Any, what: str) -> None:
        for tensor in tensors:
            if tensor is not None and tensor.untyped_storage()._cdata in self.places:
                self.truth.setdefault(self.places[tensor.untyped_storage()._cdata][1], what)

    def saved(self, tensor: torch.Tensor) -> torch.Tensor:
        self.know([tensor], "activation")
        return tensor

    @contextlib.contextmanager
    def range(self, name: str) -> Iterator[None]:
        self.allocator.mark(name, "START")
        yield
        self.allocator.mark(name, "END")


class Block(torch.nn.Module):  # type: ignore[misc]
    def __init__(self, width: int) -> None:
        super().__init__()
        self.norm = torch.nn.LayerNorm(width)
        self.up = torch.nn.Linear(width, 4 * width)
        self.down = torch.nn.Linear(4 * width, width)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return x + self.down(torch.nn.functional.gelu(self.up(self.norm(x))))


def make_model(width: int, layers: int) -> torch.nn.Module:
    model = torch.nn.Sequential(*[Block(width) for _ in range(layers)], torch.nn.Linear(width, width))
    return model.to(torch.float64).to(torch.float32)  # moved, as to a device


def batches(rows: int, width: int) -> Any:
    data = torch.utils.data.TensorDataset(torch.randn(64, rows, width))
    return torch.utils.data.DataLoader(data, batch_size=8)


def train(
    recording: Recording,
    *,
    steps: int = 4,
    width: int = 128,
    layers: int = 3,
    rows: int = 64,
    keep: list[torch.Tensor] | None = None,
    ranges: bool = True,
) -> torch.nn.Module:
    """`keep`: gets the output of each step, as in jobs that leak. What is there at the end is in recording.at_end."""
    torch.manual_seed(0)

    def mark(name: str) -> Any:
        return recording.range(name) if ranges else contextlib.nullcontext()

    loader = iter(batches(rows, width))
    with recording:
        model = make_model(width, layers)
        recording.know(model.parameters(), "parameter")
        optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3, foreach=False)
        for _ in range(steps):
            (batch,) = next(loader)
            recording.know([batch], "input")
            with mark("forward"), torch.autograd.graph.saved_tensors_hooks(recording.saved, lambda tensor: tensor):
                out = model(batch)
            loss = (out**2).mean()
            with mark("backward"):
                recording.in_backward = True
                loss.backward()
                recording.in_backward = False
            recording.know((parameter.grad for parameter in model.parameters()), "gradient")
            with mark("Optimizer.step#AdamW.step"):
                optimizer.step()
            for state in optimizer.state.values():
                recording.know((value for value in state.values() if torch.is_tensor(value)), "optimizer state")
            with mark("Optimizer.zero_grad#AdamW.zero_grad"):
                optimizer.zero_grad()
            if keep is not None:
                keep.append(out)
            del out, loss, batch
        recording.end()
    return model
