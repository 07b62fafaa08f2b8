"""What was asked for, as `stepscope run` hands it over: STEPSCOPE_RUN (folder) and STEPSCOPE_CAPTURE ("key=value …").

Keys: steps=START:END or seconds=START:END (neither: automatic), shapes, memory, stack = 0 or 1.
"""

from __future__ import annotations

import os

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from typing import TypeVar

    Number = TypeVar("Number", int, float)


class Settings:
    def __init__(
        self,
        run_folder: str,
        steps: tuple[int, int] | None,
        seconds: tuple[float, float] | None,
        shapes: bool,
        memory: bool,
        stack: bool,
    ) -> None:
        self.run_folder = run_folder
        self.steps = steps  # (first, end) of the step numbers to record, or None
        self.seconds = seconds  # (start, end) counted from the import of torch, or None
        self.shapes = shapes
        self.memory = memory
        self.stack = stack

    @property
    def automatic(self) -> bool:
        return self.steps is None and self.seconds is None


def from_environment(environ: Mapping[str, str] = os.environ) -> Settings | None:
    """The settings, or None where this process was not started by `stepscope run`."""
    folder = environ.get("STEPSCOPE_RUN")
    if not folder:
        return None
    pairs = dict(item.split("=", 1) for item in environ.get("STEPSCOPE_CAPTURE", "").split() if "=" in item)
    return Settings(
        folder,
        _span(pairs.get("steps"), int),
        _span(pairs.get("seconds"), float),
        pairs.get("shapes", "1") == "1",
        pairs.get("memory", "1") == "1",
        pairs.get("stack", "0") == "1",
    )


def _span(text: str | None, number: Callable[[str], Number]) -> tuple[Number, Number] | None:
    if not text:
        return None
    start, _, end = text.partition(":")
    return number(start), number(end)
