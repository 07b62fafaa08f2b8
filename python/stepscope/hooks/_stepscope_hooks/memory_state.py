"""Memory by category and module while a model is trained: memory.log and memory_state.json of this process.

What is told of: forward and backward passes of the model as they end, and steps. Between them the tensors of model and
optimizers are looked at; what autograd keeps is seen as it comes and goes, gradients as they are made.
"""

from __future__ import annotations

import threading
import time

from . import allocator, memory_log, phases
from .kept_tensors import keeper
from .ledger import (
    ACTIVATION,
    BUFFER,
    CATEGORIES,
    GRADIENT,
    INPUT,
    MASTER_PARAMETER,
    OPTIMIZER_STATE,
    PARAMETER,
    Ledger,
)
from .memory_file import Record
from .memory_log import Rows
from .memory_nodes import ROOT, Nodes
from .memory_tensors import Model, OfOptimizers
from .module_hooks import ModuleHook
from .storages import is_lazy

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable
    from typing import Any

    from .ledger import Layout


class MemoryState:
    """`optimizers` is asked at each look: some come late. What fails is told to `problem`, never raised."""

    def __init__(
        self,
        folder: str,
        about: dict[str, Any],
        optimizers: Callable[[], Iterable[Any]],
        problem: Callable[[str], None],
    ) -> None:
        self.folder, self.optimizers = folder, optimizers
        self.nodes = Nodes()
        self.record = Record(about, self.nodes)
        self.tell = problem
        self.ledger = Ledger(self.running_node, self.problem)
        self.models: list[Model] = []
        self.of_optimizers: OfOptimizers | None = None
        self.hooks: list[Any] = []  # of modules and parameters
        self.running: dict[int, list[int]] = {}  # thread → nodes of the modules that run
        self.device: Any = None
        self.started = time.time()
        self.step = self.forwards = self.backwards = 0  # number of the step; passes in it
        self.passes_seen = 0
        self.step_peak: dict[str, Any] | None = None

    def problem(self, sentence: str) -> None:
        if sentence not in self.record.notes:
            self.record.note(sentence)
            self.tell(sentence)

    # Begin and end ------------------------------------------------------------------------------------------------
    def begin(self, models: Iterable[tuple[str, Any]]) -> None:
        """`models`: each with the path that it gets, "" where there is one."""
        self.models = [Model(module, root, self.nodes) for root, module in models]
        for model in self.models:
            self._hook(model)
        first = next((p for model in self.models for _, _, p in model.parameters), None)
        self.device = getattr(first, "device", None)
        self.record.about["device"] = None if self.device is None else str(self.device)
        self.look()
        self.ledger.cut()
        keeper.expect()
        keeper.comes(self.ledger)
        self.point("begin", "params,grads,os_params", create=True)

    def end(self, complete: bool) -> None:
        """Leaves model and torch as they were."""
        keeper.leave(self.ledger)
        for hook in self.hooks:
            hook.remove()
        self.hooks = []
        self.write(complete)

    def write(self, complete: bool) -> None:
        self.record.write(self.folder, complete=complete, steps_done=self.step, allocator_reason=self.reason())

    def reason(self) -> str | None:
        return None if any("allocator" in point for point in self.record.points) else allocator.figures(self.device)[1]

    def forget(self) -> None:
        """In a forked child: nothing here is its own, but the hooks may lie in its thread."""
        keeper.leave(self.ledger)

    # Hooks --------------------------------------------------------------------------------------------------------
    def _hook(self, model: Model) -> None:
        for node, module in model.modules:
            if id(module) in model.called:
                inputs = self.called_with if module is model.module else None
                self.hooks.append(ModuleHook(module, *self._enter_and_leave(node), inputs=inputs))
        for node, _, parameter in model.parameters:
            register = getattr(parameter, "register_post_accumulate_grad_hook", None)
            if register is None or is_lazy(parameter) or not (parameter.is_leaf and parameter.requires_grad):
                continue  # its gradient is seen when the backward pass is over
            try:
                self.hooks.append(register(self._gradient_seen(node)))
            except Exception as error:
                self.problem(f"a gradient is seen late: {type(error).__name__}: {error}")

    def _enter_and_leave(self, node: int) -> tuple[Callable[[], None], Callable[[], None]]:
        running, compiling = self.running, phases.compiling()

        def enter() -> None:
            if not compiling():
                running.setdefault(threading.get_ident(), [ROOT]).append(node)

        def leave() -> None:
            nodes = running.get(threading.get_ident(), [])
            if node in nodes:
                del nodes[len(nodes) - 1 - nodes[::-1].index(node) :]  # with those that an exception passed by

        return enter, leave

    def running_node(self) -> int:
        return self.running.get(threading.get_ident(), (ROOT,))[-1]

    def _gradient_seen(self, node: int) -> Callable[[Any], None]:
        ledger = self.ledger

        def accumulated(parameter: Any) -> None:
            try:
                if parameter.grad is not None:
                    ledger.add(GRADIENT, node, parameter.grad)
            except Exception as error:
                ledger.failed(error)

        return accumulated

    def called_with(self, args: Any, kwargs: Any) -> None:
        try:
            self.ledger.take_inputs(_tensors_in((args, kwargs)))
        except Exception as error:
            self.ledger.failed(error)

    # Looking ------------------------------------------------------------------------------------------------------
    def look(self) -> None:
        hold = self.ledger.hold
        hold(PARAMETER, [(node, p) for model in self.models for node, _, p in model.parameters])
        hold(BUFFER, [pair for model in self.models for pair in model.buffers()])
        self.look_at_gradients()
        found = self.of_optimizers = OfOptimizers(self.optimizers(), self.models, self.nodes)
        hold(MASTER_PARAMETER, [(node, tensor) for node, _, tensor in found.groups])
        hold(OPTIMIZER_STATE, [(node, tensor) for node, _, tensor in found.states])

    def look_at_gradients(self) -> None:
        self.ledger.hold(GRADIENT, [pair for model in self.models for pair in model.gradients()])

    # What happens -------------------------------------------------------------------------------------------------
    def forward_ended(self) -> None:
        keeper.look()
        self.forwards += 1
        self.passes_seen += 1
        self.point("forward", "activation_base" if self.passes_seen == 1 else "")

    def backward_ended(self) -> None:
        keeper.backward_ended()
        self.ledger.backward_ended()
        self.look_at_gradients()
        self.backwards += 1
        self.point("backward")

    def step_ended(self, last: bool) -> None:
        keeper.look()
        self.look()
        self.point("step", "all" if last else "os_state")
        end = self.record.state(self.ledger.layout(), step=self.step, event="step")
        self.record.add_step(self.step_peak, end)
        self.step += 1
        self.forwards = self.backwards = 0
        self.step_peak = None
        if not last:
            self.write(False)

    # Points -------------------------------------------------------------------------------------------------------
    def point(self, event: str, options: str = "", create: bool = False) -> None:
        """A moment: in the log, in the record, and the end of an interval with a peak of its own."""
        now, sums = time.time(), self.ledger.sums()
        where = {"step": self.step, "micro_batch": self._micro_batch(event), "event": event}
        point: dict[str, Any] = {"time_s": round(now - self.started, 6), "unix_ns": int(now * 1e9), **where}
        point["bytes"] = dict(zip(CATEGORIES, sums))
        point["total_bytes"] = sum(sums)
        if len(self.ledger.devices) > 1:
            point["devices"] = {name: dict(zip(CATEGORIES, each)) for name, each in self.ledger.devices.items()}
        told = allocator.figures(self.device)[0]
        if told is not None:
            point["allocator"] = told
        self.record.add_point(point)
        self._keep_largest(sums, where)
        self._keep_peak(where)
        memory_log.append(self.folder, self._text(now - self.started, sums, options), create)
        self.ledger.cut()

    def _text(self, seconds: float, sums: list[int], options: str) -> str:
        asked = memory_log.SECTIONS if options == "all" else tuple(options.split(","))
        layout = self.ledger.layout() if asked != ("",) else {}
        if options == "all":  # of what is gone by the end of a step, the most that there was
            layout.update(self._largest(ACTIVATION))
            layout.update(self._largest(INPUT))
        return memory_log.block(seconds, sums, Rows(self.models, self.of_optimizers, layout), asked)

    def _largest(self, category: int) -> Layout:
        tree = self.record.largest.get(CATEGORIES[category], {"tree": ()})["tree"]
        return {(category, node): own for node, own, _ in tree}

    def _micro_batch(self, event: str) -> int | None:
        passes = {"forward": self.forwards, "backward": self.backwards}.get(event)
        return None if passes is None else passes - 1

    def _keep_largest(self, sums: list[int], where: dict[str, Any]) -> None:
        largest, layout = self.record.largest, None
        for number, name in enumerate(CATEGORIES):
            if sums[number] > largest.get(name, {"bytes": 0})["bytes"]:
                layout = layout or self.ledger.layout()
                largest[name] = {**where, "bytes": sums[number], "tree": self.nodes.branches(layout, number)}

    def _keep_peak(self, where: dict[str, Any]) -> None:
        """The peak since the last point, where it is the highest of its step."""
        ledger = self.ledger
        if self.step_peak is not None and self.step_peak["total_bytes"] >= ledger.peak:
            return
        self.step_peak = self.record.state(ledger.layout_at_peak(), **where, unix_ns=ledger.peak_unix_ns)
        if self.record.peak is None or self.record.peak["total_bytes"] < ledger.peak:
            self.record.peak = self.step_peak


def _tensors_in(value: Any, depth: int = 4) -> Iterable[Any]:
    """Tensors in nested tuples, lists, mappings and plain objects such as a batch of a tokenizer."""
    import torch

    if isinstance(value, torch.Tensor):
        yield value
    elif depth > 0:
        inner: Iterable[Any] = ()
        if isinstance(value, dict):
            inner = value.values()
        elif isinstance(value, (tuple, list)):
            inner = value
        elif isinstance(getattr(value, "data", None), dict):  # BatchEncoding and other UserDict
            inner = value.data.values()
        for part in inner:
            yield from _tensors_in(part, depth - 1)
