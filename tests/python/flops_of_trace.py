"""The FLOPs of a recorded step, from the dims of its operators: src/costs/formulas.cc once more, in Python.

A second count beside the truth, to show that a trace holds what is needed; it is no part of the product.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator
from math import prod
from pathlib import Path
from typing import Any

FUSED = "aten::_scaled_dot_product_flash_attention_for_cpu"
Event = dict[str, Any]
Dims = list[int]


def attention(q: Dims, k: Dims, v: Dims) -> int:
    return prod(q[:-1]) * k[-2] * (q[-1] + v[-1])


def cells(x: Dims, input_weight: Dims, state_weight: Dims) -> int:
    return prod(x[:-1]) * (prod(input_weight) + prod(state_weight))


def convolution(x: Dims, w: Dims, concrete: list[str]) -> int:
    lists: list[Dims] = [json.loads(concrete[at]) for at in (3, 4, 5)]
    if concrete[6] == "True":
        return prod(x) * prod(w[1:])
    out = [(side + 2 * p - d * (kernel - 1) - 1) // s + 1 for side, kernel, s, p, d in zip(x[2:], w[2:], *lists)]
    return prod([x[0], *out, *w])


def convolution_backward(dy: Dims, x: Dims, w: Dims, concrete: list[str]) -> int:
    wanted: list[bool] = json.loads(concrete[10].lower())  # [dx, dw, db]
    return prod(x if concrete[7] == "True" else dy) * prod(w[1:]) * sum(wanted[:2])


def macs(name: str, d: list[Dims], concrete: list[str]) -> int | None:
    """Multiply-adds of an operator; nothing for one that is no product, or that is made of others."""
    if name in ("aten::mm", "aten::bmm", "aten::ger", "aten::mv"):
        return prod(d[0]) * (d[1][-1] if name != "aten::mv" else 1)
    if name in ("aten::addmm", "aten::baddbmm"):
        return prod(d[1]) * d[2][-1]
    if name == "aten::_grouped_mm":
        one_of_groups = len(d[0]) == 3 and len(d[1]) == 2  # each column of the second belongs to one of the first
        return prod(d[0][one_of_groups:]) * d[1][-1]
    if name == "aten::convolution":
        return convolution(d[0], d[1], concrete)
    if name == "aten::convolution_backward":
        return convolution_backward(d[0], d[1], d[2], concrete)
    if name == FUSED:
        return attention(*d[:3])
    if name == FUSED + "_backward":
        return attention(*d[1:4]) * 5 // 2
    if name == "aten::mkldnn_rnn_layer":
        return cells(*d[:3])
    if name == "aten::mkldnn_rnn_layer_backward":
        return 2 * cells(*d[:3])
    return None


class Op:
    def __init__(self, event: Event, above: list[Op]) -> None:
        self.name, self.args, self.above, self.below = event["name"], event.get("args", {}), above, list[Op]()

    @property
    def compiling(self) -> bool:
        return any(op.name.endswith(" (dynamo_timed)") for op in self.above)

    @property
    def node(self) -> Op | None:
        """The innermost function of autograd's engine around it."""
        nodes = [op for op in self.above if op.name.startswith("autograd::engine::evaluate_function: ")]
        return nodes[-1] if nodes else None

    @property
    def tracked(self) -> bool:
        """Autograd keeps it for a later backward: in the engine, a forward that runs again, or create_graph=True."""
        return "Sequence number" in self.args and not self.args.get("Fwd thread id")

    def inside(self, node: Op) -> list[Op]:
        return [*self.above[self.above.index(node) + 1 :], self]

    def aborted(self) -> bool:
        """The last operator of a block that runs again: it keeps its inputs (detach), then is left."""
        again = [op for op in self.node.below if op.tracked] if self.node else []
        return bool(again) and again[-1] is self and all(op.name.endswith("detach") for op in self.below)

    def phase(self) -> str:
        node = self.node
        if node is None:
            return "forward"
        if not any(op.tracked for op in self.inside(node)):
            return "backward"
        # With create_graph=True the whole of the node is tracked, else its own gradients are not.
        own = [op for op in node.below if op.name.startswith("aten::") and not any(o.tracked for o in op.inside(node))]
        return "recompute" if own else "backward"


def operators(path: Path) -> Iterator[Op]:
    events = [e for e in json.loads(path.read_text())["traceEvents"] if e.get("cat") in ("cpu_op", "user_annotation")]
    # A parent may begin and end with its child to the nanosecond: the order of recording decides.
    events.sort(key=lambda e: (e["tid"], e["ts"], -e["dur"], e["args"]["Ev Idx"]))
    stack: list[tuple[float, Any, Op]] = []
    for event in events:
        while stack and (stack[-1][0] <= event["ts"] or stack[-1][1] != event["tid"]):
            stack.pop()
        op = Op(event, [entry[2] for entry in stack])
        for above in op.above:
            above.below.append(op)
        stack.append((event["ts"] + event["dur"], event["tid"], op))
        yield op


def causal_products(found: list[Op]) -> set[int]:
    """Sequence numbers of the products that attention under a causal mask was made of; backward repeats them."""
    inside = (
        op.args.get("Sequence number")
        for op in found
        for above in op.above
        if above.name == "aten::_scaled_dot_product_attention_math" and above.args["Concrete Inputs"][5] == "True"
    )
    return {number for number in inside if number is not None}


def causal(op: Op, products: set[int]) -> bool:
    at = {FUSED: 4, FUSED + "_backward": 7}.get(op.name)
    if at is not None:
        return bool(op.args["Concrete Inputs"][at] == "True")
    kept = op.args.get("Sequence number", op.node.args.get("Sequence number") if op.node else None)
    return op.name == "aten::bmm" and kept in products


def flops_of_trace(path: Path) -> dict[str, tuple[int, int]]:
    """FLOPs of forward, backward and recompute: full, and with half of causal attention. The outermost operator that
    has a formula counts."""
    found = list(operators(path))
    products, counted = causal_products(found), set[int]()
    full: Counter[str] = Counter()
    masked: Counter[str] = Counter()
    for op in found:
        concrete = op.args.get("Concrete Inputs", [])
        number = macs(op.name, op.args.get("Input Dims", []), concrete) if op.name.startswith("aten::") else None
        if number is None or op.compiling or op.aborted() or any(id(above) in counted for above in op.above):
            continue
        counted.add(id(op))
        full[op.phase()] += 2 * number
        masked[op.phase()] += number * causal(op, products)
    return {phase: (full[phase], full[phase] - masked[phase]) for phase in full}
