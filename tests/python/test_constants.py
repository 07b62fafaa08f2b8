"""Which functions give the same whenever they are called, as the hooks read it in the program's own source."""

from __future__ import annotations

import ast
import textwrap

import pytest

from stepscope.hooks._stepscope_hooks import constants

HEAD = """
import math, random, torch
from data import next_batch
from torch import Tensor, nn
from torch.nn import functional as F
WIDTH = 64
"""

CONSTANT = {
    "of numbers alone": """
        def table() -> Tensor:
            return torch.exp(-torch.arange(WIDTH) / math.sqrt(WIDTH)).outer(torch.ones(3))
    """,
    "of what the object has had since it was made": """
        class Map(nn.Module):
            def __init__(self, latitude: Tensor, reach: float) -> None:
                super().__init__()
                self.register_buffer("latitude", torch.deg2rad(latitude))
                self.reach = reach

            def distance(self) -> Tensor:
                return (self.latitude[:, None] - self.latitude[None]).abs()

            def near(self) -> Tensor:
                return torch.where(self.distance() < self.reach, 1.0, 0.0)
    """,
    "of an array that nobody says is one, sliced as only such are": """
        class Panel:
            def __init__(self, panel, held_back) -> None:
                self.panel = panel
                self.split = panel.shape[1] - held_back

            def spread(self) -> Tensor:
                past = self.panel[:, : self.split]
                return torch.quantile(past, 0.75, dim=1) - past.median(dim=1).values
    """,
    "filled in place, and helped by another function": """
        def squared(x):
            return x * x

        def mask():
            out = torch.empty(WIDTH, WIDTH).fill_(float("-inf"))
            out[0] = 0
            return squared(torch.triu(out, 1))
    """,
}

NONE = {
    "by chance": "def noise():\n    return torch.randn(WIDTH).abs()",
    "from elsewhere": "def batch():\n    return next_batch().float()",
    "of a tensor that it is given": """
        def twice(x: Tensor) -> Tensor:
            return x.mul(2)

        def forward(x: Tensor) -> Tensor:
            return twice(x)
    """,
    "of an item by its number": """
        class Data:
            def __init__(self, rows: Tensor) -> None:
                self.rows = rows

            def item(self, index: int) -> Tensor:
                return self.rows[index].float()

        def main(data):
            for index in range(9):
                data.item(index)
    """,
    "of what nobody says is an array": """
        class Panel:
            def __init__(self, panel) -> None:
                self.panel = panel

            def spread(self) -> Tensor:
                return torch.quantile(self.panel[0], 0.75)
    """,
    "of an array that has another name elsewhere": """
        class Panel:
            def __init__(self, panel) -> None:
                self.panel = panel

            def spread(self) -> Tensor:
                return torch.quantile(self.panel[:, 8:], 0.75)

        def main(data):
            shown = Panel(data)
            data[0] = shown.spread()
    """,
    "of a view that is changed": """
        class Panel:
            def __init__(self, panel) -> None:
                self.panel = panel

            def spread(self) -> Tensor:
                past = self.panel[:, 8:]
                past.mul_(0.9)
                return torch.quantile(past, 0.75)
    """,
    "of lists that are put together": """
        class Watch:
            def __init__(self, params, extra) -> None:
                self.params = params + extra

            def norm(self) -> Tensor:
                return torch.stack([p.norm() for p in self.params]).norm()
    """,
    "of a model's own that may learn": """
        class Heads(nn.Module):
            def __init__(self, table) -> None:
                self.table = table

            def scale(self) -> Tensor:
                return torch.exp(self.table[:, 1:])
    """,
    "of an array that is filled elsewhere": """
        class Panel:
            def __init__(self, panel) -> None:
                self.panel = panel

            def spread(self) -> Tensor:
                return torch.quantile(self.panel[:, 8:], 0.75)

        def main(panel):
            shown = Panel(panel)
            panel[0] = shown.spread()
    """,
    "of weights": """
        class Layer(nn.Module):
            def __init__(self) -> None:
                self.scale, self.table = nn.Parameter(torch.ones(3)), torch.ones(3)
                self.shift = nn.Parameter(torch.ones(3))

            def forward(self) -> Tensor:
                return torch.exp(self.shift)
    """,
    "of another object's weights": """
        class Watch:
            def __init__(self, model: GPT) -> None:
                self.model = model

            def norm(self) -> Tensor:
                return self.model.head.weight.norm()
    """,
    "of what others change": """
        class Memory:
            def __init__(self) -> None:
                self.rows = torch.zeros(9)

            def mean(self) -> Tensor:
                return self.rows.mean()

        def main(memory):
            memory.rows[0] = 1
    """,
    "of a counter": """
        class Clock:
            def __init__(self) -> None:
                self.step = 0

            def tick(self) -> None:
                self.step += 1

            def phase(self) -> float:
                return math.sin(self.step)
    """,
    "kept already": """
        class Kept:
            def __init__(self) -> None:
                self.table: Tensor | None = None

            def get_table(self) -> Tensor:
                if self.table is None:
                    self.table = torch.arange(9)
                return self.table
    """,
    "of a name that a loop sets anew": """
        rows = torch.zeros(9)

        def mean() -> Tensor:
            return rows.mean()

        for step in range(9):
            rows = rows + 1
            mean()
    """,
    "of weights by another name": """
        weights = list(model.parameters())

        def norm() -> Tensor:
            return torch.stack([one.norm() for one in weights]).norm()
    """,
    "given a number": """
        def positions(count: int) -> Tensor:
            return torch.arange(count)
    """,
    "of what a static method is given": """
        class Score:
            @staticmethod
            def right(odds):
                return odds.argmax(-1).float().mean()
    """,
    "by chance in place": "def noise():\n    return torch.empty(WIDTH).normal_()",
    "by chance of another name": """
        from torch.nn.functional import dropout

        def noise():
            return dropout(torch.ones(WIDTH))
    """,
    "by what draws": """
        class Batches:
            def __init__(self) -> None:
                self.rng = np.random.default_rng(0)

            def batch(self) -> Tensor:
                return torch.from_numpy(self.rng.beta(1, 2, WIDTH))
    """,
    "of a world outside": """
        env = make_env()

        def seen() -> Tensor:
            return torch.from_numpy(env.observe())
    """,
    "of an object of a library": """
        import gym

        class Walker:
            def __init__(self) -> None:
                self.env = gym.make("walker")

            def seen(self) -> Tensor:
                return torch.from_numpy(self.env.observation)
    """,
    "of a queue": """
        from collections import deque
        last = deque(maxlen=9)

        def mean() -> Tensor:
            return torch.stack(last).mean()
    """,
    "of what it set itself before": """
        class Phase:
            def __init__(self) -> None:
                self.step, self.h = 0, torch.zeros(9)

            def angle(self) -> Tensor:
                self.step = self.step + 1
                return torch.sin(torch.arange(WIDTH) * self.step)

            def state(self) -> Tensor:
                self.h = torch.tanh(self.h + 1)
                y = self.h.sum()
                return torch.ones(WIDTH) * y
    """,
    "that gives nothing": "def show():\n    torch.arange(WIDTH).abs()",
    "that only reads": "def width():\n    return WIDTH",
    "given the whole object": """
        class Odd:
            def __init__(self) -> None:
                self.rows = torch.zeros(9)

            def mean(self) -> Tensor:
                return torch.stack([self])
    """,
}


# Methods after which the rows of an object are others.
PUTS = {
    "of what another method changes": "def put(self, row) -> None: self.rows[0] = row",
    "of what changes in place": "def put(self, row) -> None: self.rows.lerp_(row, 0.1)",
    "of places that are written": "def put(self, row) -> None: self.rows[0].copy_(row)",
    "of what is written by a list": "def put(self) -> None: torch._foreach_mul_([self.rows], 0.9)",
    "of what is written as a result": "def put(self, row) -> None: torch.add(self.rows, row, out=self.rows)",
    "of what has another name": """
        def put(self, row) -> None:
            rows = self.rows
            rows.add_(row)
    """,
    "of what a coroutine changes": "async def put(self, row) -> None: self.rows = row",
}


def with_rows(put: str) -> str:
    return "\n".join(
        [
            "class Rows:",
            "    def __init__(self) -> None:",
            "        self.rows = torch.zeros(9, 9)",
            textwrap.indent(textwrap.dedent(put).strip(), "    "),
            "    def mean(self) -> Tensor:",
            "        return self.rows.mean()",
        ]
    )


def rows(text: str) -> dict[str, list[str]]:
    """The functions that are given nothing, each with the methods that must not have run."""
    known = constants.constants(ast.parse(HEAD + textwrap.dedent(text)))
    return {one.name: unless for one, unless, given in known if not given}


def given(text: str) -> dict[str, dict[str, bool]]:
    """Those that are given something, with that, and whether its shape alone counts."""
    known = constants.constants(ast.parse(HEAD + textwrap.dedent(text)))
    return {one.name: given for one, _, given in known if given}


def found(text: str) -> list[str]:
    assert not any(rows(text).values())
    return list(rows(text))


@pytest.mark.parametrize("what", CONSTANT)
def test_a_function_gives_the_same(what: str) -> None:
    text = textwrap.dedent(CONSTANT[what])
    meant = {"table", "distance", "near", "mask", "spread"}
    assert set(found(text)) == {name for name in meant if f"def {name}(" in text}


@pytest.mark.parametrize("what", NONE)
def test_a_function_that_may_give_something_else(what: str) -> None:
    assert found(NONE[what]) == []


@pytest.mark.parametrize("what", PUTS)
def test_what_an_object_has_is_changed(what: str) -> None:
    assert rows(with_rows(PUTS[what])) == ({"mean": ["put"]} if what != "of what has another name" else {})
    assert "mean" in found(with_rows("def size(self):\n    return len(self.rows)"))


def test_functions_that_call_each_other_end() -> None:
    assert found("def one():\n    return two()\n\ndef two():\n    return one()") == []


INDEX = """
    class Index:
        def __init__(self, fixed):
            self.parts, self.whole = [], None
            self.fixed = fixed

        def add(self, rows):
            self.parts.append(F.normalize(rows))
            self.whole = None

        def rows(self):
            if self.fixed:
                if self.whole is None:
                    self.whole = torch.cat(self.parts)
                return self.whole
            return torch.cat(self.parts)
"""


@pytest.mark.parametrize(
    ("change", "unless"),
    [
        (("", ""), {"rows": ["add"]}),
        (("        def rows(self):", "        def rows(self):\n            self.parts.pop()"), {}),  # it does so itself
        (("return torch.cat(self.parts)\n", "kept = self.parts\n            return torch.cat(kept)\n"), {}),
        (("            self.fixed = fixed", "            self.fixed = bool(fixed)"), {}),  # of what it is given
        (("self.fixed = fixed", "self.fixed, self.net = fixed, nn.Linear(2, 2)"), {"rows": ["add"]}),
        (("self.parts, self.whole = [], None", "self.parts, self.whole, self.kept = [], None, lambda: self.parts"), {}),
        # A hook, which runs when nobody sees the method that made it.
        (
            (
                "            self.fixed = fixed",
                "            self.fixed = fixed\n            hook(lambda rows: self.parts.append(rows))",
            ),
            {},
        ),
        (
            ("F.normalize(rows))", "rows)\n\n        def drop(self):\n            del self.parts[0]"),
            {"rows": ["add", "drop"]},
        ),
    ],
)
def test_what_other_methods_change_is_the_same_unless_they_run(
    change: tuple[str, str], unless: dict[str, list[str]]
) -> None:
    assert rows(INDEX.replace(*change) if change[0] else INDEX) == unless


OF_THE_SAME = """
    def adjacency(edges: Tensor, count: int) -> Tensor:
        out = torch.zeros(count, count)
        out[edges[0], edges[1]] = 1.0
        return out / out.sum(1, keepdim=True).clamp(min=1)

    class Mask(nn.Module):
        def __init__(self, window: int) -> None:
            super().__init__()
            self.window = window

        def forward(self, x: Tensor, causal: bool) -> Tensor:
            far = torch.ones(x.shape[1], x.size(1), device=x.device).triu(self.window)
            return far.bool() if causal else torch.zeros_like(x)
"""
MAYBE_NOT = {
    "by chance": "def noisy(x):\n    return x + torch.randn_like(x)",
    "what it is given is another behind it": "def scaled(x):\n    x.mul_(2)\n    return x.sum()",
    "a part of it is": "def masked(x):\n    x[0] = 1\n    return x.sum()",
    "what is added to it": "def added(x):\n    x += 1\n    return x.sum()",
    "weights": "class Out(nn.Module):\n    def forward(self, x):\n        return self.head(x)",
    "other ranks": """
        import torch.distributed as dist
        from torch.distributed import broadcast

        def world(count, device):
            total = torch.tensor([count], device=device)
            dist.all_reduce(total)
            return total

        def shared(x):
            broadcast(x, 0)
            return x + 1

        def gathered(x):
            torch.distributed.all_gather_into_tensor(x, x)
            return x + 1
    """,
    "files": "def rows(path):\n    return torch.from_numpy(np.fromfile(path))",
    "chance where it trains": "def mixed(q, k, v, p):\n    return F.scaled_dot_product_attention(q, k, v, dropout_p=p)",
    "the order of a list": "def least(rows):\n    rows.sort()\n    return torch.tensor(rows[0])",
    "as many as there are": "def total(*rows):\n    return torch.stack(rows).sum()",
}


def test_functions_that_give_the_same_of_the_same() -> None:
    said = given(OF_THE_SAME)
    assert said == {"adjacency": {"edges": False, "count": False}, "forward": {"x": True, "causal": False}}


@pytest.mark.parametrize("what", MAYBE_NOT)
def test_those_that_may_not(what: str) -> None:
    assert given(MAYBE_NOT[what]) == {}
