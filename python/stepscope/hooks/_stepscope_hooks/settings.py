"""What was asked for, as `stepscope run` hands it over: STEPSCOPE_RUN (folder) and STEPSCOPE_CAPTURE ("key=value …").

steps=10:15,40:45|none  cycle=FIRST:ACTIVE:PERIOD:REPEAT  seconds=3:5  ranks=all|0,1,last  with=shapes,memory,modules,…
budget=0.01 (share of the job's time)  budget_bytes=N  nsys=on
memory_history=ENTRIES:STEPS  memory_ranks=last  memory_path=PATH (%20 for a blank)  memory_state=STEPS
Without steps, cycle and seconds: automatic. docs/recording.md
"""

from __future__ import annotations

import os

TYPE_CHECKING = False  # typing takes longer to import than all of this
if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from typing import TypeVar

    Number = TypeVar("Number", int, float)
    Window = tuple[int, int]  # (first step, end)

DEFAULT_FEATURES = frozenset({"shapes", "memory", "modules"})


class Memory:
    """What --memory-history asks for."""

    def __init__(self, pairs: Mapping[str, str]) -> None:
        self.entries, self.every = _span(pairs["memory_history"], int)
        self.ranks = pairs.get("memory_ranks", "last")
        self.path = ""  # none: in the run folder
        if pairs.get("memory_path"):
            from urllib.parse import unquote_to_bytes

            self.path = os.fsdecode(unquote_to_bytes(pairs["memory_path"]))


class Settings:
    def __init__(self, run_folder: str, capture: str = "") -> None:
        pairs = dict(item.split("=", 1) for item in capture.split() if "=" in item)
        self.run_folder = run_folder
        self.idle = pairs.get("steps") == "none"  # nothing until a request asks
        steps = "" if self.idle else pairs.get("steps", "")
        self.steps: list[Window] = [_span(text, int) for text in steps.split(",") if text]
        self.cycle: list[int] | None = None  # first step, steps, period, repetitions (0: to the end)
        if pairs.get("cycle"):
            self.cycle = [int(part) for part in pairs["cycle"].split(":")]
        self.seconds: tuple[float, float] | None = None  # counted from the import of torch
        if pairs.get("seconds"):
            self.seconds = _span(pairs["seconds"], float)
        self.ranks = pairs.get("ranks", "all")
        named = pairs.get("with")
        self.features = DEFAULT_FEATURES if named is None else frozenset(part for part in named.split(",") if part)
        self.nsys = pairs.get("nsys") == "on"  # records in place of torch.profiler
        self.memory = Memory(pairs) if pairs.get("memory_history") else None
        self.memory_steps = int(pairs.get("memory_state", 0))  # whose state of memory is measured
        self.budget_share = float(pairs["budget"]) if pairs.get("budget") else None
        self.budget_bytes = int(pairs["budget_bytes"]) if pairs.get("budget_bytes") else None

    @property
    def automatic(self) -> bool:
        return not (self.idle or self.steps or self.cycle or self.seconds)

    def wants_rank(self, rank: int, world: int) -> bool:
        return wants_rank(self.ranks, rank, world)


def wants_rank(ranks: str, rank: int, world: int) -> bool:
    """Whether "all" or a list such as "0,4-7,last" names the rank."""
    for part in ranks.split(","):
        first, _, last = part.partition("-")
        if part == "all" or (part == "last" and rank == world - 1):
            return True
        if first.isdigit() and int(first) <= rank <= int(last if last.isdigit() else first):
            return True
    return False


def from_environment(environ: Mapping[str, str] = os.environ) -> Settings | None:
    """The settings, or None where this process was not started by `stepscope run`."""
    folder = environ.get("STEPSCOPE_RUN")
    return Settings(folder, environ.get("STEPSCOPE_CAPTURE", "")) if folder else None


def _span(text: str, number: Callable[[str], Number]) -> tuple[Number, Number]:
    start, _, end = text.partition(":")
    return number(start), number(end)
