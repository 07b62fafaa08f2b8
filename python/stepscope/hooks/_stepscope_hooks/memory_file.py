"""memory_state.json: what memory.log rounds away, and all the states that it does not show (docs/run-folder.md).

Written whole and renamed, at the end of each step, so that a reader never sees half of it and a kill costs a step.
"""

from __future__ import annotations

import json
import os

from .ledger import CATEGORIES

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from .ledger import Layout
    from .memory_nodes import Nodes

SCHEMA_VERSION = 1
MOST_POINTS = 20_000
MOST_STEP_STATES = 32  # of each kind: the first half and the newest


class Record:
    """What is to be written."""

    def __init__(self, about: dict[str, Any], nodes: Nodes) -> None:
        self.about, self.nodes = about, nodes
        self.notes: list[str] = []
        self.points: list[dict[str, Any]] = []
        self.points_left_out = 0
        self.largest: dict[str, dict[str, Any]] = {}  # category → the state in which it had most bytes
        self.peak: dict[str, Any] | None = None
        self.step_peaks: list[dict[str, Any]] = []
        self.step_ends: list[dict[str, Any]] = []
        self.steps_left_out = 0

    def note(self, sentence: str) -> None:
        if sentence not in self.notes and len(self.notes) < 20:
            self.notes.append(sentence)

    def state(self, layout: Layout, **where: Any) -> dict[str, Any]:
        """A state with the bytes of all nodes by category."""
        trees = {name: self.nodes.branches(layout, number) for number, name in enumerate(CATEGORIES)}
        sums = {name: sum(own for _, own, _ in tree) for name, tree in trees.items()}
        return {**where, "total_bytes": sum(sums.values()), "bytes": sums, "trees": trees}

    def add_point(self, point: dict[str, Any]) -> None:
        if len(self.points) >= MOST_POINTS:
            self.points_left_out += 1
            del self.points[MOST_POINTS // 2]
        self.points.append(point)

    def add_step(self, peak: dict[str, Any] | None, end: dict[str, Any]) -> None:
        for kept, state in ((self.step_peaks, peak), (self.step_ends, end)):
            if state is not None:
                kept.append(state)
            if len(kept) > MOST_STEP_STATES:
                del kept[MOST_STEP_STATES // 2]
                self.steps_left_out += kept is self.step_ends

    def write(self, folder: str, **more: Any) -> None:
        nodes = {"path": self.nodes.paths, "parent": self.nodes.parents, "class": self.nodes.classes}
        whole = {
            "schema_version": SCHEMA_VERSION,
            "kind": "memory_state",
            **self.about,
            **more,
            "categories": CATEGORIES,
            "notes": self.notes,
            "nodes": nodes,
            "peak": self.peak,
            "largest": self.largest,
            "step_peaks": self.step_peaks,
            "step_ends": self.step_ends,
            "steps_left_out": self.steps_left_out,
            "points": self.points,
            "points_left_out": self.points_left_out,
        }
        path = os.path.join(folder, "memory_state.json")
        with open(path + ".tmp", "w") as out:
            json.dump(whole, out, separators=(",", ":"))
        os.replace(path + ".tmp", path)
