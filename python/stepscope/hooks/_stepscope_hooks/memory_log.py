"""memory.log, a block for each moment, as scripts for InternEvo's read it: the same words, order and spacing.

Its five classes are there. What autograd keeps of the model's inputs counts as activation; buffers have no class in it
and are in memory_state.json alone. A MB is 2^20 bytes, rounded to hundredths.
"""

from __future__ import annotations

import os

from .ledger import ACTIVATION, GRADIENT, INPUT, MASTER_PARAMETER, OPTIMIZER_STATE, PARAMETER
from .memory_nodes import ROOT

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from .ledger import Layout
    from .memory_tensors import Model, OfOptimizers

_MB = 1024 * 1024
SECTIONS = ("params", "grads", "os_params", "os_state", "activation_base")


class Branch:
    def __init__(self, name: str) -> None:
        self.name = name
        self.own = 0
        self.below: dict[str, Branch] = {}

    def add(self, path: str, own: int) -> None:
        branch = self
        for part in path.split(".") if path else ():
            branch = branch.below.setdefault(part, Branch(part))
        branch.own += own

    def total(self) -> int:
        return self.own + sum(branch.total() for branch in self.below.values())

    def lines(self, above: str = "") -> list[str]:
        name = f"{above}.{self.name}" if above else self.name
        found = [f"layer: {name}, layer_mem: {_mb(self.own)}, total_mem: {_mb(self.total())}\n"]
        for branch in self.below.values():
            found += branch.lines(name)
        return found


class Rows:
    """Which layers a section names, in which order, and the bytes that each has in this state."""

    def __init__(self, models: list[Model], of_optimizers: OfOptimizers | None, layout: Layout) -> None:
        self.models, self.of_optimizers, self.layout = models, of_optimizers, layout

    def trees(self, section: str) -> list[Branch]:
        if section == "activation_base":
            return self._activations()
        root, category, rows = {
            "params": ("param_mem", PARAMETER, self._parameters),
            "grads": ("grad_mem", GRADIENT, self._trained),
            "os_params": ("os_params_mem", MASTER_PARAMETER, self._groups),
            "os_state": ("os_state_mem", OPTIMIZER_STATE, self._states),
        }[section]
        branch = Branch(root)
        for name, node in rows():
            branch.add(name, self.layout.get((category, node), 0))
        return [branch]

    def _parameters(self) -> list[tuple[str, int]]:
        return [(path, node) for model in self.models for node, path, _ in model.parameters]

    def _trained(self) -> list[tuple[str, int]]:
        return [(path, node) for model in self.models for node, path, p in model.parameters if p.requires_grad]

    def _groups(self) -> list[tuple[str, int]]:
        return [(name, node) for node, name, _ in self.of_optimizers.groups] if self.of_optimizers else []

    def _states(self) -> list[tuple[str, int]]:
        return [(name, node) for node, name, _ in self.of_optimizers.states] if self.of_optimizers else []

    def _activations(self) -> list[Branch]:
        """A tree for each model; what ran outside of all modules counts for the first."""
        kept: dict[int, int] = {}
        for (category, node), size in self.layout.items():
            if category in (ACTIVATION, INPUT):
                kept[node] = kept.get(node, 0) + size
        found = []
        for number, model in enumerate(self.models):
            branch = Branch(f"activations_{number}")
            if number == 0:
                branch.add("", kept.pop(ROOT, 0))
            for node, module in model.modules:
                if node in kept or not module.__dict__.get("_modules"):
                    branch.add(model.below(node), kept.pop(node, 0))
            found.append(branch)
        return found


def block(seconds: float, sums: Sequence[int], rows: Rows, asked: Iterable[str]) -> str:
    """`sums`: bytes by category. `asked`: names of SECTIONS."""
    classes = {
        "params": sums[PARAMETER],
        "grads": sums[GRADIENT],
        "os_params": sums[MASTER_PARAMETER],
        "os_state": sums[OPTIMIZER_STATE],
        "activation": sums[ACTIVATION] + sums[INPUT],
    }
    text = f"Memory State:\ntime: {seconds}\n---summary---\ntotal_memory: {_mb(sum(classes.values()))}\n"
    text += ", ".join(f"{name}_memory: {_mb(size)}" for name, size in classes.items()) + "\n"
    layout = ""
    for section in SECTIONS:
        if section in asked:
            layout += f"{section}_layout:\n" + "".join(line for tree in rows.trees(section) for line in tree.lines())
    return text + (f"---Layout---\n{layout}" if layout else "") + "\n"


def append(folder: str, text: str, create: bool) -> None:
    with open(os.path.join(folder, "memory.log"), "w" if create else "a", encoding="utf-8") as out:
        out.write(text)


def _mb(size: int) -> str:
    return f"{size / _MB:.2f} MB"
