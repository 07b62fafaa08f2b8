"""The FLOPs in flops_models.py are right: two other ways to count agree with them, none of them ours.

torch's FlopCounterMode knows most operators; where it is wrong (groups, and three kinds it does not know), the same
numbers come from it for the same network written with operators that it knows, or from loops that multiply one by one.
"""

from __future__ import annotations

import importlib.util
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

if importlib.util.find_spec("torch") is None:
    pytest.skip("torch is not installed", allow_module_level=True)

import flops_models as models
import torch
from flops_models import BY_NAME, ROWS, Job, Row, record_step
from flops_of_trace import flops_of_trace, operators
from torch import Tensor, nn
from torch.nn import functional as F
from torch.utils.flop_counter import FlopCounterMode, sdpa_backward_flop_count, sdpa_flop_count

FUSED_FORWARD = torch.ops.aten._scaled_dot_product_flash_attention_for_cpu
FUSED_BACKWARD = torch.ops.aten._scaled_dot_product_flash_attention_for_cpu_backward
# torch 2.13 counts the fused attention of CUDA, by these formulas, and forgets the CPU's.
FUSED = {
    FUSED_FORWARD: lambda q, k, v, *_, **__: sdpa_flop_count(q, k, v),
    FUSED_BACKWARD: lambda dy, q, k, v, *_, **__: sdpa_backward_flop_count(dy, q, k, v),
}
WRONG_BACKWARD = {"grouped_conv", "conv_transpose"}  # groups times too many for the weight (pytorch#183405)
UNKNOWN = {"products", "grouped_mm", "lstm"}  # no formula for mv, _grouped_mm, recurrent layers
KNOWN = [row for row in ROWS if row.name not in UNKNOWN]


def job(row: Row) -> Job:
    if row.needs and importlib.util.find_spec(row.needs) is None:
        pytest.skip(f"{row.needs} is not installed")
    return row.job()


def counter() -> Any:
    return FlopCounterMode(display=False, custom_mapping=FUSED)


def counted(forward: Callable[[], Tensor]) -> tuple[int, int]:
    """FLOPs of forward and backward, by torch."""
    with counter() as first:
        loss = forward()
    with counter() as second:
        loss.backward()
    return first.get_total_flops(), second.get_total_flops()


named = pytest.mark.parametrize("row", ROWS, ids=lambda row: row.name)


@pytest.mark.parametrize("row", KNOWN, ids=lambda row: row.name)
def test_torch_counts_the_same(row: Row) -> None:
    forward, backward = counted(job(row).forward)
    truth = row.truth()
    assert forward == truth.forward.full
    if row.name in WRONG_BACKWARD:
        assert backward > truth.backward.full, "torch counts right now: move the row"
    else:
        assert backward == truth.backward.full + truth.recompute.full


@pytest.mark.parametrize("row", [row for row in KNOWN if row.name != "gpt_compiled"], ids=lambda row: row.name)
def test_torch_counts_the_same_by_module(row: Row) -> None:
    made = job(row)
    with counter() as found:
        made.forward()
    by = {path.partition(".")[2]: sum(count.values()) for path, count in found.flop_counts.items()}
    lists = {path for path, module in made.model.named_modules() if isinstance(module, (nn.ModuleList, nn.ModuleDict))}
    expected = row.truth().modules
    for path, flops in expected.items():  # nobody calls a list of modules
        inside = [count for name, count in by.items() if name.rpartition(".")[0] == path]
        assert flops == (sum(inside) if path in lists else by[path]), path
    assert {path for path in by if path not in expected and not path.startswith("experts.")} == set()


@pytest.mark.parametrize("row", [row for row in KNOWN if row.name != "gpt_math"], ids=lambda row: row.name)
def test_half_of_the_attention_that_is_called_causal_is_left_out(row: Row, tmp_path: Path) -> None:
    made = job(row)
    with counter() as forward:
        loss = made.forward()
    with counter() as backward:
        loss.backward()
    name = "aten::_scaled_dot_product_flash_attention_for_cpu"
    calls = [op for op in operators(record_step(made, tmp_path / "trace.json")) if op.name == name]
    causal = {op.args["Concrete Inputs"][4] for op in calls} == {"True"}
    truth = row.truth()
    for part, found, op in (
        (truth.forward, forward, FUSED_FORWARD),
        (truth.backward, backward, FUSED_BACKWARD),
        (truth.recompute, backward, FUSED_FORWARD),
    ):
        flops = found.flop_counts["Global"].get(op, 0)
        assert part.full - part.causal == (flops // 2 if causal else 0)


def test_unfused_attention_is_as_large_but_for_the_scores_computed_twice() -> None:
    fused, math = BY_NAME["gpt"].truth(), BY_NAME["gpt_math"].truth()
    attention = models.LAYERS * 2 * models.attention_macs(models.BATCH, models.TIME, models.HIDDEN)
    assert math.forward == fused.forward
    assert fused.backward.full - math.backward.full == attention // 2
    assert math.backward.full - math.backward.causal == attention


# ---- where torch counts wrong: the same network from operators that it knows ----


def split(layer: Any, x: Tensor) -> Tensor:
    """A convolution in groups as one convolution each."""
    transposed = isinstance(layer, nn.ConvTranspose2d)
    call = F.conv_transpose2d if transposed else F.conv2d
    weights, biases = layer.weight.chunk(layer.groups), layer.bias.chunk(layer.groups)
    parts = zip(x.chunk(layer.groups, 1), weights, biases)
    return torch.cat([call(part, w, b, layer.stride, layer.padding) for part, w, b in parts], 1)


def as_split(made: Job) -> Tensor:
    (x,) = made.inputs
    for layer in made.model:
        x = split(layer, x)
    return x


def as_products(made: Job) -> Tensor:
    """A vector as a matrix of one column."""
    model, (x,) = made.model, made.inputs
    y = torch.bmm(torch.bmm(x, model.batch), model.batch) @ model.batch[0]
    return (y.reshape(-1, 32) @ model.wide @ model.vector[:, None])[:, 0]


def as_single_products(made: Job) -> Tensor:
    x, ends = made.inputs
    starts = [0, *ends.tolist()]
    return torch.cat([x[a:b] @ made.model.weight[at] for at, (a, b) in enumerate(zip(starts, ends.tolist()))])


def as_cells(made: Job) -> Tensor:
    """An LSTM from its definition. All that the kernel gives gradients of asks for one here too."""
    x = made.inputs[0].requires_grad_()
    lstm = made.model.lstm
    for layer in range(lstm.num_layers):
        w_x, w_h, b_x, b_h = (
            getattr(lstm, f"{name}_l{layer}") for name in ("weight_ih", "weight_hh", "bias_ih", "bias_hh")
        )
        h = torch.zeros(len(x), lstm.hidden_size, requires_grad=True)
        c, out = torch.zeros(len(x), lstm.hidden_size), []
        for now in x.unbind(1):
            i, f, g, o = (F.linear(now, w_x, b_x) + F.linear(h, w_h, b_h)).chunk(4, 1)
            c = f.sigmoid() * c + i.sigmoid() * g.tanh()
            h = o.sigmoid() * c.tanh()
            out.append(h)
        x = torch.stack(out, 1)
    return x


@pytest.mark.parametrize(
    ("name", "same"),
    [
        ("grouped_conv", as_split),
        ("conv_transpose", as_split),
        ("products", as_products),
        ("grouped_mm", as_single_products),
        ("lstm", as_cells),
    ],
)
def test_torch_counts_the_same_of_what_is_equal(name: str, same: Callable[[Job], Tensor]) -> None:
    made = BY_NAME[name].job()
    torch.testing.assert_close(same(made), made.model(*made.inputs))
    truth = BY_NAME[name].truth()
    assert counted(lambda: same(made).float().square().sum()) == (truth.forward.full, truth.backward.full)


# ---- what really ran ----


@named
def test_a_trace_holds_what_the_truth_needs(row: Row, tmp_path: Path) -> None:
    found = flops_of_trace(record_step(job(row), tmp_path / "trace.json"))
    truth = row.truth()
    assert found == {
        phase: flops.full
        for phase, flops in (
            ("forward", truth.forward),
            ("backward", truth.backward),
            ("recompute", truth.recompute),
        )
        if flops.full
    }
