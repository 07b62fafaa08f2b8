"""What autograd keeps is seen, and the job does not notice: the same results, the same errors, nothing left behind."""

from __future__ import annotations

import copy
import gc
import pickle
import re
import sys
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

torch = pytest.importorskip("torch", reason="torch is not installed")

from memory_cases import CASES, Checkpointed, kept_bytes, make, scalar  # noqa: E402
from torch import nn  # noqa: E402
from torch.autograd import Function  # noqa: E402
from torch.autograd.graph import save_on_cpu, saved_tensors_hooks  # noqa: E402

from stepscope.memory import SimpleMemoryProfiler  # noqa: E402

Begin = Callable[..., Any]


def traces_of_ours() -> list[str]:
    """What of torch is not its own, and what lies on the stack of hooks."""
    autograd = torch._C._autograd
    places = {
        "enter": saved_tensors_hooks.__enter__,
        "exit": saved_tensors_hooks.__exit__,
        "disable": autograd._saved_tensors_hooks_disable,
        "enable": autograd._saved_tensors_hooks_enable,
        "register": autograd.SavedTensor.register_hooks,
        "apply": torch.autograd.Function.__dict__["apply"].__func__,
        "backward": torch.autograd.backward,
    }
    found = [name for name, thing in places.items() if "_stepscope_hooks" in _module_of(thing)]
    if hooks_on_the_stack():
        found.append("hooks on the stack")
    return found


def hooks_on_the_stack() -> bool:
    top = getattr(torch._C._autograd, "_top_saved_tensors_default_hooks", None)
    if top is not None:
        return top(True) is not None
    message = "probe"  # torch before 2.8: switching them off is refused where there are any
    try:
        torch._C._autograd._saved_tensors_hooks_disable(message)
    except RuntimeError:
        return True
    finally:
        torch._C._autograd._saved_tensors_hooks_enable()
    return False


def _module_of(thing: Any) -> str:
    return str(getattr(getattr(thing, "__code__", None), "co_filename", ""))


@pytest.fixture
def begin(tmp_path: Path) -> Iterator[Begin]:
    """Begins to measure a model; afterwards nothing of ours may be left, and nothing may have failed."""
    started: list[Any] = []

    def start(model: nn.Module, optimizer: Any = None, steps: int = 1000) -> Any:
        optimizer = optimizer or torch.optim.SGD(model.parameters(), lr=0.1)
        started.append(SimpleMemoryProfiler(model, optimizer, tmp_path / f"log{len(started)}", total_steps=steps))
        return started[-1]

    yield start
    for profiler in started:
        profiler._measurement.end(complete=True)
        failed = [problem for problem in profiler.problems if "pages" not in problem]
        assert failed == []
    assert traces_of_ours() == []


def kept_now(profiler: Any) -> dict[str, int]:
    """Path → bytes of what autograd keeps."""
    ledger, nodes = profiler._measurement.state.ledger, profiler._measurement.state.nodes
    found: dict[str, int] = {}
    for (category, node), size in ledger.layout().items():
        if category >= 5:
            found[nodes.paths[node]] = found.get(nodes.paths[node], 0) + size
    return found


@pytest.mark.parametrize("name", CASES)
def test_what_autograd_keeps(name: str, begin: Begin) -> None:
    model, batch = make(name)
    truth = kept_bytes(model, lambda: model(batch))
    assert truth > 0
    profiler = begin(model)
    output = model(batch)
    kept = sum(kept_now(profiler).values())
    assert abs(kept - truth) <= 0.01 * truth
    assert kept == truth
    scalar(output).backward()
    if name == "checkpointed block":  # torch 2.13 keeps its input until the garbage collector comes
        del output
        gc.collect()
    assert kept_now(profiler) == {}


@pytest.mark.parametrize("name", CASES)
def test_the_same_bits(name: str, begin: Begin) -> None:
    def train(measured: bool) -> list[Any]:
        model, batch = make(name)
        optimizer = torch.optim.Adam(model.parameters())
        profiler = begin(model, optimizer, 3) if measured else None
        torch.manual_seed(1)
        for _ in range(3):
            loss = scalar(model(batch))
            loss.backward()
            optimizer.step()
            optimizer.zero_grad()
            if profiler is not None:
                profiler.step()
        return [loss.detach(), *(p.detach() for p in model.parameters())]

    for with_ours, without in zip(train(True), train(False)):
        assert torch.equal(with_ours, without)


def test_let_go_without_a_backward_pass(begin: Begin) -> None:
    model, batch = make("mlp")
    profiler = begin(model)
    loss = scalar(model(batch))
    assert sum(kept_now(profiler).values()) > 0
    del loss
    assert kept_now(profiler) == {}


def test_nothing_holds_itself(begin: Begin) -> None:
    """Without the garbage collector all of ours goes with the graph."""
    models = [make(name) for name in CASES if name != "checkpointed block"]
    for model, _ in models:
        begin(model)
    kept = sys.modules["_stepscope_hooks.kept_tensors"].Kept
    gc.collect()
    gc.disable()
    try:
        for model, batch in models:
            output = scalar(model(batch)) + sum(p.exp().tanh().sigmoid().sum() for p in model.parameters())
            assert any(type(thing) is kept for thing in gc.get_objects())
            output.backward()
            del output
            assert not any(type(thing) is kept for thing in gc.get_objects())
    finally:
        gc.enable()


def raised(call: Callable[[], Any]) -> str:
    with pytest.raises(RuntimeError) as caught:
        call()
    return str(caught.value)


def changed_in_place(kind: str) -> Any:
    weight = torch.ones(3, requires_grad=True)
    if kind == "output":
        result = (weight * 1).exp()
        result.add_(1)
    elif kind == "input":
        middle = weight * 2
        result = middle * middle
        middle.add_(1)
    elif kind == "leaf":
        other = torch.ones(3)
        result = weight * other
        other.add_(1)
    else:
        middle = weight * 2
        result = middle[:2] * middle[1:]
        middle.mul_(3)
    return result.sum().backward()


@pytest.mark.parametrize("kind", ["output", "input", "leaf", "view"])
@pytest.mark.parametrize("anomaly", [False, True])
@pytest.mark.filterwarnings("ignore:Error detected in")
def test_changed_in_place(kind: str, anomaly: bool, begin: Begin) -> None:
    with torch.autograd.set_detect_anomaly(anomaly):
        plain = raised(lambda: changed_in_place(kind))
        begin(make("mlp")[0])
        ours = raised(lambda: changed_in_place(kind))
    if kind == "view":  # which is gone: who would have made it now is not known
        plain = re.sub(r", which is output 0 of \w+,", "", plain)
    assert ours == plain
    assert "modified by an inplace operation" in plain


def test_twice_backward(begin: Begin) -> None:
    def twice() -> None:
        weight = torch.ones(3, requires_grad=True)
        loss = (weight.exp() * weight).sum()
        loss.backward()
        loss.backward()

    plain = raised(twice)
    begin(make("mlp")[0])
    assert raised(twice) == plain


def test_retained_and_double(begin: Begin) -> None:
    def gradients() -> list[Any]:
        torch.manual_seed(0)
        net = nn.Sequential(nn.Linear(4, 4), nn.Tanh(), nn.Linear(4, 1))
        x = torch.randn(3, 4, requires_grad=True)
        out = net(x).sum()
        out.backward(retain_graph=True)
        out.backward(retain_graph=True)
        (first,) = torch.autograd.grad(out, x, create_graph=True)
        first.square().sum().backward()
        return [x.grad, first.detach(), *(p.grad for p in net.parameters())]

    plain = gradients()
    begin(make("mlp")[0])
    for a, b in zip(gradients(), plain):
        assert torch.equal(a, b)


class Fused(Function):
    """As in Megatron-LM: the gradient is added to what hangs at the parameter."""

    @staticmethod
    def forward(ctx: Any, x: Any, weight: Any) -> Any:
        ctx.save_for_backward(x, weight)
        return x * weight

    @staticmethod
    def backward(ctx: Any, gradient: Any) -> Any:
        x, weight = ctx.saved_tensors
        weight.main_grad += (gradient * x).sum(0)
        return gradient * weight, None


def test_functions_of_the_job(begin: Begin) -> None:
    class Layer(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.weight = nn.Parameter(torch.full((256,), 2.0))
            self.weight.main_grad = torch.zeros(256)

        def forward(self, x: Any) -> Any:
            return Fused.apply(x, self.weight)

    layer = Layer()
    profiler = begin(layer)
    x = torch.ones(16, 256)
    hidden = x.requires_grad_() * 3
    output = layer(hidden)
    assert kept_now(profiler)[""] >= 16 * 256 * 4  # the hidden states, of the model that is one layer
    output.sum().backward()
    assert torch.equal(layer.weight.main_grad, torch.full((256,), 48.0))
    assert kept_now(profiler) == {}


def test_functions_let_go(begin: Begin) -> None:
    class Net(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.weight = nn.Parameter(torch.ones(64))
            self.weight.main_grad = torch.zeros(64)

        def forward(self, x: Any) -> Any:
            return Fused.apply(x * self.weight, self.weight)

    net = Net()
    profiler = begin(net)
    output = net(torch.ones(4, 64))
    assert sum(kept_now(profiler).values()) == 2 * 4 * 64 * 4  # x and x * weight
    output.sum().backward(retain_graph=True)
    assert sum(kept_now(profiler).values()) == 2 * 4 * 64 * 4
    output.sum().backward()
    assert kept_now(profiler) == {}
    again = net(torch.ones(4, 64))
    del again
    assert kept_now(profiler) == {}


def test_torch_func(begin: Begin) -> None:
    profiler = begin(make("mlp")[0])
    assert torch.allclose(torch.func.grad(lambda v: v.sin().sum())(torch.zeros(3)), torch.ones(3))
    assert torch.func.jacrev(torch.sin)(torch.zeros(2)).shape == (2, 2)
    assert torch.func.vmap(torch.func.grad(lambda v: v.sin()))(torch.zeros(4)).sum() == 4
    assert torch.ones(1, requires_grad=True).exp().grad_fn is not None
    profiler.point()
    kept = torch.ones(8, requires_grad=True).exp()
    assert sum(kept_now(profiler).values()) == 8 * 4  # ours are there again
    del kept


def test_hooks_on_one_saved_tensor(begin: Begin) -> None:
    profiler = begin(make("mlp")[0])
    weight = torch.ones(3, requires_grad=True)
    result = weight.exp()
    asked: list[str] = []

    def pack(tensor: Any) -> Any:
        asked.append("pack")
        return tensor * 2

    def unpack(value: Any) -> Any:
        asked.append("unpack")
        return value

    if not hasattr(result.grad_fn._raw_saved_result, "data"):
        pytest.skip("torch before 2.8 shows nothing of a saved tensor; it refuses, as where there are hooks")
    result.grad_fn._raw_saved_result.register_hooks(pack, unpack)
    assert sum(kept_now(profiler).values()) == 0
    with pytest.raises(RuntimeError, match="only one pair of hooks is allowed"):
        result.grad_fn._raw_saved_result.register_hooks(pack, unpack)
    result.sum().backward()
    assert asked == ["pack", "unpack"]
    assert torch.allclose(weight.grad, 2 * result.detach())


def test_hooks_of_the_job(begin: Begin) -> None:
    model, batch = make("mlp")
    begin_before = copy.deepcopy(model)
    with save_on_cpu():
        scalar(begin_before(batch)).backward()
    calls: list[str] = []

    def pack(tensor: Any) -> Any:
        calls.append("pack")
        return (tensor.clone(), "more")

    def unpack(value: Any) -> Any:
        calls.append("unpack")
        return value[0]

    profiler = begin(model)
    with saved_tensors_hooks(pack, unpack) as nothing:
        assert nothing is None
        output = model(batch)
    clones = calls.count("pack")
    assert clones > 0
    kept = sum(kept_now(profiler).values())  # the clones: inputs and weights too, each saved once more
    assert kept > kept_bytes(begin_before, lambda: begin_before(batch))
    scalar(output).backward()
    assert calls.count("unpack") == clones
    assert kept_now(profiler) == {}
    for mine, plain in zip(model.parameters(), begin_before.parameters()):
        assert torch.equal(mine.grad, plain.grad)


def test_hooks_of_the_job_around_the_begin_and_the_end(begin: Begin) -> None:
    """Ours wait below or do not come at all: the job's `with` takes away its own hooks."""
    seen: list[int] = []
    model, batch = make("mlp")

    def pack(tensor: Any) -> Any:
        seen.append(1)
        return tensor.detach()

    own = saved_tensors_hooks(pack, lambda tensor: tensor)
    with own:
        profiler = begin(model)
        model(batch)
    count = len(seen)
    assert count > 0
    output = model(batch)
    assert len(seen) == count
    assert sum(kept_now(profiler).values()) > 0  # now there is room for ours
    del output
    with own:
        profiler._steps_left = 0
        profiler._measurement.end(complete=True)
        model(batch)
        assert len(seen) > count
    assert traces_of_ours() == []


@pytest.mark.parametrize("reentrant", [False, True])
def test_recomputed(reentrant: bool, begin: Begin) -> None:
    torch.manual_seed(0)
    model = Checkpointed(reentrant)
    for _ in range(3):
        model.block.append(nn.ReLU()).append(nn.Linear(512, 512))
    profiler = begin(model)
    hidden = torch.randn(128, 512).requires_grad_() * 1
    scalar(model(hidden)).backward(retain_graph=True)  # gradients are there from now on
    gc.collect()
    profiler.step()
    output = model(hidden)
    assert sum(kept_now(profiler).values()) == 128 * 512 * 4
    scalar(output).backward()
    del output
    gc.collect()
    assert kept_now(profiler) == {}
    peak = profiler._measurement.state.step_peak
    assert peak["event"] == "backward"
    tree = {profiler._measurement.state.nodes.paths[node]: own for node, own, _ in peak["trees"]["activation"]}
    one = 128 * 512 * 4
    recomputed = {path: own for path, own in tree.items() if own and path}
    assert recomputed == {f"block.{i}": one for i in (1, 3, 5, 7)}  # the ReLUs, while the block was recomputed
    assert tree[""] in (one, 2 * one)  # the input, and where torch is done with it late the output


def compiled(model: nn.Module, backend: str, in_place: bool) -> Any:
    if in_place:
        model.compile(backend=backend)
        return model
    return torch.compile(model, backend=backend)


@pytest.mark.parametrize("backend", ["eager", "aot_eager"])
@pytest.mark.parametrize("in_place", [False, True])
def test_compiled(backend: str, in_place: bool, begin: Begin) -> None:
    def train(measured: bool) -> tuple[list[Any], int, dict[str, int]]:
        torch._dynamo.reset()
        torch._dynamo.utils.counters.clear()
        model, batch = make("functional attention")
        call = compiled(model, backend, in_place)
        optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
        profiler = begin(call, optimizer) if measured else None
        kept: dict[str, int] = {}
        for _ in range(3):
            loss = scalar(call(batch))
            kept = kept_now(profiler) if profiler is not None else {}
            loss.backward()
            optimizer.step()
            optimizer.zero_grad()
        frames = torch._dynamo.utils.counters["frames"]["ok"]
        return [p.detach() for p in model.parameters()], frames, kept

    plain, frames, _ = train(False)
    ours, with_ours, kept = train(True)
    assert all(torch.equal(a, b) for a, b in zip(ours, plain))
    assert with_ours == frames > 0
    assert sum(kept.values()) > 0


def test_compiled_function_of_torch_func(begin: Begin) -> None:
    begin(make("mlp")[0])
    torch._dynamo.reset()
    for backend in ("eager", "aot_eager"):
        call = torch.compile(lambda v: torch.func.grad(lambda w: w.sin().sum())(v), backend=backend)
        assert torch.allclose(call(torch.zeros(3)), torch.ones(3))
        assert torch.allclose(call(torch.zeros(3)), torch.ones(3))


def test_compiled_with_a_function_of_the_job(begin: Begin) -> None:
    torch._dynamo.reset()

    class Double(Function):
        @staticmethod
        def forward(ctx: Any, x: Any) -> Any:
            ctx.save_for_backward(x)
            return x * 2

        @staticmethod
        def backward(ctx: Any, gradient: Any) -> Any:
            return gradient * 2

    begin(make("mlp")[0])
    call = torch.compile(lambda v: Double.apply(v).sum(), backend="aot_eager", fullgraph=True)
    x = torch.ones(3, requires_grad=True)
    call(x).backward()
    assert torch.equal(x.grad, torch.full((3,), 2.0))


def test_without_gradients(begin: Begin) -> None:
    model, batch = make("mlp")
    profiler = begin(model)
    with torch.no_grad():
        first = model(batch)
    with torch.inference_mode():
        second = model(batch)
    assert torch.equal(first, second)
    assert kept_now(profiler) == {}


def test_other_threads(begin: Begin) -> None:
    """The backward pass on another thread, as a server may have it; and modules that run there."""
    model, batch = make("mlp")
    profiler = begin(model)
    loss = scalar(model(batch))
    thread = threading.Thread(target=loss.backward)
    thread.start()
    thread.join()
    assert kept_now(profiler) == {}
    assert all(p.grad is not None for p in model.parameters())
    thread = threading.Thread(target=lambda: model(batch))
    thread.start()
    thread.join()


def test_errors_of_the_job(begin: Begin) -> None:
    class Breaks(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.first, self.second = nn.Linear(4, 4), nn.Linear(4, 4)
            self.breaks = True

        def forward(self, x: Any) -> Any:
            x = self.first(x).relu()
            if self.breaks:
                raise ValueError("broken")
            return self.second(x)

    class BreaksBackward(Function):
        @staticmethod
        def forward(ctx: Any, x: Any) -> Any:
            return x.clone()

        @staticmethod
        def backward(ctx: Any, gradient: Any) -> Any:
            raise ValueError("broken too")

    model = Breaks()
    profiler = begin(model)
    with pytest.raises(ValueError, match="broken"):
        model(torch.ones(2, 4))
    gc.collect()
    assert kept_now(profiler) == {}
    model.breaks = False
    output = BreaksBackward.apply(model(torch.ones(2, 4)))
    with pytest.raises(ValueError, match="broken too"):
        output.sum().backward()
    del output
    output = model(torch.ones(2, 4))
    kept = kept_now(profiler)
    assert set(kept) == {"first", "", "second"} or set(kept) == {"first", ""}, kept  # where they belong, again
    output.sum().backward()
    assert kept_now(profiler) == {}


def test_copies_and_files(begin: Begin, tmp_path: Path) -> None:
    model, batch = make("mlp")
    begin(model)
    scalar(model(batch)).backward()
    twin = copy.deepcopy(model)
    assert b"stepscope" not in pickle.dumps(twin)
    assert b"_stepscope" not in pickle.dumps(model)
    for parameter in twin.parameters():
        assert not getattr(parameter, "_post_accumulate_grad_hooks", None)
    torch.save(model.state_dict(), tmp_path / "model.pt")


def test_two_at_once(begin: Begin) -> None:
    model, batch = make("mlp")
    outer, inner = begin(model), begin(model)
    output = model(batch)
    assert kept_now(outer) == kept_now(inner) != {}
    inner._measurement.end(complete=True)
    scalar(output).backward()
    assert kept_now(outer) == {}


def test_a_mode_of_the_job(begin: Begin) -> None:
    """Code of the job's own that sees all calls of torch sees none of ours."""
    from torch.overrides import TorchFunctionMode

    calls: list[str] = []

    class Log(TorchFunctionMode):
        def __torch_function__(self, function: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
            calls.append(getattr(function, "__name__", str(function)))
            return function(*args, **(kwargs or {}))

    def run() -> list[str]:
        calls.clear()
        model, batch = make("mlp")
        with Log():
            loss = scalar(model(batch))
        loss.backward()
        return list(calls)

    plain = run()
    begin(make("mlp")[0])
    assert run() == plain
