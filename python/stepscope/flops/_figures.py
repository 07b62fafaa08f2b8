"""What was measured of a model, module by module: FLOP of forward, backward and what ran again, time of forward.

The core counts them from the recording, for each module what ran in it and in none of the modules below it. A module as
a whole is then the sum over itself and all modules below it, each once, wherever in the tree it was called from.
Nothing here keeps a model alive.
"""

from __future__ import annotations

import weakref
from dataclasses import dataclass
from typing import Any, Callable

from .._recording import _hooks
from .._run import Run

__all__ = ["Figures", "Own", "get_module_duration", "get_module_flops", "get_module_macs"]


@dataclass
class Own:
    """Of one module."""

    forward_flop: int = 0  # without the modules below it, as the next two
    backward_flop: int = 0
    recompute_flop: int = 0
    forward_ns: int | None = None  # with the modules below it; None: it was not called in forward
    calls: int = 0

    def add(self, row: dict[str, Any]) -> None:
        self.forward_flop += row["forward_flop"]
        self.backward_flop += row["backward_flop"]
        self.recompute_flop += row["recompute_flop"]
        self.calls += row["calls"] or 0
        if row["forward_ns"] is not None:
            self.forward_ns = (self.forward_ns or 0) + row["forward_ns"]


class Figures:
    """`members`: the modules by their numbers; `seen`: numbers of those whose calls are seen; `ignored`: classes that
    the user left out.

    A figure is None where it is not known: of what is in a compiled module, or was scripted, nobody sees the calls.
    """

    def __init__(self, members: list[Any], seen: set[int], ignored: tuple[type, ...] = ()) -> None:
        self._own = [Own() for _ in members]
        self._numbers = {id(member): (number, weakref.ref(member)) for number, member in enumerate(members)}
        self._seen, self._ignored = seen, ignored
        self._uncounted: dict[str, float] = {}  # operators without a formula or sizes: their time in ns
        self._all_ns = 0.0  # of all operators, or kernels
        self._failed: list[str] = []  # ranges of stepscope.flops.counts whose formula failed

    def add(self, run: Run) -> None:
        """What a part of the recording holds."""
        tables = run.flops().tables
        for row in tables["by_module"].to_pylist():
            number = row["module"]
            if number is not None and number.isdigit() and int(number) < len(self._own):
                self._own[int(number)].add(row)
        uncounted = tables["uncounted"].to_pylist()
        for row in uncounted:
            name = f"{row['name']} ({row['why']})"
            self._uncounted[name] = self._uncounted.get(name, 0.0) + row["time_ns"]
        self._all_ns += max((row["time_ns"] / row["share"] for row in uncounted if row["share"]), default=0.0)
        failed = run.query("select distinct name from slices where name like '% [not counted: %'").to_pylist()
        self._failed += [row["name"] for row in failed if row["name"] not in self._failed]

    def notes(self) -> list[str]:
        """What the figures leave out: the time of operators that were not counted, and formulas that failed."""
        found = [f"not counted: {name}" for name in self._failed]
        if self._all_ns > 0:
            share = sum(self._uncounted.values()) / self._all_ns
            largest = sorted(self._uncounted.items(), key=lambda item: -item[1])[:3]
            names = ", ".join(f"{name} {ns / self._all_ns:.1%}" for name, ns in largest)
            more = len(self._uncounted) - len(largest)
            rest = f" and {more} more" if more > 0 else ""
            found.append(f"not counted: operators with {share:.1%} of the time: {names}{rest}")
        return found

    def flops(self, module: Any) -> int | None:
        """FLOP of forward: two for each multiply-add of a product. What works element by element is not in it."""
        return self._sum(module, lambda own: own.forward_flop)

    def macs(self, module: Any) -> int | None:
        flops = self._sum(module, lambda own: own.forward_flop)
        return None if flops is None else flops // 2

    def backward_flops(self, module: Any) -> int | None:
        """FLOP of backward, with forward that ran again in it."""
        return self._sum(module, lambda own: own.backward_flop + own.recompute_flop)

    def seconds(self, module: Any) -> float | None:
        """Of its calls in forward; of what nobody calls, such as a ModuleList, those of the modules in it."""
        number = self._number(module)
        own = None if number is None else self._own[number].forward_ns
        if own is not None:
            return own / 1e9
        return sum(self.seconds(child) or 0.0 for child in module.children()) if self.knows(module) else None

    def calls(self, module: Any) -> int:
        number = self._number(module)
        return 0 if number is None else self._own[number].calls

    @property
    def any_call(self) -> bool:
        return any(own.calls for own in self._own)

    def knows(self, module: Any) -> bool:
        number = self._number(module)
        if type(module) in self._ignored or number in self._seen:
            return True
        if number is None or _hooks().modules.has_forward(module):
            return False
        children = list(module.children())
        return not children or any(self.knows(child) for child in children)

    def _number(self, module: Any) -> int | None:
        number, known = self._numbers.get(id(module), (None, None))
        return number if known is not None and known() is module else None

    def _sum(self, module: Any, part: Callable[[Own], int]) -> int | None:
        if not self.knows(module):
            return None
        numbers = [self._number(one) for one in module.modules()]
        return sum(part(self._own[number]) for number in numbers if number is not None)


# For the functions that take a module alone, as DeepSpeed's do: the figures that were measured last.
_latest: dict[int, tuple[weakref.ref[Any], Figures]] = {}


def publish(figures: Figures, members: list[Any]) -> None:
    for key in [key for key, (module, _) in _latest.items() if module() is None]:
        del _latest[key]
    for member in members:
        _latest[id(member)] = (weakref.ref(member), figures)


def withdraw(figures: Figures) -> None:
    for key in [key for key, (_, known) in _latest.items() if known is figures]:
        del _latest[key]


def _latest_of(module: Any) -> Figures:
    known, figures = _latest.get(id(module), (None, None))
    if figures is None or known is None or known() is not module:
        raise RuntimeError("stepscope.flops: nothing was measured of this module")
    return figures


def get_module_flops(module: Any) -> int | None:
    """FLOP of forward of a module and those below it, as measured last; None: not known."""
    return _latest_of(module).flops(module)


def get_module_macs(module: Any) -> int | None:
    return _latest_of(module).macs(module)


def get_module_duration(module: Any) -> float | None:
    """Seconds of its calls in forward."""
    return _latest_of(module).seconds(module)
