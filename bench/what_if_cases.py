"""Small training programs in two forms, slow and fixed, and the change that tells them apart (bench/what_if.py).

Each maker gives a step that takes `slow`; both forms share the model, so that one process can alternate them.
"""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass

import torch
from torch.profiler import record_function
from torch.utils.data import DataLoader, Dataset

Step = Callable[[bool], None]


@dataclass
class Case:
    make: Callable[[], Step]
    changes: list[str]  # options of stepscope what-if
    exact: bool = False  # an injected slow-down: what it adds is known


def trainer(extra: Callable[[bool, torch.Tensor], None], batches: Iterator[torch.Tensor] | None = None) -> Step:
    """A step of an MLP with `extra` in it."""
    torch.manual_seed(0)
    model = torch.nn.Sequential(*[torch.nn.Linear(384, 384) for _ in range(6)])
    optimizer = torch.optim.AdamW(model.parameters())
    batch = torch.randn(128, 384)

    def step(slow: bool) -> None:
        x = next(batches) if batches else batch
        optimizer.zero_grad()
        out = model(x)
        extra(slow, out.detach())
        out.square().mean().backward()
        optimizer.step()

    step.model = model  # type: ignore[attr-defined]
    return step


def spin(seconds: float) -> None:
    until = time.process_time() + seconds
    while time.process_time() < until:
        pass


def when_slow(work: Callable[[torch.Tensor], object]) -> Callable[[], Step]:
    def extra(slow: bool, out: torch.Tensor) -> None:
        if slow:
            work(out)

    return lambda: trainer(extra)


def collate(_: torch.Tensor) -> None:
    with record_function("collate"):
        rows = [[float(i * j % 7) for j in range(96)] for i in range(96)]
        torch.tensor(rows)


def write_log(out: torch.Tensor) -> None:
    with record_function("write_log"):
        json.dumps([round(value, 4) for value in out[:12].flatten().tolist()])


def norms() -> Step:
    def extra(slow: bool, _: torch.Tensor) -> None:
        if not slow:
            return
        with record_function("norms"):
            for _ in range(6):
                for parameter in step.model.parameters():  # type: ignore[attr-defined]
                    parameter.detach().norm().item()

    step = trainer(extra)
    return step


class Slow(Dataset[torch.Tensor]):  # type: ignore[misc]
    seconds = 0.004

    def __len__(self) -> int:
        return 1 << 30

    def __getitem__(self, index: int) -> torch.Tensor:
        if Loading.slow:
            spin(self.seconds)
        return torch.full((128, 384), float(index % 5))


class Loading:
    slow = True


def loading() -> Step:
    batches = iter(DataLoader(Slow(), batch_size=None))
    inner = trainer(lambda slow, out: None, batches)

    def step(slow: bool) -> None:
        Loading.slow = slow
        inner(slow)

    return step


def slower_call() -> Step:
    """One range three times as slow as it is, by a spin of known length."""

    def extra(slow: bool, _: torch.Tensor) -> None:
        with record_function("decode"):
            spin(0.006 if slow else 0.002)

    return trainer(extra)


def spun_kernel() -> Step:
    def extra(slow: bool, _: torch.Tensor) -> None:
        with record_function("tokenize"):
            spin(0.005 if slow else 0.0025)

    return trainer(extra)


def redundant_layers() -> Step:
    torch.manual_seed(1)
    teacher = torch.nn.Sequential(*[torch.nn.Linear(384, 384) for _ in range(6)])

    def extra(slow: bool, out: torch.Tensor) -> None:
        if slow:
            with record_function("teacher"), torch.no_grad():
                teacher(out)

    return trainer(extra)


def double_precision() -> Step:
    torch.manual_seed(1)
    single = torch.randn(384, 384)
    double = single.double()

    def extra(slow: bool, out: torch.Tensor) -> None:
        if slow:
            torch.bmm(out.double()[None], double[None])

    return trainer(extra)


CASES: dict[str, Case] = {
    "sort": Case(when_slow(lambda out: out.sort()), ["--remove", "op:aten::sort"]),
    "topk": Case(when_slow(lambda out: out.topk(50)), ["--remove", "op:aten::topk"]),
    "clones": Case(when_slow(lambda out: [out.clone() for _ in range(60)]), ["--remove", "op:aten::clone"]),
    "distances": Case(when_slow(lambda out: torch.cdist(out, out, p=1.0)), ["--remove", "op:aten::cdist"]),
    "cumsum": Case(when_slow(lambda out: [out.cumsum(0) for _ in range(20)]), ["--remove", "op:aten::cumsum"]),
    "softmax": Case(
        when_slow(lambda out: [torch.softmax(out, 1) for _ in range(40)]), ["--remove", "op:aten::softmax"]
    ),
    "collate": Case(when_slow(collate), ["--remove", "host:collate"]),
    "log": Case(when_slow(write_log), ["--remove", "host:write_log"]),
    "norms": Case(norms, ["--remove", "host:norms"]),
    "data loader": Case(loading, ["--dataloader", "0"]),
    "teacher": Case(redundant_layers, ["--remove", "host:teacher"]),
    "double": Case(double_precision, ["--remove", "op:aten::bmm", "--remove", "op:aten::to"]),
    "injected, 3 times": Case(slower_call, ["--move", "host:decode=2ms"], exact=True),
    "injected, twice": Case(spun_kernel, ["--scale", "host:tokenize=0.5"], exact=True),
}
