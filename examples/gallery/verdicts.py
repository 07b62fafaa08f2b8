"""What a diagnosis said of a program against what is known of it."""

from __future__ import annotations

import ast
import math
import re
import statistics
from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

Finding = dict[str, Any]
NEAR = 3  # lines beside a marked one that are still the place


@dataclass(frozen=True)
class Places:
    """Where a program has its fault: marked lines, the functions that hold them, and operators that do its work."""

    file: str
    lines: tuple[int, ...]
    functions: frozenset[str]
    ops: tuple[str, ...] = ()
    rank: int | None = None  # where a rank as a whole is the place

    def hold(self, where: dict[str, Any]) -> bool:
        """Of a place in another file only the operator counts: names of functions are no one's own."""
        if where.get("op") and any(op in where["op"] for op in self.ops):
            return True
        if self.rank is not None and where.get("rank") == self.rank:
            return True
        if where.get("file") and Path(where["file"]).name != self.file:
            return False
        line = where.get("line")
        near = bool(where.get("file")) and line is not None and any(abs(line - own) <= NEAR for own in self.lines)
        return near or (where.get("function") or "").rpartition(".")[2] in self.functions


def places_of(file: Path, ops: tuple[str, ...] = (), rank: int | None = None) -> Places:
    text = file.read_text()
    lines = tuple(number for number, line in enumerate(text.splitlines(), 1) if re.search(r"# fault\b", line))
    functions = [
        node for node in ast.walk(ast.parse(text)) if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef))
    ]
    holding = {f.name for f in functions for line in lines if f.lineno <= line <= (f.end_lineno or f.lineno)}
    # A program's main holds everything: that it is in there names no place, unless nothing smaller does.
    return Places(file.name, lines, frozenset(holding - {"main"} or holding), ops, rank)


def middle(gain: dict[str, Any] | None) -> float | None:
    """The speedup in the middle of what was predicted; None of what has no price."""
    return (gain["speedup_low"] + gain["speedup_high"]) / 2 if gain else None


def is_uncertain(values: list[float]) -> bool:
    """The mean's standard error is more than a fortieth of it, half of what a gain may be off by as a median."""
    if len(values) < 2:
        return False
    return statistics.stdev(values) > statistics.mean(values) * math.sqrt(len(values)) / 40


@dataclass
class Verdict:
    """Of one faulty program."""

    name: str
    half: str
    cause: str
    position: int | None = None  # from 1; None: not named
    place: bool = False
    predicted: tuple[float, float] | None = None
    steps_ms: list[tuple[float, float]] = field(default_factory=list)  # of both forms, the faulty one first, by round
    ratios: list[float] = field(default_factory=list)  # how often as fast the fixed one was, by round
    said: list[str] = field(default_factory=list)  # all that was found, in its order
    predictions: list[tuple[float, float]] = field(default_factory=list)  # of each recording that has one

    @property
    def measured(self) -> float | None:
        return statistics.median(self.ratios) if self.ratios else None

    def is_known(self) -> bool:
        """Neither what was measured nor what was predicted is a matter of which rounds there were."""
        return not any(
            is_uncertain(each) for each in (self.ratios, [sum(prediction) / 2 for prediction in self.predictions])
        )

    @property
    def error(self) -> float | None:
        if self.predicted is None or self.measured is None:
            return None
        return abs(sum(self.predicted) / 2 / self.measured - 1)

    @property
    def inside(self) -> bool | None:
        """What was measured lies in the range that was predicted."""
        if self.predicted is None or self.measured is None:
            return None
        return self.predicted[0] <= self.measured <= self.predicted[1]


def judge(verdict: Verdict, findings: list[Finding], places: Places) -> Verdict:
    verdict.said = [finding["id"] for finding in findings]
    named = [
        number for number, finding in enumerate(findings) if verdict.cause in (finding["id"], finding.get("cause"))
    ]
    if not named:
        return verdict
    verdict.position = named[0] + 1
    finding = findings[named[0]]
    verdict.place = places.hold(finding.get("where") or {})
    gain = finding.get("gain")
    if gain:
        verdict.predicted = (gain["speedup_low"], gain["speedup_high"])
        verdict.predictions = [verdict.predicted]
    return verdict


def of_all(verdicts: list[Verdict]) -> Verdict:
    """Of several recordings of one program: the worst position, a place that is right in each, and of both ends of the
    predictions that there are the median, as what was measured is the median of several runs."""
    worst = max(verdicts, key=lambda verdict: (verdict.position is None, verdict.position or 0))
    predictions = [one for verdict in verdicts for one in verdict.predictions]
    lows, highs = [low for low, _ in predictions], [high for _, high in predictions]
    return replace(
        worst,
        place=all(verdict.place for verdict in verdicts),
        predicted=(statistics.median(lows), statistics.median(highs)) if predictions else None,
        predictions=predictions,
    )


def largest_gain(findings: Iterable[Finding]) -> float:
    """What the best of all findings promises, over 1; of a healthy program that is to be next to nothing."""
    return max((middle(finding.get("gain")) or 1.0 for finding in findings), default=1.0) - 1


@dataclass(frozen=True)
class Summary:
    count: int
    first: float
    three: float
    place: float
    median_error: float | None
    worst_error: float | None
    unpriced: int  # named without a prediction


def summarize(verdicts: list[Verdict]) -> Summary:
    count = len(verdicts)
    errors = [verdict.error for verdict in verdicts if verdict.error is not None]

    def share(held: Iterable[bool]) -> float:
        return sum(held) / count if count else 0.0

    return Summary(
        count,
        share(verdict.position == 1 for verdict in verdicts),
        share(verdict.position is not None and verdict.position <= 3 for verdict in verdicts),
        share(verdict.place for verdict in verdicts),
        statistics.median(errors) if errors else None,
        max(errors) if errors else None,
        sum(verdict.position is not None and verdict.predicted is None for verdict in verdicts),
    )


def thresholds(verdicts: list[Verdict], healthy: list[float], broken: list[str]) -> list[tuple[str, bool]]:
    """What is promised of the gallery, and whether it holds. Gains are judged by the half that is not built on, where
    one of it was measured."""
    found: list[tuple[str, bool]] = []
    if verdicts:
        summary = summarize(verdicts)
        to_judge_by = [verdict for verdict in verdicts if verdict.half == "report" and verdict.measured is not None]
        gains, of_half = summarize(to_judge_by or verdicts), " (half: report)" if to_judge_by else ""
        median, worst = gains.median_error, gains.worst_error
        found += [
            ("the cause comes first in 90 %", summary.first >= 0.90),
            ("the cause is among the first three in 98 %", summary.three >= 0.98),
            ("the place is right in 90 %", summary.place >= 0.90),
            (f"the median error of the gain is 5 % at most{of_half}", median is not None and median <= 0.05),
            (f"the worst error of the gain is 20 % at most{of_half}", worst is not None and worst <= 0.20),
        ]
    if healthy:
        found.append(("nothing of a healthy program is worth more than 5 %", max(healthy) <= 0.05))
    if broken:
        found.append((f"all programs ran: not {', '.join(broken)}", False))
    return found
