"""The tree that bytes belong to: the model's modules, their parameters, and what the optimizer has of each.

A node is a number; its path is what the model calls it, without the parts that wrappers add ("module", "_orig_mod").
Node 0, with the empty path, is the whole: what runs outside of all modules counts for it.
"""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from .ledger import Layout

ROOT = 0


class Nodes:
    def __init__(self) -> None:
        self.paths = [""]
        self.parents = [-1]
        self.classes = [""]  # of modules; "" of everything else
        self.numbers = {"": ROOT}

    def add(self, path: str, class_name: str = "") -> int:
        """The node of this path, and those above it; a path that two have is one node."""
        known = self.numbers.get(path)
        if known is not None:
            self.classes[known] = self.classes[known] or class_name
            return known
        parent = self.add(path.rpartition(".")[0]) if path else ROOT
        self.paths.append(path)
        self.parents.append(parent)
        self.classes.append(class_name)
        self.numbers[path] = len(self.paths) - 1
        return self.numbers[path]

    def branches(self, layout: Layout, category: int) -> list[tuple[int, int, int]]:
        """(node, own bytes, with those below), of all nodes that have any, parents first."""
        own = [0] * len(self.paths)
        for (of, node), size in layout.items():
            if of == category:
                own[node] += size
        total = list(own)
        for node in range(len(own) - 1, ROOT, -1):  # children have higher numbers
            total[self.parents[node]] += total[node]
        return [(node, own[node], total[node]) for node in range(len(own)) if total[node] or own[node]]
