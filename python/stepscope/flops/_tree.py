"""The model as print() shows it, with the figures of each module in front of what it says of itself.

Modules draw themselves, as classes may have a __repr__ of their own; meanwhile each has an `extra_repr` of ours, and
none of them keeps it, whatever happens.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from typing import Any, Callable

from ._figures import Figures
from ._numbers import DEFAULT_PRECISION, duration_to_string, flops_to_string, macs_to_string, params_to_string
from ._parameters import parameters_of

_NAME = "extra_repr"


class Shares:
    """The figures of modules, and what share of the model's each is."""

    def __init__(self, model: Any, figures: Figures) -> None:
        self.figures = figures
        self.params = parameters_of(model).here
        self.macs, self.seconds = figures.macs(model), figures.seconds(model)

    def of(self, module: Any) -> list[str]:
        params, macs = parameters_of(module).here, self.figures.macs(module)
        flops, seconds = self.figures.flops(module), self.figures.seconds(module)
        rate = None if flops is None or seconds is None else round(flops / seconds, DEFAULT_PRECISION) if seconds else 0
        return [
            f"{params_to_string(params)} = {_percent(params, self.params)} Params",
            f"{macs_to_string(macs)} = {_percent(macs, self.macs)} MACs",
            f"{duration_to_string(seconds)} = {_percent(seconds, self.seconds)} latency",
            flops_to_string(rate),
        ]


def _percent(part: float | None, whole: float | None) -> str:
    if part is None or whole is None:
        return "n/a"
    return f"{round(100 * part / whole, DEFAULT_PRECISION) if whole else 0:g}%"


def tree_text(model: Any, figures: Figures) -> str:
    with _shown(model, Shares(model, figures)):
        return repr(model)


@contextlib.contextmanager
def _shown(model: Any, shares: Shares) -> Iterator[None]:
    changed: list[tuple[dict[str, Any], list[Any]]] = []
    try:
        for module in model.modules():
            attributes = vars(module)
            changed.append((attributes, [attributes[_NAME]] if _NAME in attributes else []))
            attributes[_NAME] = _with_figures(module, module.extra_repr, shares)
        yield
    finally:
        for attributes, before in changed:
            attributes.pop(_NAME, None)
            if before:
                attributes[_NAME] = before[0]


def _with_figures(module: Any, own: Callable[[], str], shares: Shares) -> Callable[[], str]:
    def extra_repr() -> str:
        return ", ".join(part for part in (*shares.of(module), own()) if part)

    return extra_repr
