"""The FLOPs in flops_models.py are right: two other ways to count agree with them, none of them ours.

torch's FlopCounterMode knows most operators; where it is wrong (groups, and three kinds it does not know), the same
numbers come from it for the same network written with operators that it knows, or from loops that multiply one by one.
"""

from __future__ import annotations

import importlib.util
from collections.abc import Callable
from itertools import product
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

OPS = torch.ops.aten
FUSED_FORWARD = OPS._scaled_dot_product_flash_attention_for_cpu
FUSED_BACKWARD = OPS._scaled_dot_product_flash_attention_for_cpu_backward
# torch 2.13 counts the fused attention of CUDA, by these formulas, and forgets the CPU's.
FUSED = {
    FUSED_FORWARD: lambda q, k, v, *_, **__: sdpa_flop_count(q, k, v),
    FUSED_BACKWARD: lambda dy, q, k, v, *_, **__: sdpa_backward_flop_count(dy, q, k, v),
}
WRONG_BACKWARD = {"grouped_conv", "conv_transpose"}  # groups times too many for the weight (pytorch#183405)
UNKNOWN = {"products", "grouped_mm", "lstm"}  # no formula for mv, _grouped_mm, recurrent layers
pytestmark = pytest.mark.usefixtures("one_thread")
KNOWN = [row for row in ROWS if row.name not in UNKNOWN]


def counter() -> Any:
    return FlopCounterMode(display=False, custom_mapping=FUSED)


def counted(forward: Callable[[], Tensor]) -> tuple[int, int]:
    """FLOPs of forward and backward, by torch."""
    with counter() as first:
        loss = forward()
    with counter() as second:
        loss.backward()
    return first.get_total_flops(), second.get_total_flops()


@pytest.mark.parametrize("row", KNOWN, ids=lambda row: row.name)
def test_torch_counts_the_same(row: Row) -> None:
    forward, backward = counted(row.job().forward)
    truth = row.truth()
    assert forward == truth.forward.full
    if row.name in WRONG_BACKWARD:
        assert backward > truth.backward.full, "torch counts right now: move the row"
    else:
        assert backward == truth.backward.full + truth.recompute.full


@pytest.mark.parametrize("row", [row for row in KNOWN if row.name != "gpt_compiled"], ids=lambda row: row.name)
def test_torch_counts_the_same_by_module(row: Row) -> None:
    made = row.job()
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
    made = row.job()
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


def by_hand(small: Tensor, wide: Tensor, w: Tensor, stride: int, groups: int) -> tuple[Tensor, Tensor, Tensor, int]:
    """All three products of a convolution between its small side and its wide one: gathered from the wide side,
    spread over it, and gathered for the weight; and the multiply-adds that each of them takes."""
    gathered, spread, for_weight = torch.zeros_like(small), torch.zeros_like(wide), torch.zeros_like(w)
    count, side, per_group = 0, w.shape[-1], len(w) // groups
    for n, s, i, j in product(*map(range, small.shape)):
        first = s // per_group * w.shape[1]
        at = (n, slice(first, first + w.shape[1]), *(slice(k * stride, k * stride + side) for k in (i, j)))
        gathered[n, s, i, j] = (wide[at] * w[s]).sum()
        spread[at] += small[n, s, i, j] * w[s]
        for_weight[s] += small[n, s, i, j] * wide[at]
        count += wide[at].numel()
    return gathered, spread, for_weight, count


@pytest.mark.parametrize("transposed", [False, True], ids=["conv", "conv_transpose"])
@pytest.mark.parametrize(
    ("stride", "padding", "groups", "channels_in", "channels_out"),
    [(1, 0, 1, 3, 4), (1, 1, 2, 4, 6), (1, 1, 4, 4, 4), (2, 1, 1, 2, 4), (2, 1, 2, 4, 2)],
)
def test_loops_multiply_as_often_as_the_formula_says(
    stride: int, padding: int, groups: int, channels_in: int, channels_out: int, transposed: bool
) -> None:
    torch.manual_seed(0)
    kind = nn.ConvTranspose2d if transposed else nn.Conv2d
    layer = kind(channels_in, channels_out, 3, stride, padding, groups=groups, bias=False).double()
    x = torch.randn(2, channels_in, 5, 5, dtype=torch.double, requires_grad=True)
    y = layer(x)
    dy = torch.randn_like(y)
    y.backward(dy)
    small, wide = (x, dy) if transposed else (dy, x)
    around = F.pad(wide, [padding] * 4).detach()
    gathered, spread, dw, count = by_hand(small.detach(), around, layer.weight.detach(), stride, groups)
    cut = spread[:, :, padding : padding + wide.shape[2], padding : padding + wide.shape[3]]
    torch.testing.assert_close(dw, layer.weight.grad)
    torch.testing.assert_close((cut, gathered) if transposed else (gathered, cut), (y.detach(), x.grad))
    channels = (channels_out, channels_in) if transposed else (channels_in, channels_out)
    assert count == models.conv_macs(2, small.shape[2], 3, *channels, groups)


# ---- what really ran ----


def by_phase(truth: models.Truth) -> dict[str, tuple[int, int]]:
    phases = {"forward": truth.forward, "backward": truth.backward, "recompute": truth.recompute}
    return {phase: (flops.full, flops.causal) for phase, flops in phases.items() if flops.full}


@pytest.mark.parametrize("row", ROWS, ids=lambda row: row.name)
def test_a_trace_holds_what_the_truth_needs(row: Row, tmp_path: Path) -> None:
    assert flops_of_trace(record_step(row.job(), tmp_path / "trace.json")) == by_phase(row.truth())


def test_the_last_operator_of_a_checkpointed_block_is_begun_but_does_not_run(tmp_path: Path) -> None:
    found = list(operators(record_step(BY_NAME["gpt_checkpoint"].job(), tmp_path / "trace.json")))
    again = [op for op in found if op.name == "aten::addmm" and op.phase() == "recompute"]
    left = [op for op in again if op.aborted()]
    assert (len(again), len(left)) == (5 * models.LAYERS, models.LAYERS)
    assert {str(op.args["Input Dims"][1:3]) for op in left} == {"[[128, 512], [512, 128]]"}, "it is `down`"
    assert not any(op.aborted() for op in found if op.name == "aten::addmm" and op.phase() == "forward")


def test_a_gradient_of_a_gradient_is_backward(tmp_path: Path) -> None:
    """Autograd keeps the operators of the first backward, as it does those of a forward that runs again."""

    class Twice(Job):
        def step(self) -> None:
            (grad,) = torch.autograd.grad(self.forward(), [self.model[0].weight], create_graph=True)
            grad.square().sum().backward()

    model = nn.Sequential(nn.Linear(8, 8), nn.Tanh(), nn.Linear(8, 8))
    found = flops_of_trace(record_step(Twice(model, (torch.randn(4, 8),)), tmp_path / "trace.json"))
    one = 2 * 4 * 8 * 8
    # First backward: dx of layer 2, dw of layer 1. The second goes back through both (2 gradients, and 1 as the data
    # needs none), then through forward: dx and dw of layer 2, dw of layer 1.
    assert found == {"forward": (2 * one, 2 * one), "backward": (8 * one, 8 * one)}


def test_what_the_compiler_does_is_none_of_the_step(tmp_path: Path) -> None:
    torch.compiler.reset()
    trace = record_step(BY_NAME["gpt_compiled"].job(), tmp_path / "trace.json", warm=0)
    assert any(op.name == "aten::addmm" and op.compiling for op in operators(trace))
    assert flops_of_trace(trace) == by_phase(BY_NAME["gpt"].truth())


@pytest.mark.soak
@pytest.mark.parametrize("warm", [0, 1])
def test_what_the_default_compiler_makes_has_the_same_products(tmp_path: Path, warm: int) -> None:
    torch.compiler.reset()
    trace = record_step(models.gpt(backend="inductor"), tmp_path / "trace.json", warm)
    assert flops_of_trace(trace) == by_phase(BY_NAME["gpt"].truth())


@pytest.mark.skipif(not torch.backends.mkldnn.is_available(), reason="this torch has no oneDNN")
def test_the_recurrent_kernel_computes_the_gradient_of_its_input_unasked() -> None:
    made = BY_NAME["lstm"].job()
    lstm, (x,) = made.model.lstm, made.inputs
    weights = [weight.detach() for weight in lstm._flat_weights[:4]]
    zero, seen = torch.zeros(4, 64), x.transpose(0, 1).contiguous()  # time first, as the kernel wants it
    sizes = (2, 64, 2)  # of an LSTM, with 64 hidden, and 2 layers in all
    y, h, c, space = OPS.mkldnn_rnn_layer(seen, *weights, zero, zero, False, [], *sizes, True, False, True, True)
    dy = torch.ones_like(y)
    given = (seen, *weights, zero, zero, y, h, c, dy, None, None)
    dx = OPS.mkldnn_rnn_layer_backward(*given, False, *sizes, True, True, False, [], True, space)[0]
    one = nn.LSTM(32, 64)
    for name, weight in zip(("weight_ih_l0", "weight_hh_l0", "bias_ih_l0", "bias_hh_l0"), weights):
        setattr(one, name, nn.Parameter(weight))
    wanted = seen.clone().requires_grad_()
    one(wanted)[0].sum().backward()
    assert not any("mask" in argument.name for argument in OPS.mkldnn_rnn_layer_backward.default._schema.arguments)
    torch.testing.assert_close(dx, wanted.grad)
