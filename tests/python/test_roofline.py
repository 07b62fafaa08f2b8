"""What operators move at least, against the tensors of real calls; and the answer roofline as a whole."""

from __future__ import annotations

import importlib.util
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

if importlib.util.find_spec("torch") is None:
    pytest.skip("torch is not installed", allow_module_level=True)

import torch
from flops_models import BY_NAME, record_step
from jobs import rows as table
from torch.nn import functional as F
from torch.profiler import ProfilerActivity, profile

import stepscope

pytestmark = pytest.mark.usefixtures("one_thread")
aten = torch.ops.aten
PEAKS = "CPU | 10 | float32 0.1, bfloat16 0.2 | made up for a test\n"


def rand(*sizes: int, dtype: torch.dtype = torch.float32) -> torch.Tensor:
    return torch.rand(sizes).to(dtype)


def size(*tensors: Any) -> int:
    """Bytes of tensors, lists of them, and what else a call gives."""
    total = 0
    for one in tensors:
        if isinstance(one, torch.Tensor):
            total += one.numel() * one.element_size()
        elif isinstance(one, (list, tuple)):
            total += size(*one)
    return total


@dataclass
class Case:
    op: str  # as recorded
    run: Callable[..., Any]
    inputs: Callable[[], tuple[Any, ...]]
    # Bytes by hand, from the inputs and what came out; else all inputs and outputs once.
    truth: Callable[[tuple[Any, ...], Any], int] | None = None
    flop: Callable[[tuple[Any, ...]], int] | None = None


def each_once(inputs: tuple[Any, ...], output: Any) -> int:
    return size(inputs, output)


def elements(at: int, times: int = 1) -> Callable[[tuple[Any, ...]], int]:
    return lambda inputs: times * inputs[at].numel()


X, ROW = (64, 96), (96,)
CASES = [
    Case("aten::add", torch.add, lambda: (rand(*X), rand(*ROW)), flop=elements(0)),
    Case("aten::mul", torch.mul, lambda: (rand(64, 1), rand(*ROW)), flop=lambda i: 64 * 96),
    Case("aten::add", torch.add, lambda: (rand(*X, dtype=torch.bfloat16), rand(*X))),
    Case("aten::add_", lambda a, b: a.add_(b), lambda: (rand(*X), rand(*X))),
    Case("aten::mul_", lambda a: a.mul_(2), lambda: (rand(*X),)),
    Case("aten::gelu", F.gelu, lambda: (rand(*X),), flop=elements(0)),
    Case("aten::silu", F.silu, lambda: (rand(*X, dtype=torch.bfloat16),)),
    Case("aten::gelu_backward", aten.gelu_backward, lambda: (rand(*X), rand(*X)), flop=elements(0, 2)),
    Case("aten::threshold_backward", aten.threshold_backward, lambda: (rand(*X), rand(*X), 0)),
    Case("aten::where", torch.where, lambda: (rand(*X) > 0.5, rand(*X), rand(*X)), flop=lambda i: 0),
    Case("aten::gt", torch.gt, lambda: (rand(*X), rand(*X))),
    Case("aten::masked_fill_", lambda a, m: a.masked_fill_(m, 0.0), lambda: (rand(*X), rand(*X) > 0.5)),
    Case("aten::addcmul_", lambda a, b, c: a.addcmul_(b, c), lambda: (rand(*X), rand(*X), rand(*X))),
    Case("aten::lerp_", lambda a, b: a.lerp_(b, 0.1), lambda: (rand(*X), rand(*X)), flop=elements(0, 3)),
    Case("aten::native_dropout", lambda a: aten.native_dropout(a, 0.5, True), lambda: (rand(*X),)),
    Case("aten::fill_", lambda a: a.fill_(1.0), lambda: (rand(*X),), lambda i, o: size(i)),
    Case("aten::copy_", lambda a, b: a.copy_(b), lambda: (rand(*X), rand(*X, dtype=torch.bfloat16)),
         lambda i, o: size(i)),
    Case("aten::sum", lambda a: a.sum(), lambda: (rand(*X),), flop=elements(0)),
    Case("aten::sum", lambda a: a.sum([1]), lambda: (rand(64, 96, 8),)),
    Case("aten::mean", lambda a: a.mean([0, -1]), lambda: (rand(64, 96, 8),)),
    Case("aten::amax", lambda a: a.amax([0]), lambda: (rand(*X),)),
    Case("aten::linalg_vector_norm", torch.linalg.vector_norm, lambda: (rand(*X),), flop=elements(0, 2)),
    Case("aten::cumsum", lambda a: a.cumsum(1), lambda: (rand(*X),)),
    Case("aten::_softmax", lambda a: a.softmax(-1), lambda: (rand(*X),), flop=elements(0, 5)),
    Case("aten::_log_softmax_backward_data", lambda g, o: aten._log_softmax_backward_data(g, o, -1, torch.float32),
         lambda: (rand(*X), rand(*X))),
    Case("aten::native_layer_norm", lambda a, w, b: aten.native_layer_norm(a, [96], w, b, 1e-5),
         lambda: (rand(512, 96), rand(96), rand(96))),
    Case("aten::native_layer_norm_backward",
         lambda g, a, m, r, w, b: aten.native_layer_norm_backward(g, a, [96], m, r, w, b, [True, True, True]),
         lambda: (rand(512, 96), rand(512, 96), rand(512, 1), rand(512, 1), rand(96), rand(96))),
    Case("aten::_fused_rms_norm", lambda a, w: aten._fused_rms_norm(a, [96], w, 1e-5),
         lambda: (rand(512, 96), rand(96))),
    Case("aten::native_group_norm", lambda a, w, b: aten.native_group_norm(a, w, b, 4, 16, 256, 4, 1e-5),
         lambda: (rand(4, 16, 16, 16), rand(16), rand(16))),
    Case("aten::embedding", F.embedding, lambda: (torch.randint(0, 1000, (64, 32)), rand(1000, 128)),
         lambda i, o: size(i[0]) + 2 * size(o)),
    Case("aten::embedding_dense_backward", lambda g, i: aten.embedding_dense_backward(g, i, 500, -1, False),
         lambda: (rand(64, 128), torch.randint(0, 500, (64,)))),
    Case("aten::index_select", lambda a, i: a.index_select(0, i), lambda: (rand(500, 96), torch.arange(40)),
         lambda i, o: size(i[1]) + 2 * size(o)),
    Case("aten::gather", lambda a, i: a.gather(1, i), lambda: (rand(64, 96), torch.randint(0, 96, (64, 8))),
         lambda i, o: size(i[1]) + 2 * size(o)),
    Case("aten::scatter_add_", lambda a, i, s: a.scatter_add_(0, i, s),
         lambda: (rand(500, 8), torch.randint(0, 500, (64, 8)), rand(64, 8)), lambda i, o: size(i[1]) + 3 * size(i[2])),
    Case("aten::index_add_", lambda a, i, s: a.index_add_(0, i, s),
         lambda: (rand(500, 96), torch.arange(40), rand(40, 96)), lambda i, o: size(i[1]) + 3 * size(i[2])),
    Case("aten::sort", torch.sort, lambda: (rand(*X),)),
    Case("aten::topk", lambda a: a.topk(4), lambda: (rand(*X),)),
    Case("aten::max_pool2d_with_indices", lambda a: aten.max_pool2d_with_indices(a, [3, 3], [2, 2], [1, 1]),
         lambda: (rand(2, 8, 32, 32),)),
    Case("aten::avg_pool2d", lambda a: F.avg_pool2d(a, 2), lambda: (rand(2, 8, 32, 32),)),
    Case("aten::_adaptive_avg_pool2d", lambda a: F.adaptive_avg_pool2d(a, 7), lambda: (rand(2, 8, 32, 32),)),
    Case("aten::upsample_nearest2d", lambda a: F.interpolate(a, size=(64, 64)), lambda: (rand(2, 8, 32, 32),)),
    Case("aten::nll_loss_forward", F.nll_loss, lambda: (rand(64, 96), torch.randint(0, 96, (64,))),
         lambda i, o: 64 * 8 + 64 * 4),
    Case("aten::mse_loss", F.mse_loss, lambda: (rand(*X), rand(*X))),
    Case("aten::mm", torch.mm, lambda: (rand(64, 96), rand(96, 32)), flop=lambda i: 2 * 64 * 96 * 32),
    Case("aten::addmm", torch.addmm, lambda: (rand(32), rand(64, 96), rand(96, 32))),
    Case("aten::bmm", torch.bmm, lambda: (rand(8, 64, 96), rand(8, 96, 32))),
    Case("aten::mv", torch.mv, lambda: (rand(64, 96), rand(96))),
    Case("aten::_grouped_mm", torch._grouped_mm,
         lambda: (rand(128, 64, dtype=torch.bfloat16), rand(4, 64, 32, dtype=torch.bfloat16),
                  torch.tensor([32, 64, 96, 128], dtype=torch.int32)),
         lambda i, o: 4 * (32 * 64 + 64 * 32 + 32 * 32) * 2),  # as the mm of each group, which is what runs on a CPU
    Case("aten::convolution", lambda a, w, b: F.conv2d(a, w, b, stride=2, padding=1),
         lambda: (rand(2, 8, 32, 32), rand(16, 8, 3, 3), rand(16))),
    Case("aten::convolution", lambda a, w: F.conv_transpose2d(a, w, stride=2, padding=1, output_padding=1, groups=2),
         lambda: (rand(2, 8, 16, 16), rand(8, 6, 3, 3))),
    Case("aten::convolution_backward",
         lambda g, a, w: aten.convolution_backward(g, a, w, [0], [1, 1], [1, 1], [1, 1], False, [0, 0], 1,
                                                   [False, True, False]),
         lambda: (rand(2, 16, 32, 32), rand(2, 8, 32, 32), rand(16, 8, 3, 3)),
         lambda i, o: size(i[0], i[1], o[1])),
    Case("aten::_scaled_dot_product_flash_attention_for_cpu", F.scaled_dot_product_attention,
         lambda: (rand(2, 8, 64, 32), rand(2, 8, 96, 32), rand(2, 8, 96, 32))),
]  # fmt: skip


def name(case: Case) -> str:
    return case.op.removeprefix("aten::") + "_" + "x".join(map(str, [*getattr(case.inputs()[0], "shape", [])]))


@pytest.fixture
def peaks(tmp_path: Path) -> Path:
    path = tmp_path / "peaks.txt"
    path.write_text(PEAKS)
    return path


def roofline(trace: Path, **options: Any) -> dict[str, Any]:
    with stepscope.open(trace, cache=False, **options) as run:
        return run.answer("roofline")


@pytest.mark.parametrize("case", CASES, ids=[f"{at}_{name(case)}" for at, case in enumerate(CASES)])
def test_bytes_are_those_of_the_tensors(case: Case, tmp_path: Path) -> None:
    inputs = case.inputs()
    with profile(activities=[ProfilerActivity.CPU], record_shapes=True) as recording:
        output = case.run(*inputs)
    recording.export_chrome_trace(str(tmp_path / "trace.json"))
    rows = table(roofline(tmp_path / "trace.json"), "ops")
    grouped = case.op == "aten::_grouped_mm"
    found = [row for row in rows if row["op"] == ("aten::mm" if grouped else case.op)]
    assert found, [row["op"] for row in rows]
    expected = (case.truth or each_once)(inputs, output)
    if case.op.endswith("_") and case.truth is None:
        assert output.data_ptr() == inputs[0].data_ptr()  # each_once counts it as read and as written
    assert sum(row["bytes"] for row in found) == pytest.approx(expected, rel=0.02, abs=16)
    if case.flop is not None:
        assert sum(row["flop"] for row in found) == case.flop(inputs)


def test_lists_count_by_the_single_operators_where_types_are_known(tmp_path: Path) -> None:
    values = [rand(64, 96), rand(96)]
    with profile(activities=[ProfilerActivity.CPU], record_shapes=True) as recording:
        torch._foreach_mul_(values, 2.0)
        torch._foreach_add_(values, values)
    recording.export_chrome_trace(str(tmp_path / "trace.json"))
    found = table(roofline(tmp_path / "trace.json"), "ops")
    assert {row["op"] for row in found} == {"aten::mul_", "aten::add_"}
    assert sum(row["bytes"] for row in found) == 2 * size(values) + 3 * size(values)


def test_the_least_time_is_the_slower_of_arithmetic_and_memory(tmp_path: Path, peaks: Path) -> None:
    trace = record_step(BY_NAME["gpt"].job(), tmp_path / "trace.json")
    found = roofline(trace, peaks=peaks)
    assert found["scalars"]["judged_share"]["value"] == pytest.approx(found["scalars"]["known_share"]["value"])
    assert 0 < found["scalars"]["known_share"]["value"] < 1
    for row in table(found, "ops"):
        least = max(row["flop"] / 0.1e12, row["bytes"] / 10e9) * 1e9
        if row["attained_share"] is not None:
            assert row["attained_share"] == pytest.approx(least / row["time_ns"])
            assert row["limit"] == ("compute" if row["flop"] / 0.1e12 >= row["bytes"] / 10e9 else "memory")
            assert row["lost_ns"] >= row["time_ns"] - least - 1  # of each call: some may have been faster
        else:
            assert least > row["time_ns"]
        assert row["flop_per_byte"] == pytest.approx(row["flop"] / row["bytes"])
    lost = [row["lost_ns"] for row in table(found, "ops")]
    assert lost == sorted(lost, reverse=True)


def test_every_family_has_its_time_once(tmp_path: Path) -> None:
    found = roofline(record_step(BY_NAME["gpt"].job(), tmp_path / "trace.json"))
    parts = table(found, "families") + table(found, "unmodelled")
    assert sum(row["share"] for row in parts) == pytest.approx(1)
    assert {row["family"] for row in table(found, "families")} >= {
        "matrices",
        "attention",
        "elementwise",
        "normalization",
    }
    assert sum(row["time_ns"] for row in table(found, "ops")) == sum(row["time_ns"] for row in table(found, "families"))


def test_without_peaks_the_work_is_known_and_nothing_is_judged(tmp_path: Path) -> None:
    found = roofline(record_step(BY_NAME["mlp"].job(), tmp_path / "trace.json"))
    assert found["scalars"]["attained_share"]["value"] is None
    assert "--peaks" in found["scalars"]["attained_share"]["meaning"]
    assert all(row["attained_share"] is None and row["bytes"] > 0 for row in table(found, "ops"))


def test_a_wrong_line_of_peaks_is_named(tmp_path: Path) -> None:
    trace = record_step(BY_NAME["mlp"].job(), tmp_path / "trace.json")
    wrong = tmp_path / "wrong.txt"
    wrong.write_text("# mine\nCPU | fast | float32 1 | me\n")
    with pytest.raises(stepscope.StepscopeError, match=r"wrong.txt: line 2: 'fast' is no bandwidth"):
        roofline(trace, peaks=wrong)
    with pytest.raises(stepscope.StepscopeError, match="cannot be read"):
        roofline(trace, flop_rules=tmp_path / "none.txt")


def test_tables_named_by_the_environment_count_too(
    tmp_path: Path, peaks: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    trace = record_step(BY_NAME["mlp"].job(), tmp_path / "trace.json")
    monkeypatch.setenv("STEPSCOPE_PEAKS", str(peaks))
    assert roofline(trace)["scalars"]["attained_share"]["value"] > 0
    with stepscope.open(trace, cache=False) as run:
        assert 0 < run.answer("flops")["scalars"]["mfu"]["value"] < 1
