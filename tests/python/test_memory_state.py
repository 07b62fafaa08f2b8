"""Memory by category and module: which bytes are counted, for whom, when; and the files that say so."""

from __future__ import annotations

import gc
import json
import os
import re
import subprocess
import sys
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

torch = pytest.importorskip("torch", reason="torch is not installed")

from memory_cases import kept_bytes, make, scalar  # noqa: E402
from torch import nn  # noqa: E402

from stepscope.memory import SimpleMemoryProfiler  # noqa: E402

ROOT = Path(__file__).resolve().parent.parent.parent
CORPUS = Path(os.environ.get("STEPSCOPE_CORPUS", ROOT.parent / "shared" / "data"))
STATIC = ("parameter", "buffer", "gradient", "master_parameter", "optimizer_state")


class Measured:
    """Some steps of a training, and the files that came of it."""

    def __init__(self, folder: Path, model: nn.Module, optimizer: Any, steps: int = 2) -> None:
        self.folder, self.model, self.optimizer, self.steps = folder, model, optimizer, steps
        self.profiler = SimpleMemoryProfiler(model, optimizer, folder, total_steps=steps)

    def train(self, batches: Any, zero_grad: bool = True) -> dict[str, Any]:
        for _ in range(self.steps):
            for batch in batches:
                scalar(self.model(batch)).backward()
            self.optimizer.step()
            if zero_grad:
                self.optimizer.zero_grad()
            self.profiler.step()
        return self.read()

    def read(self) -> dict[str, Any]:
        problems = [problem for problem in self.profiler.problems if "pages" not in problem]
        assert problems == []
        found: dict[str, Any] = json.loads((self.folder / "memory_state.json").read_text())
        check_sums(found)
        return found


def check_sums(state: dict[str, Any]) -> None:
    """What nodes have below them adds up, in every state of the file."""
    parents = state["nodes"]["parent"]
    trees = [
        tree for one in [state["peak"], *state["step_peaks"], *state["step_ends"]] for tree in one["trees"].values()
    ]
    for tree in [*trees, *(one["tree"] for one in state["largest"].values())]:
        below = {node: own for node, own, _ in tree}
        for node, _, _ in reversed(tree):
            if node != 0:
                below[parents[node]] += below[node]
        assert [total for _, _, total in tree] == [below[node] for node, _, _ in tree]
    for one in [state["peak"], *state["step_ends"]]:
        assert one["total_bytes"] == sum(one["bytes"].values())
        assert one["bytes"] == {name: sum(own for _, own, _ in tree) for name, tree in one["trees"].items()}
    highest = max(point["total_bytes"] for point in state["points"])
    assert state["peak"]["total_bytes"] >= highest
    assert state["peak"]["total_bytes"] == max(one["total_bytes"] for one in state["step_peaks"])


def at(state: dict[str, Any], event: str, number: int = 0) -> dict[str, int]:
    found: dict[str, int] = [point["bytes"] for point in state["points"] if point["event"] == event][number]
    return found


def own(state: dict[str, Any], tree: Any) -> dict[str, int]:
    paths = state["nodes"]["path"]
    return {paths[node]: size for node, size, _ in tree if size}


@pytest.fixture
def folder(tmp_path: Path) -> Iterator[Path]:
    yield tmp_path / "memory_trace" / "rank0_dp0_tp0"


def mlp() -> nn.Module:
    torch.manual_seed(0)
    return nn.Sequential(nn.Linear(512, 512), nn.ReLU(), nn.Linear(512, 512))


MLP_BYTES = 2 * (512 * 512 + 512) * 4
BATCH_BYTES = 128 * 512 * 4


def test_every_category_of_a_training(folder: Path) -> None:
    model = mlp()
    state = Measured(folder, model, torch.optim.Adam(model.parameters())).train(
        [torch.randn(128, 512)], zero_grad=False
    )
    nothing = dict.fromkeys((*STATIC, "activation", "input"), 0)
    begin = {**nothing, "parameter": MLP_BYTES}
    forward = {**begin, "activation": BATCH_BYTES, "input": BATCH_BYTES}
    backward = {**begin, "gradient": MLP_BYTES}
    after = {**backward, "optimizer_state": 2 * MLP_BYTES + 4 * 4}  # two moments of each, and four step counts
    assert [point["event"] for point in state["points"]] == ["begin", *["forward", "backward", "step"] * 2]
    assert [at(state, "begin"), at(state, "forward"), at(state, "backward")] == [begin, forward, backward]
    assert at(state, "step") == at(state, "backward", 1) == at(state, "step", 1) == after
    assert at(state, "forward", 1) == {**after, "activation": BATCH_BYTES, "input": BATCH_BYTES}
    peak = state["peak"]
    assert peak["total_bytes"] == sum(after.values()) + 2 * BATCH_BYTES + BATCH_BYTES  # the loss keeps what it squares
    assert (peak["step"], peak["event"]) == (1, "backward")
    assert own(state, peak["trees"]["activation"]) == {"1": BATCH_BYTES, "": BATCH_BYTES}
    assert own(state, state["largest"]["optimizer_state"]["tree"])["2.weight.exp_avg"] == 512 * 512 * 4


def test_the_log_is_theirs(folder: Path) -> None:
    model = mlp()
    optimizer = torch.optim.Adam(model.parameters())
    profiler = SimpleMemoryProfiler(model, optimizer, folder, total_steps=2)
    for _ in range(2):
        optimizer.zero_grad()
        model(torch.randn(128, 512)).mean().backward()
        optimizer.step()
        profiler.step()
    text = (folder / "memory.log").read_text()
    blocks = text.split("\n\n")
    assert blocks.pop() == ""
    sections = [re.findall(r"^(\w+)_layout:$", block, re.MULTILINE) for block in blocks]
    first = ["params", "grads", "os_params"]
    last = [*first, "os_state", "activation_base"]
    assert sections == [first, ["activation_base"], [], ["os_state"], [], [], last]
    number = r"\d+\.\d\d MB"
    summary = ", ".join(
        f"{name}_memory: {number}" for name in ("params", "grads", "os_params", "os_state", "activation")
    )
    head = rf"Memory State:\ntime: \d+\.\d+(e-\d+)?\n---summary---\ntotal_memory: {number}\n{summary}(\n|$)"
    for block in blocks:
        assert re.match(head, block), block
        rest = re.sub(head, "", block, count=1)
        assert re.fullmatch(
            rf"(---Layout---\n((\w+_layout:|layer: [\w.]+, layer_mem: {number}, total_mem: {number})(\n|$))+)?", rest
        )
    assert "layer: activations_0.1, layer_mem: 0.25 MB, total_mem: 0.25 MB" in blocks[1]
    assert "total_memory: 8.02 MB" in blocks[3]


def test_the_log_beside_one_of_theirs(folder: Path) -> None:
    """Line by line, but for the values: the head of a log of InternEvo's own profiler."""
    reference = CORPUS.parent / "reference" / "internevo_memory_log_head.txt"
    if not reference.exists():
        pytest.skip(f"no log of InternEvo at {reference}")
    model = mlp()
    optimizer = torch.optim.Adam(model.parameters())
    profiler = SimpleMemoryProfiler(model, optimizer, folder, total_steps=2)
    optimizer.zero_grad()
    model(torch.randn(128, 512)).mean().backward()
    optimizer.step()
    profiler.step()

    def labels(text: str) -> list[str]:
        return [re.sub(r"\d+\.\d\d MB", "N MB", re.sub(r"^time: .*", "time: N", line)) for line in text.splitlines()]

    theirs = labels(reference.read_text())
    ours = labels((folder / "memory.log").read_text())
    assert ours[: len(theirs)] == theirs


def test_each_storage_once(folder: Path) -> None:
    """Tied, shared, and views of one flat storage, which is larger than what they show."""

    class Net(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            flat = torch.zeros(1000)
            self.a, self.b = nn.Parameter(flat[:100]), nn.Parameter(flat[200:500])
            self.embed, self.head = nn.Embedding(50, 8), nn.Linear(8, 50, bias=False)
            self.head.weight = self.embed.weight
            self.layer = nn.Linear(8, 8)
            self.again = self.layer

        def forward(self, x: Any) -> Any:
            return self.head(self.again(self.layer(self.embed(x)))) + self.a.sum() + self.b.sum()

    model = Net()
    state = Measured(folder, model, torch.optim.SGD(model.parameters(), lr=0.1)).train(
        [torch.arange(4)], zero_grad=False
    )
    parameters = own(state, state["step_ends"][-1]["trees"]["parameter"])
    assert parameters == {
        "a": 100 * 4 + 600 * 4,  # with what nobody shows
        "b": 300 * 4,
        "embed.weight": 50 * 8 * 4,
        "layer.weight": 8 * 8 * 4,
        "layer.bias": 8 * 4,
    }
    gradients = own(state, state["step_ends"][-1]["trees"]["gradient"])
    assert gradients == {**parameters, "a": 100 * 4}


def test_gradients_in_one_bucket(folder: Path) -> None:
    """As DistributedDataParallel has them with gradient_as_bucket_view."""
    model = mlp()
    bucket = torch.zeros(sum(p.numel() for p in model.parameters()))
    offset = 0
    for parameter in model.parameters():
        parameter.grad = bucket[offset : offset + parameter.numel()].view_as(parameter)
        offset += parameter.numel()
    state = Measured(folder, model, torch.optim.SGD(model.parameters(), lr=0.1)).train(
        [torch.randn(4, 512)], zero_grad=False
    )
    assert at(state, "begin")["gradient"] == at(state, "backward")["gradient"] == MLP_BYTES
    assert own(state, state["largest"]["gradient"]["tree"])["2.bias"] == 512 * 4


def test_micro_batches_and_frozen_parameters(folder: Path) -> None:
    model = mlp()
    model[0].weight.requires_grad_(False)
    batches = [torch.randn(size, 512) for size in (8, 16, 4)]
    state = Measured(folder, model, torch.optim.SGD(model.parameters(), lr=0.1)).train(batches)
    passes = [point for point in state["points"] if point["event"] == "forward"]
    assert [(point["step"], point["micro_batch"]) for point in passes] == [(s, m) for s in range(2) for m in range(3)]
    for point, batch in zip(passes, batches * 2):
        assert point["bytes"]["activation"] == batch.numel() * 4  # of the ReLU: nothing needs the input
        assert point["bytes"]["input"] == 0
    assert [at(state, "forward", n)["gradient"] for n in range(4)] == [0, *[MLP_BYTES - 512 * 512 * 4] * 2, 0]
    log = (folder / "memory.log").read_text()
    assert "grad_mem.0.bias" in log
    assert "grad_mem.0.weight" not in log


def test_forward_passes_before_their_backward_passes(folder: Path) -> None:
    """As a pipeline has it: what several micro-batches keep adds up."""
    model = mlp()
    measured = Measured(folder, model, torch.optim.SGD(model.parameters(), lr=0.1), steps=1)
    losses = [scalar(model(torch.randn(8, 512))) for _ in range(3)]
    for loss in losses:
        loss.backward()
    measured.profiler.step()
    state = measured.read()
    kept = [point["bytes"]["activation"] for point in state["points"] if point["event"] in ("forward", "backward")]
    one = 8 * 512 * 4
    assert kept == [one, 3 * one, 5 * one, 4 * one, 2 * one, 0]  # each loss keeps as much, after its forward pass


@pytest.mark.parametrize(
    ("make_optimizer", "states"),
    [
        (lambda p: torch.optim.SGD(p, lr=0.1), 0),
        (lambda p: torch.optim.SGD(p, lr=0.1, momentum=0.9), MLP_BYTES),
        (lambda p: torch.optim.Adam(p, foreach=True), 2 * MLP_BYTES + 16),
        (lambda p: torch.optim.AdamW(p, fused=True), 2 * MLP_BYTES + 16),
        (lambda p: torch.optim.Adam(p, lr=torch.tensor(0.1), capturable=False), 2 * MLP_BYTES + 16),
        (lambda p: torch.optim.Adagrad(p), MLP_BYTES + 16),
    ],
)
def test_optimizers(make_optimizer: Any, states: int, folder: Path) -> None:
    model = mlp()
    optimizer = make_optimizer(list(model.parameters()))
    state = Measured(folder, model, optimizer).train([torch.randn(4, 512)])
    assert at(state, "step", 1)["optimizer_state"] == states
    a_tensor = any(isinstance(value, torch.Tensor) for value in optimizer.param_groups[0].values())
    assert at(state, "step")["master_parameter"] == (4 if a_tensor else 0)


def test_master_parameters(folder: Path) -> None:
    """Mixed precision: the optimizer steps copies in full precision, which are not the model's."""
    model = mlp().to(torch.bfloat16)
    master = [p.detach().float().requires_grad_() for p in model.parameters()]
    optimizer = torch.optim.Adam(master)
    profiler = SimpleMemoryProfiler(model, optimizer, folder, total_steps=1)
    scalar(model(torch.randn(4, 512, dtype=torch.bfloat16))).backward()
    for copy, parameter in zip(master, model.parameters()):
        copy.grad = parameter.grad.float()
    optimizer.step()
    profiler.step()
    state = json.loads((folder / "memory_state.json").read_text())
    check_sums(state)
    assert at(state, "step") == {
        "parameter": MLP_BYTES // 2,
        "buffer": 0,
        "gradient": MLP_BYTES // 2,
        "master_parameter": MLP_BYTES,
        "optimizer_state": 2 * MLP_BYTES + 16,
        "activation": 0,
        "input": 0,
    }
    log = (folder / "memory.log").read_text()
    assert "layer: os_params_mem.0.params.0, layer_mem: 1.00 MB, total_mem: 1.00 MB" in log
    assert "layer: os_state_mem.0.exp_avg, layer_mem: 1.00 MB, total_mem: 1.00 MB" in log


def test_models_that_are_odd(folder: Path) -> None:
    """Names that others have too, children that are None, a lazy one, buffers, a script, sparse gradients."""

    class Odd(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.weight = nn.Linear(4, 4)  # a module by the name of a parameter
            self.nothing = None
            self.register_module("none", None)
            self.register_parameter("neither", None)
            self.register_buffer("mean", torch.zeros(16))
            self.register_buffer("no_buffer", None)
            self.module = nn.Sequential(nn.Linear(4, 4))  # no wrapper, though it is called as in one
            self.lazy = nn.LazyLinear(4)
            self.scripted = torch.jit.script(nn.Linear(4, 4))
            self.embed = nn.Embedding(10, 4, sparse=True)
            self.same = nn.ModuleDict({"weight": nn.Linear(4, 4), "bias": nn.Linear(4, 4)})
            self.norm = nn.BatchNorm1d(4)

        def forward(self, x: Any) -> tuple[Any, dict[str, Any]]:
            y = self.embed(x)
            for layer in (self.weight, self.module, self.lazy, self.scripted, self.same["weight"], self.norm):
                y = layer(y)
            return y, {"nothing": None}

    model = Odd()
    measured = Measured(folder, model, torch.optim.SGD([model.weight.weight], lr=0.1), steps=1)
    state = measured.train([torch.arange(6)], zero_grad=False)
    parameters = own(state, state["step_ends"][-1]["trees"]["parameter"])
    sixteen = 4 * 4 * 4
    for path in ("weight.weight", "module.0.weight", "lazy.weight", "scripted.weight", "same.weight.weight"):
        assert parameters[path] == sixteen
    assert sum(parameters.values()) == sum(p.numel() * 4 for p in model.parameters())
    assert sum(own(state, state["step_ends"][-1]["trees"]["buffer"]).values()) == (16 + 4 + 4) * 4 + 8
    gradients = own(state, state["step_ends"][-1]["trees"]["gradient"])
    assert gradients["embed.weight"] == 6 * 8 + 6 * 4 * 4  # indices and rows
    assert "same.bias.weight" not in gradients
    kept = own(state, state["largest"]["activation"]["tree"])
    assert {"weight", "norm"} <= set(kept)


def test_what_is_asked_for(folder: Path) -> None:
    model = mlp()
    profiler = SimpleMemoryProfiler(model, torch.optim.SGD(model.parameters(), lr=0.1), str(folder), total_steps=1)
    output = model(torch.randn(128, 512))
    profiler.point(with_options="params,activation_base")
    blocks = (folder / "memory.log").read_text().split("\n\n")
    assert re.findall(r"(\w+)_layout:", blocks[-2]) == ["params", "activation_base"]
    assert "activation_memory: 0.50 MB" in blocks[-2]
    profiler.point("", create=True)
    assert (folder / "memory.log").read_text().count("Memory State:") == 1
    del output
    profiler.step()
    profiler.step()  # one too many, as in their loops: nothing happens
    profiler.point()
    assert profiler.problems == [] or "pages" in profiler.problems[0]


def test_chunks_of_a_pipeline(folder: Path) -> None:
    chunks = nn.ModuleList([mlp(), mlp()])
    measured = Measured(folder, chunks, torch.optim.SGD(chunks.parameters(), lr=0.1), steps=1)
    scalar(chunks[1](chunks[0](torch.randn(8, 512)))).backward()
    measured.profiler.step()
    state = measured.read()
    assert own(state, state["step_ends"][-1]["trees"]["parameter"])["1.2.weight"] == 512 * 512 * 4
    log = (folder / "memory.log").read_text()
    for line in ("activations_0.1", "activations_1.1", "param_mem.1.2.weight"):
        assert f"layer: {line}," in log
    assert [point["event"] for point in state["points"]][:4] == ["begin", "forward", "forward", "backward"]


def test_wrapped_by_internevo(folder: Path) -> None:
    class NaiveAMPModel(nn.Module):
        def __init__(self, model: nn.Module) -> None:
            super().__init__()
            self.model = model

        def forward(self, x: Any) -> Any:
            return self.model(x)

    model = NaiveAMPModel(mlp())
    state = Measured(folder, model, torch.optim.SGD(model.parameters(), lr=0.1), steps=1).train([torch.randn(8, 512)])
    assert "0.weight" in own(state, state["peak"]["trees"]["parameter"])
    assert "layer: activations_0.1, layer_mem: 0.02 MB" in (folder / "memory.log").read_text()


def test_a_kilobyte_is_seen(folder: Path) -> None:
    """What the log rounds to 0.00 MB."""
    model, batch = make("tied weights")
    truth = kept_bytes(model, lambda: model(batch))
    state = Measured(folder, model, torch.optim.SGD(model.parameters(), lr=0.1), steps=1).train([batch])
    assert at(state, "forward")["input"] == 8 * 32 * 8
    assert at(state, "forward")["input"] + at(state, "forward")["activation"] == truth


def test_figures_of_the_allocator(monkeypatch: pytest.MonkeyPatch, folder: Path) -> None:
    """With a stand-in for the device: what is asked, and how it adds up."""
    model = mlp()
    measured = Measured(folder, model, torch.optim.SGD(model.parameters(), lr=0.1), steps=1)
    reason = measured.profiler._measurement.state.reason()
    assert reason.startswith("n/a: the model is on the CPU")
    told = {
        "allocated_bytes.all.current": 700,
        "requested_bytes.all.current": 650,
        "reserved_bytes.all.current": 1000,
        "inactive_split_bytes.all.current": 120,
        "allocated_bytes.all.peak": 900,
        "reserved_bytes.all.peak": 1000,
    }
    capturing = [False]
    monkeypatch.setattr(torch.cuda, "memory_stats", lambda device: told)
    monkeypatch.setattr(torch.cuda, "mem_get_info", lambda device: (8000, 10000))
    monkeypatch.setattr(torch.cuda, "is_current_stream_capturing", lambda: capturing[0])
    measured.profiler._measurement.state.device = torch.device("cuda", 0)
    measured.profiler.point()
    capturing[0] = True
    measured.profiler.point()
    del told["requested_bytes.all.current"]
    measured.profiler.point()
    measured.profiler.step()
    state = measured.read()
    figures = [point["allocator"] for point in state["points"] if "allocator" in point]
    assert figures[0] == {
        "allocated_bytes": 700,
        "requested_bytes": 650,
        "rounding_bytes": 50,
        "reserved_bytes": 1000,
        "inactive_split_bytes": 120,
        "peak_allocated_bytes": 900,
        "peak_reserved_bytes": 1000,
        "device_total_bytes": 10000,
        "device_used_bytes": 2000,
        "non_torch_bytes": 1000,
    }
    assert figures[1]["device_used_bytes"] is None  # asking would break the capture
    assert figures[1]["rounding_bytes"] == 50
    assert figures[2]["rounding_bytes"] is None
    assert state["allocator_reason"] is None


def test_a_folder_that_cannot_be_written(folder: Path, capfd: pytest.CaptureFixture[str]) -> None:
    """The training goes on; what failed is told where it can be."""
    model = mlp()
    profiler = SimpleMemoryProfiler(model, torch.optim.SGD(model.parameters(), lr=0.1), folder, total_steps=2)
    (folder / "memory.log").unlink()
    (folder / "memory.log").mkdir()
    scalar(model(torch.randn(4, 512))).backward()
    profiler.step()
    profiler.step()
    assert any("Is a directory" in problem for problem in profiler.problems)
    assert capfd.readouterr() == ("", "")
    model(torch.randn(4, 512))


def test_nothing_to_measure_or_nowhere_to_write_it(folder: Path) -> None:
    """Told once, in words; the training goes on."""
    model = mlp()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    folder.parent.mkdir()
    folder.write_text("a file")
    for of, where, words in [
        (model, folder / "below", "folder cannot be made"),
        ("mlp", folder.parent / "b", "type str"),
    ]:
        with pytest.warns(RuntimeWarning, match=words) as told:
            profiler = SimpleMemoryProfiler(of, optimizer, where, total_steps=1)
        assert [warning.filename for warning in told] == [__file__]
        profiler.point("all")
        profiler.step()
        assert len(profiler.problems) == 1
        assert words in profiler.problems[0]
        assert not where.exists()
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert SimpleMemoryProfiler("mlp", optimizer, folder.parent / "b").problems
    (folder.parent / "c" / "memory.log").mkdir(parents=True)
    with pytest.warns(RuntimeWarning, match="Is a directory"):
        SimpleMemoryProfiler(model, optimizer, folder.parent / "c")
    gc.collect()
    assert not model._forward_hooks


@pytest.mark.parametrize("steps", [0, -3, "5", None])
def test_a_number_of_steps_that_is_none(steps: Any, folder: Path) -> None:
    with pytest.raises(ValueError, match="a whole number of at least 1"):
        SimpleMemoryProfiler(mlp(), None, folder, total_steps=steps)
    assert not folder.exists()


def test_a_part_that_nobody_knows(folder: Path) -> None:
    model = mlp()
    profiler = SimpleMemoryProfiler(model, torch.optim.SGD(model.parameters(), lr=0.1), folder, total_steps=1)
    profiler.point("params, foo")
    assert profiler.problems == [
        'point() knows no "foo": it is left out; known are params, grads, os_params, os_state, activation_base, and all'
    ]
    assert re.findall(r"(\w+)_layout:", (folder / "memory.log").read_text().split("\n\n")[-2]) == ["params"]
    profiler.step()
    assert json.loads((folder / "memory_state.json").read_text())["notes"][0] == profiler.problems[0]


def test_a_profiler_that_goes_away_early(folder: Path) -> None:
    model = mlp()
    profiler = SimpleMemoryProfiler(model, torch.optim.SGD(model.parameters(), lr=0.1), folder, total_steps=5)
    model(torch.randn(4, 512)).sum().backward()
    profiler.step()
    model(torch.randn(4, 512)).sum().backward()
    problems = profiler.problems
    del profiler
    gc.collect()
    state = json.loads((folder / "memory_state.json").read_text())
    assert (state["complete"], state["steps_done"], state["steps_wanted"]) == (False, 1, 5)
    assert [point["event"] for point in state["points"]][-2:] == [
        "forward",
        "backward",
    ]  # of the step that was not over
    assert state["peak"]["step"] == 1
    assert (folder / "summary_sunburst.html").exists() or any("pages" in problem for problem in problems)
    assert not any(module._forward_hooks or module._forward_pre_hooks for module in model.modules())


FORK = """
import os, sys
if os.fork() == 0:
    sys.exit()
os.wait()
assert "summary_sunburst.html" not in os.listdir(profiler.folder)  # the child left it to the parent
"""


@pytest.mark.parametrize("end", ["", "raise SystemExit(3)", FORK])
def test_a_program_that_ends_early(end: str, folder: Path) -> None:
    program = f"""
import torch
from stepscope.memory import SimpleMemoryProfiler
model = torch.nn.Linear(4, 4)
profiler = SimpleMemoryProfiler(model, torch.optim.SGD(model.parameters(), lr=0.1), {str(folder)!r}, total_steps=5)
for _ in range(2):
    model(torch.ones(2, 4)).sum().backward()
    profiler.step()
{end}
"""
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True)
    assert (done.returncode, done.stdout, done.stderr) == (3 if "3" in end else 0, "", "")
    state = json.loads((folder / "memory_state.json").read_text())
    assert (state["complete"], state["steps_done"]) == (False, 2)
    pages = len(list(folder.glob("*_sunburst.html")))
    assert pages == 5 or any("pages" in note for note in state["notes"])


def test_many_steps_are_thinned(folder: Path) -> None:
    model = nn.Linear(4, 4)
    state = Measured(folder, model, torch.optim.SGD(model.parameters(), lr=0.1), steps=50).train([torch.ones(1, 4)])
    steps = [one["step"] for one in state["step_ends"]]
    assert len(steps) == 32
    assert steps[:3] == [0, 1, 2]
    assert steps[-1] == 49
    assert state["steps_left_out"] == 18
    assert state["complete"]
