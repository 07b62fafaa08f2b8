#!/usr/bin/env python3
"""Does `stepscope diff` find a real slow-down of 5 %, and stay silent without one? Fresh pairs are recorded for it.

    bench/diff_pairs.py [--rounds 20] [--steps 300]

A small training on one thread calls an operator of its own that takes a quarter of the step. In each round its steps
alternate between A, B, C and D under one profiler, so that all see the same machine: B's operator does so much more
work that the step grows by 5 %, C and D do what A does. The recording is split by steps into four traces. With D as a
repeat of A (--again), A against B must be found, with its operator, and A against C must be no alarm. Exit code 1 when
a pair is missed or a false alarm is given.

Other programs must not matter, so the clock of the traces is the thread's CPU time: it is taken at the border of every
part of a step, and the events between two borders are stretched to it.
"""

from __future__ import annotations

import argparse
import bisect
import contextlib
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy
import torch

ROOT = Path(__file__).resolve().parent.parent
STEPSCOPE = Path(os.environ.get("STEPSCOPE_CLI", ROOT / "build" / "stepscope"))
OPERATOR = "diff_pairs::work"
PART = "part "

library = torch.library.Library("diff_pairs", "DEF")
library.define("work(Tensor x, int rounds) -> Tensor")


def work(x: torch.Tensor, rounds: int) -> torch.Tensor:
    values = numpy.ones(2048, dtype=numpy.float32)
    for _ in range(rounds):
        values = numpy.sqrt(values + 1)
    return x * float(values[0] > 0)


library.impl("work", work, "CPU")


@contextlib.contextmanager
def part(name: str, borders: list[int]) -> Iterator[None]:
    with torch.profiler.record_function(PART + name):
        borders.append(time.thread_time_ns())
        yield
        borders.append(time.thread_time_ns())


class Training:
    def __init__(self) -> None:
        torch.set_num_threads(1)
        layers = [layer for _ in range(6) for layer in (torch.nn.Linear(256, 256), torch.nn.ReLU())]
        self.model = torch.nn.Sequential(*layers)
        self.optimizer = torch.optim.SGD(self.model.parameters(), lr=1e-4)
        self.data = torch.randn(192, 256)

    def step(self, rounds: int) -> list[int]:
        """CPU times at the borders of the parts: before and after each."""
        borders: list[int] = []
        with part("zero_grad", borders):
            self.optimizer.zero_grad()
        with part("input", borders):
            hidden = torch.ops.diff_pairs.work(self.data, rounds)
        with part("forward", borders):
            loss = self.model(hidden).square().mean()
        with part("backward", borders):
            loss.backward()
        with part("optimizer", borders):
            self.optimizer.step()
        return borders

    def cpu_ns(self, rounds: int, steps: int = 40) -> float:
        times = []
        for _ in range(steps):
            begin = time.thread_time_ns()
            self.step(rounds)
            times.append(time.thread_time_ns() - begin)
        return statistics.median(times)


def calibrate(training: Training) -> tuple[int, int]:
    """Rounds of the operator that make it a quarter of the step, and those that make the step 5 % longer."""
    training.cpu_ns(1)
    rest, probe = training.cpu_ns(1), 400
    each = (training.cpu_ns(probe) - rest) / probe
    rounds = max(1, round(rest / 3 / each))
    return rounds, rounds + max(1, round(0.05 * (rest + rounds * each) / each))


Borders = list[tuple[int, list[int]]]  # per step: its kind, and the CPU times at the borders of its parts


def record(training: Training, rounds: list[int], steps: int, path: Path) -> Borders:
    """Steps of all kinds in turn, under one profiler."""
    borders: Borders = []
    with torch.profiler.profile(activities=[torch.profiler.ProfilerActivity.CPU]) as profiler:
        for number in range(steps * len(rounds)):
            kind = (number + number // len(rounds)) % len(rounds)  # the order changes from turn to turn
            borders.append((kind, training.step(rounds[kind])))
    profiler.export_chrome_trace(str(path))
    return borders


def split(path: Path, borders: Borders) -> list[Path]:
    """One trace for each kind of step, on the clock of CPU time, with a mark around every step."""
    trace = json.loads(path.read_text())
    events = sorted((e for e in trace["traceEvents"] if e.get("ph") == "X"), key=lambda e: float(e["ts"]))
    marks = [e for e in events if e["name"].startswith(PART)]
    wall = [t for e in marks for t in (float(e["ts"]), float(e["ts"]) + float(e["dur"]))]
    each = len(borders[0][1])
    assert len(wall) == each * len(borders), "a part of a step is not in the recording"
    starts = [float(event["ts"]) for event in events]
    parts: list[list[dict[str, Any]]] = [[] for _ in range(1 + max(kind for kind, _ in borders))]
    for number, (kind, cpu) in enumerate(borders):
        begin, end = number * each, (number + 1) * each
        start, times = wall[begin], wall[begin:end]

        def bent(ts: float, times: list[float] = times, cpu: list[int] = cpu, start: float = start) -> float:
            at = min(max(bisect.bisect_right(times, ts) - 1, 0), len(times) - 2)
            share = (ts - times[at]) / max(times[at + 1] - times[at], 1e-3)
            return start + (cpu[at] - cpu[0] + min(max(share, 0), 1) * (cpu[at + 1] - cpu[at])) / 1e3

        first = bisect.bisect_left(starts, start)
        for event in events[first:]:
            ts = float(event["ts"])
            if ts >= wall[end - 1]:
                break
            parts[kind].append({**event, "ts": bent(ts), "dur": bent(ts + float(event["dur"])) - bent(ts)})
        mark = {"ph": "X", "cat": "user_annotation", "name": f"ProfilerStep#{number}"}
        place = {"pid": marks[0]["pid"], "tid": marks[0]["tid"], "ts": start, "dur": (cpu[-1] - cpu[0]) / 1e3}
        parts[kind].append({**mark, **place})
    out = []
    for kind, part_events in enumerate(parts):
        out.append(path.with_name(f"{path.stem}_{'ABCD'[kind]}.json"))
        out[-1].write_text(json.dumps({**trace, "traceEvents": part_events}))
    return out


def difference(a: Path, b: Path, again: Path) -> tuple[dict[str, Any], list[str]]:
    """Scalars of the difference, and the operators that changed."""
    command = [str(STEPSCOPE), "diff", str(a), str(b), "--again", str(again), "--json", "--no-cache"]
    answer = json.loads(subprocess.run(command, check=True, capture_output=True, text=True).stdout)["answers"]["diff"]
    table = answer["tables"]["operators"]
    at = [column["name"] for column in table["columns"]].index("significant")
    changed = [row[0] for row in table["rows"] if row[at]]
    return {name: scalar["value"] for name, scalar in answer["scalars"].items()}, changed


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n")[0])
    parser.add_argument("--rounds", type=int, default=20)
    parser.add_argument("--steps", type=int, default=300)
    options = parser.parse_args()
    training = Training()
    plain, slow = calibrate(training)
    found = by_operator = alarms = 0
    with tempfile.TemporaryDirectory() as folder:
        for number in range(options.rounds):
            path = Path(folder) / f"{number}.json"
            a, b, c, d = split(path, record(training, [plain, slow, plain, plain], options.steps, path))
            slower, changed = difference(a, b, d)
            same, _ = difference(a, c, d)
            hit = bool(slower["step_significant"]) and slower["step_change"] > 0
            found += hit
            by_operator += OPERATOR in changed
            alarms += bool(same["step_significant"])
            print(
                f"{number + 1:3}: {slower['step_change']:+.1%} (noise {slower['step_noise']:.1%}) "
                f"{'found' if hit else 'MISSED'}, "
                f"A/A {same['step_change']:+.1%} {'ALARM' if same['step_significant'] else 'silent'}",
                flush=True,
            )
    print(f"found {found} of {options.rounds}, by operator {by_operator}, false alarms {alarms}")
    return 0 if found == options.rounds and by_operator == options.rounds and alarms == 0 else 1


if __name__ == "__main__":
    sys.exit(main())
