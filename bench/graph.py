#!/usr/bin/env python3
"""Drawing execution graphs: seconds and memory of `stepscope graph`, from the file to the picture.

    bench/graph.py [--rounds N] [--keep FOLDER]

Made-up graphs, whose nodes have callers shortly before them and wait for others anywhere: 1,203 nodes (with one and
five waits each), and 100,000 and 1,000,000 that are collapsed, of 500 names each. Medians of wall time, and the memory
of the largest process. `dot`'s own layout of the smallest stands beside, ended after 60 s.
"""

from __future__ import annotations

import argparse
import os
import random
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
STEPSCOPE = Path(os.environ.get("STEPSCOPE_CLI", ROOT / "build" / "stepscope"))
FORMATS = ("json", "graphml", "dot", "svg", "pdf")
PATIENCE_S = 60


def write_trace(path: Path, count: int, waits: int) -> None:
    chance = random.Random(count)
    with path.open("w") as file:
        file.write('{"schema": "1.1.0-chakra.0.0.4", "pid": 1, "time": "", "nodes": [\n')
        file.write('{"id": 1, "name": "root", "ctrl_deps": 1, "attrs": []}')
        for number in range(2, count + 1):
            others = [chance.randint(1, number - 1) for _ in range(waits)]
            parent = chance.randint(max(1, number - 20), number - 1)
            name = f"aten::op_{chance.randint(1, 500)}"
            file.write(
                f',\n{{"id": {number}, "name": "{name}", "ctrl_deps": {parent}, "data_deps": {others}, "attrs": []}}'
            )
        file.write("\n]}\n")


def measured(command: list[str]) -> tuple[float, float, str]:
    """Seconds, MB of the largest process, and what was said."""
    began = time.monotonic()
    timed = ["/usr/bin/time", "-f", "%M", *command] if Path("/usr/bin/time").exists() else command
    done = subprocess.run(timed, capture_output=True, text=True, check=False)
    if done.returncode != 0:
        sys.exit(f"{' '.join(command)}: {done.stderr}")
    said = done.stderr.split()
    return (
        time.monotonic() - began,
        int(said[-1]) / 1024 if said and timed is not command else float("nan"),
        done.stdout,
    )


def dot_alone(path: Path) -> str:
    began = time.monotonic()
    try:
        subprocess.run(
            ["dot", "-Tsvg", "-o", os.devnull, str(path)], timeout=PATIENCE_S, check=True, capture_output=True
        )
    except FileNotFoundError:
        return "n/a: Graphviz is not installed"
    except subprocess.TimeoutExpired:
        return f"not done in {PATIENCE_S} s"
    return f"{time.monotonic() - began:.2f} s"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--keep", type=Path, help="make the graphs here, and leave them")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as temporary:
        folder = options.keep or Path(temporary)
        folder.mkdir(parents=True, exist_ok=True)
        print("| graph | boxes | " + " | ".join(FORMATS) + " | MB | dot alone |")
        print("|---|---|" + "---|" * (len(FORMATS) + 2))
        for count, waits in ((1203, 1), (1203, 5), (100_000, 1), (1_000_000, 1)):
            trace = folder / f"{count}_{waits}.json"
            write_trace(trace, count, waits)
            cells, most, said = [], 0.0, ""
            for form in FORMATS:
                out = folder / f"x.{form}"
                command = [str(STEPSCOPE), "graph", str(trace), "-o", str(out), "--no-cache"]
                rounds = [measured(command) for _ in range(options.rounds)]
                cells.append(f"{statistics.median(one[0] for one in rounds):.2f} s")
                most, said = max(most, *(one[1] for one in rounds)), rounds[0][2]
            boxes = said.split(";")[0].strip().partition("collapsed into ")[2].removesuffix(" boxes") or "each"
            alone = dot_alone(folder / "x.dot") if count < 10_000 else "–"
            graph = f"{count:,} nodes, {waits} wait{'s' if waits > 1 else ''} each"
            print(f"| {graph} | {boxes} | {' | '.join(cells)} | {most:.0f} | {alone} |")


if __name__ == "__main__":
    main()
