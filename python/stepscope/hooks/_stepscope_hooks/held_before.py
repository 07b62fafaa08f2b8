"""What the program holds when a recording of memory begins: no event of the recording tells who allocated it.

Parameters, buffers and the state of optimizers by device and module, each storage counted once. Gradients are left out:
those of before are mostly freed in the first step, where no event says which they were.
"""

from __future__ import annotations

from .memory_nodes import ROOT, Nodes
from .memory_tensors import Model, OfOptimizers
from .modules import named
from .storages import shared_out

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable
    from typing import Any


def held_before(models: list[Any], optimizers: Iterable[Any]) -> list[tuple[str, str, str, int]]:
    """Rows of device, category, path of the module, bytes."""
    nodes = Nodes()
    found = [Model(model, root, nodes) for root, model in named(models)]
    of_optimizers = OfOptimizers(optimizers, found, nodes)
    held = [("parameter", node, tensor) for model in found for node, _, tensor in model.parameters]
    held += [("buffer", node, tensor) for model in found for node, tensor in model.buffers()]
    held += [("master parameter", node, tensor) for node, _, tensor in of_optimizers.groups]
    held += [("optimizer state", node, tensor) for node, _, tensor in of_optimizers.states]
    sums: dict[tuple[str, str, str], int] = {}
    storages, _ = shared_out((number, tensor) for number, (_, _, tensor) in enumerate(held))
    for shared in storages.values():
        for number, size in shared.shares:
            category, node, _ = held[number]
            key = str(shared.storage.device), category, nodes.paths[_module(nodes, node)]
            sums[key] = sums.get(key, 0) + size
    return [(*key, size) for key, size in sums.items() if size > 0]


def _module(nodes: Nodes, node: int) -> int:
    while node != ROOT and not nodes.classes[node]:
        node = nodes.parents[node]
    return node
