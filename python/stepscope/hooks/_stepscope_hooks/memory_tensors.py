"""The tensors of a model and its optimizers that can be looked at between passes, each with its node.

Parameters and buffers stand in the modules, gradients at the parameters, and what else optimizers have in their state
and groups. A tensor of a group that is no parameter of the model is a copy for it to step: a master parameter.
"""

from __future__ import annotations

from .module_hooks import is_compiled_in_place
from .modules import has_forward, is_closed, is_compiled, tree

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator
    from typing import Any

    from .memory_nodes import Nodes

    Tensors = list[tuple[int, Any]]  # node, tensor


class Model:
    """Modules of one model under their paths; `root` is the path of the model itself."""

    def __init__(self, module: Any, root: str, nodes: Nodes) -> None:
        self.module, self.root, self.nodes = module, root, nodes
        self.modules: list[tuple[int, Any]] = []
        self.called = _called(module)
        self.parameters: list[tuple[int, str, Any]] = []  # node, path, parameter
        nodes.add(root, type(module).__name__)
        for path, inner in tree(module, root, lambda _: True):
            self.modules.append((nodes.add(path, type(inner).__name__), inner))
        for path, parameter in self._all("_parameters", "named_parameters"):
            self.parameters.append((nodes.add(path), path, parameter))

    def below(self, node: int) -> str:
        """The path of a node as seen from the model."""
        return self.nodes.paths[node][len(self.root) + 1 if self.root else 0 :]

    def _all(self, attribute: str, function: str) -> Iterator[tuple[str, Any]]:
        for node, module in self.modules:
            held = module.__dict__.get(attribute)
            if not isinstance(held, dict):  # a script: it keeps its own
                held = dict(getattr(module, function)(recurse=False))
            for name, tensor in held.items():
                if tensor is not None:
                    path = self.nodes.paths[node]
                    yield (f"{path}.{name}" if path else name), tensor

    def buffers(self) -> Tensors:
        return [(self.nodes.add(path), tensor) for path, tensor in self._all("_buffers", "named_buffers")]

    def gradients(self) -> Tensors:
        found = ((node, parameter.grad) for node, _, parameter in self.parameters if parameter.is_leaf)
        return [(node, gradient) for node, gradient in found if gradient is not None]


def _called(model: Any) -> set[int]:
    """The modules that torch calls one by one, by their ids: those inside of a compiled one run without hooks."""

    def enters(module: Any) -> bool:
        return not (is_closed(module) or is_compiled_in_place(module))

    return {
        id(module)
        for _, module in tree(model, "", enters)
        if is_compiled(module) or (not is_closed(module) and has_forward(module))
    }


class OfOptimizers:
    """Each row: node, name as InternEvo's log has it ("0.params.3", "3.exp_avg"), tensor."""

    def __init__(self, optimizers: Iterable[Any], models: list[Model], nodes: Nodes) -> None:
        self.paths = {id(p): nodes.paths[node] for model in models for node, _, p in model.parameters}
        self.nodes = nodes
        self.groups: list[tuple[int, str, Any]] = []
        self.states: list[tuple[int, str, Any]] = []
        group = index = 0
        for optimizer in optimizers:
            order: dict[int, tuple[int, str]] = {}
            for values in optimizer.param_groups:
                for name, tensor in _tensors(values):
                    self._add_group(f"{group}.{name}", tensor)
                for place, parameter in enumerate(values["params"]):
                    if id(parameter) not in order:
                        path = self.paths.get(id(parameter)) or f"param_groups.{group}.params.{place}"
                        order[id(parameter)] = (index, path)
                        index += 1
                group += 1
            for parameter, state in list(optimizer.state.items()):
                name = parameter if isinstance(parameter, str) else "other"
                number, path = order.get(id(parameter), (index, f"optimizer.{name}"))
                for name, tensor in _tensors(state):
                    self.states.append((nodes.add(f"{path}.{name}"), f"{number}.{name}", tensor))

    def _add_group(self, name: str, tensor: Any) -> None:
        path = self.paths.get(id(tensor)) or f"param_groups.{name}"
        self.groups.append((self.nodes.add(path), name, tensor))


def _tensors(values: Any) -> Iterator[tuple[str, Any]]:
    """Of a mapping: tensors, and those in lists, tuples and mappings in it."""
    import torch

    if not isinstance(values, dict):
        return
    for name, value in list(values.items()):
        inner: Any = ()
        if isinstance(value, torch.Tensor):
            yield str(name), value
        elif isinstance(value, dict):
            inner = value.items()
        elif isinstance(value, (list, tuple)):
            inner = enumerate(value)
        for key, tensor in inner:
            if isinstance(tensor, torch.Tensor):
                yield f"{name}.{key}", tensor
