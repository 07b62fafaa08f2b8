"""stepscope.flops.counts: what a function's own kernels take, said by its author, in the answers flops and roofline."""

from __future__ import annotations

import importlib.util
from pathlib import Path
from typing import Any

import pytest

if importlib.util.find_spec("torch") is None:
    pytest.skip("torch is not installed", allow_module_level=True)

import torch
from torch.profiler import ProfilerActivity, profile, record_function

import stepscope
from stepscope.flops import FlopsProfiler, counts

pytestmark = pytest.mark.usefixtures("one_thread")


class Doubled(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, x: torch.Tensor) -> torch.Tensor:
        return x * 2

    @staticmethod
    def backward(ctx: Any, grad: torch.Tensor) -> torch.Tensor:
        return grad * 2


@counts(
    flop=lambda x, times=1: 100 * times * x.numel(),
    backward=lambda x, times=1: 250 * times * x.numel(),
    bytes=lambda x, times=1: 8 * x.numel(),
)
def kernel(x: torch.Tensor, times: int = 1) -> torch.Tensor:
    out: torch.Tensor = Doubled.apply(x)
    return out


def recorded(step: Any, tmp_path: Path) -> Path:
    with profile(activities=[ProfilerActivity.CPU], record_shapes=True) as profiler, record_function("ProfilerStep#0"):
        step()
    path = tmp_path / "trace.json"
    profiler.export_chrome_trace(str(path))
    return path


def counted(path: Path) -> Any:
    return sum(row["flop"] for row in stepscope.open(str(path)).flops().tables["by_part"].to_pylist())


def names(path: Path) -> list[str]:
    return [row["name"] for row in stepscope.open(str(path)).query("select distinct name from slices").to_pylist()]


def test_forward_backward_and_bytes_are_as_said(tmp_path: Path) -> None:
    x = torch.rand(32, 64, requires_grad=True)
    path = recorded(lambda: kernel(x, times=3).sum().backward(), tmp_path)
    run = stepscope.open(str(path))
    assert counted(path) == (300 + 750) * x.numel()
    rows = run.roofline().tables["ops"].to_pylist()
    said = {row["op"]: (row["flop"], row["bytes"]) for row in rows if row["family"] == "custom"}
    assert said == {
        "kernel": (300 * x.numel(), 8 * x.numel()),
        "kernel (backward)": (750 * x.numel(), None),
    }


def test_what_is_not_said_of_backward_is_counted_by_its_operators(tmp_path: Path) -> None:
    weight, x = torch.rand(16, 8, requires_grad=True), torch.rand(4, 8)

    class Layer:
        @counts(flop=1000, type="bfloat16", name="layer")
        def __call__(self, x: torch.Tensor) -> torch.Tensor:
            return torch.nn.functional.linear(x, weight)

    path = recorded(lambda: Layer()(x).sum().backward(), tmp_path)
    assert "layer [flop=1000 type=bfloat16]" in names(path)
    assert counted(path) == 1000 + 2 * 4 * 8 * 16


@pytest.mark.parametrize("amount", [lambda x: x.nothing, lambda x: -1, lambda x: "a few", lambda x: float("nan")])
def test_an_amount_that_fails_is_named_and_disturbs_nothing(amount: Any, tmp_path: Path) -> None:
    weight, x = torch.rand(8, 8), torch.rand(4, 8)

    @counts(flop=amount, name="failing")
    def failing(x: torch.Tensor) -> torch.Tensor:
        return x @ weight

    path = recorded(lambda: failing(x), tmp_path)
    assert [name for name in names(path) if name.startswith("failing [not counted: ")]
    assert counted(path) == 2 * 4 * 8 * 8


@pytest.mark.parametrize("amount", ["a few", -1, float("nan"), 2.0**70])
def test_an_amount_that_is_none_is_refused_at_once(amount: Any) -> None:
    with pytest.raises(ValueError, match=r"float|flop"):
        counts(flop=amount)


def test_the_report_says_what_it_leaves_out(capsys: pytest.CaptureFixture[str]) -> None:
    @counts(flop=lambda x: x.nothing, name="failing")
    def failing(x: torch.Tensor) -> torch.Tensor:
        return torch.relu(x)

    class Model(torch.nn.Module):
        def forward(self, x: torch.Tensor) -> torch.Tensor:
            return failing(x)

    model = Model()
    with FlopsProfiler(model) as profiler:
        model(torch.rand(4, 8))
        profiler.stop_profile()
        profiler.print_model_profile()
    said = capsys.readouterr().out.splitlines()
    assert [line for line in said if line.startswith("not counted: failing [not counted: AttributeError: ")]
    (share,) = [line for line in said if line.startswith("not counted: operators with ")]
    assert "% of the time: " in share and " (no formula) " in share


def test_the_function_stays_itself_where_nothing_records() -> None:
    asked: list[float] = []

    def ask(x: float) -> float:
        asked.append(x)
        return x

    @counts(flop=ask)
    def plain(x: float) -> float:
        return x + 1

    assert plain(1) == 2
    assert not asked
    assert kernel.__name__ == "kernel"
    nothing: tuple[torch.Tensor, ...] = ()
    with pytest.raises(TypeError):
        kernel(*nothing)
    with profile(activities=[ProfilerActivity.CPU]), pytest.raises(TypeError, match="argument"):
        kernel(*nothing)


def test_a_compiled_graph_is_not_broken() -> None:
    @counts(flop=10)
    def inner(x: torch.Tensor) -> torch.Tensor:
        return x * 2

    compiled = torch.compile(lambda x: inner(x) + 1, backend="eager", fullgraph=True)
    with profile(activities=[ProfilerActivity.CPU]):
        assert torch.equal(compiled(torch.ones(3)), torch.full((3,), 3.0))


def test_the_flops_profiler_counts_it_too() -> None:
    class Model(torch.nn.Module):
        def forward(self, x: torch.Tensor) -> torch.Tensor:
            return kernel(x)

    model, x = Model(), torch.rand(4, 8)
    profiler = FlopsProfiler(model)
    profiler.start_profile()
    model(x)
    profiler.stop_profile()
    assert profiler.get_total_flops() == 100 * x.numel()
    profiler.end_profile()
