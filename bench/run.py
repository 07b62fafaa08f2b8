#!/usr/bin/env python3
"""Reading and reporting speed as ratios of references that run in the same rounds.

    bench/run.py [--quick] [--rounds N] [--keep FOLDER]

Grows a real trace to 100 MB and 1 GB (--quick: 100 MB only), then runs every contestant once a round, in turn, and
prints medians. This machine's absolute seconds mean little; the ratios do. `cpu/wall` near 1 in a two-thread row says
that no second core was free: compare CPU there. Results also go to build/bench/results.json.
"""

from __future__ import annotations

import argparse
import gzip
import importlib.util
import json
import os
import re
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
BUILD = ROOT / "build"
CORPUS = Path(os.environ.get("STEPSCOPE_CORPUS", ROOT / ".." / "shared" / "data"))
PLAIN = CORPUS / "hta" / "ns_resolution_trace" / "rank-0.Apr_03_18_51_38.1102.pt.trace.json.gz"
SHAPES = CORPUS / "hta" / "negative_queue_length_values_check" / "rank0.json.gz"

JSON_LOAD = "import json,sys; json.load(open(sys.argv[1], 'rb'))"
HTA = (
    "import sys; from hta.trace_analysis import TraceAnalysis; "
    "TraceAnalysis(trace_files={0: sys.argv[1]}, trace_dir='/')"
)


def run(command: list[str], env: dict[str, str] | None = None) -> dict[str, float]:
    """Wall and CPU seconds and peak memory of a whole process, with what it printed as JSON added."""
    started = time.monotonic()
    with tempfile.TemporaryFile() as out:
        process = subprocess.Popen(command, stdout=out, stderr=subprocess.DEVNULL, env={**os.environ, **(env or {})})
        _, status, usage = os.wait4(process.pid, 0)
        process.returncode = os.waitstatus_to_exitcode(status)
        wall = time.monotonic() - started
        out.seek(0)
        text = out.read(4096)
    calibrated = re.search(rb" parse=([0-9.]+)s ", text)
    if process.returncode != 0:
        raise SystemExit(f"bench: {' '.join(command[:3])} … ended with {process.returncode}")
    result: dict[str, float] = {
        "process_wall_s": wall,
        "process_cpu_s": usage.ru_utime + usage.ru_stime,
        "process_rss_mb": usage.ru_maxrss / 1024,
    }
    if calibrated:
        result["walk_s"] = float(calibrated.group(1))
    if text.startswith(b'{"') and text.endswith(b"}\n"):
        result.update(json.loads(text))
    return result


class Contest:
    """Named commands over one file, run in alternating rounds."""

    def __init__(self, rounds: int) -> None:
        self.rounds = rounds
        self.commands: dict[str, tuple[list[str], dict[str, str]]] = {}
        self.results: dict[str, list[dict[str, float]]] = {}

    def add(self, name: str, command: list[str], env: dict[str, str] | None = None) -> None:
        self.commands[name] = (command, env or {})

    def go(self) -> None:
        for _ in range(self.rounds):
            for name, (command, env) in self.commands.items():
                self.results.setdefault(name, []).append(run(command, env))

    def median(self, name: str, key: str) -> float:
        return statistics.median(r[key] for r in self.results[name])

    def ratio(self, top: str, top_key: str, bottom: str, bottom_key: str) -> float:
        """Median over the rounds of top / bottom of the same round."""
        return statistics.median(a[top_key] / b[bottom_key] for a, b in zip(self.results[top], self.results[bottom]))


def grown(folder: Path, name: str, source: Path, megabytes: int, layout: str) -> Path:
    path = folder / f"{name}.json"
    if not path.exists():
        print(f"growing {source.name} to {megabytes} MB ({layout}) …", file=sys.stderr)
        # In a process of its own: the peak memory of what this one starts begins with this one's.
        command = [sys.executable, str(ROOT / "bench" / "grow_trace.py"), str(source), str(path), str(megabytes)]
        command += ["--layout", layout]
        subprocess.run(command, check=True, stdout=subprocess.DEVNULL)
    packed = path.with_suffix(".json.gz")
    if not packed.exists():
        with open(path, "rb") as plain, gzip.open(packed, "wb", compresslevel=6) as out:
            shutil.copyfileobj(plain, out, 1 << 20)
    with open(path, "rb") as file:  # into the page cache
        while file.read(1 << 24):
            pass
    return path


def line(text: str, value: str, wanted: str) -> None:
    print(f"  {text:<58} {value:>12}   {wanted}")


def read_contest(path: Path, rounds: int, megabytes: int) -> dict[str, Any]:
    read, walk = str(BUILD / "bench" / "read_file"), str(BUILD / "bench" / "walk_reference")
    contest = Contest(rounds)
    contest.add("walk", [walk, str(path)])
    calibrated = BUILD / "bench" / "calibrated_walk"
    bars = "calibrated" if calibrated.exists() else "walk"
    if calibrated.exists():
        contest.add("calibrated", [str(calibrated), "ondemand", str(path)])
    contest.add("one", [read, str(path), "1"])
    contest.add("two", [read, str(path), "2"])
    contest.add("gz", [read, f"{path}.gz", "2"])
    contest.go()
    one, two = contest.median("one", "wall_s"), contest.median("two", "wall_s")
    parallel = contest.median("two", "cpu_s") / two
    cpu = contest.ratio("two", "cpu_s", "one", "cpu_s")
    share = contest.median("one", "rss_mb") * 2**20 / contest.median("one", "text_bytes")
    per_event = contest.median("one", "stored_bytes") / contest.median("one", "events")
    print(
        f"{path.name}: {contest.median('one', 'events'):,.0f} events, one thread {one:.2f} s wall, "
        f"{contest.median('one', 'cpu_s'):.2f} s CPU; walk {contest.median(bars, 'walk_s'):.2f} s"
    )
    if bars == "walk":
        print("  (the slower walk that the bars were set against is not here)")
    line(
        "columns on one thread, times the walk (wall)",
        f"{contest.ratio(bars, 'walk_s', 'one', 'wall_s'):.2f}x",
        "wanted 2.2, floor 1.9",
    )
    line(
        f"columns on two threads (cpu/wall {parallel:.2f})",
        f"{contest.ratio(bars, 'walk_s', 'two', 'wall_s'):.2f}x",
        "wanted 3.8 where cpu/wall >= 1.7",
    )
    line(
        "one thread, times the faster walk_reference (CPU)",
        f"{contest.ratio('walk', 'walk_cpu_s', 'one', 'cpu_s'):.2f}x",
        "",
    )
    line("CPU of two threads / one", f"{cpu:.2f}", "wanted <= 1.15")
    line(
        ".gz on two cores, times one-thread plain",
        f"{contest.ratio('one', 'wall_s', 'gz', 'wall_s'):.2f}x",
        "wanted >= 1.0",
    )
    line("peak memory / text", f"{share:.3f}", "wanted <= 0.25" if megabytes >= 1000 else "")
    line("bytes stored per event", f"{per_event:.1f}", "")
    return {"file": path.name, "results": contest.results}


def report_contest(path: Path, rounds: int, megabytes: int) -> dict[str, Any]:
    stepscope, cache = str(BUILD / "stepscope"), tempfile.mkdtemp(prefix="stepscope-bench-")
    contest = Contest(rounds)
    contest.add("first", [stepscope, "report", "--no-cache", str(path)])
    if megabytes <= 100:
        contest.add("json.load", [sys.executable, "-c", JSON_LOAD, str(path)])
        if importlib.util.find_spec("hta"):
            contest.add("hta", [sys.executable, "-c", HTA, str(path)])
    run([stepscope, "report", str(path)], {"STEPSCOPE_CACHE": cache})
    opened = str(BUILD / "bench" / "open_file")
    contest.add("open", [opened, str(path), "no-cache"])
    contest.add("reopen", [opened, str(path)], {"STEPSCOPE_CACHE": cache})
    contest.add("again", [stepscope, "report", str(path)], {"STEPSCOPE_CACHE": cache})
    contest.go()
    shutil.rmtree(cache)
    cpu, bar = contest.median("first", "process_cpu_s"), 0.6 if megabytes <= 100 else 6
    print(f"{path.name}: file to printed report")
    line("CPU seconds", f"{cpu:.2f} s", f"wanted <= {bar}")
    line(
        "peak memory / text",
        f"{contest.median('first', 'process_rss_mb') * 2**20 / path.stat().st_size:.2f}",
        "wanted <= 0.6" if megabytes >= 1000 else "",
    )
    line(
        "reopening / first opening, CPU",
        f"{contest.ratio('reopen', 'cpu_s', 'open', 'cpu_s'):.3f}",
        "wanted < 0.10" if megabytes >= 1000 else "",
    )
    line("reopening / first opening, wall", f"{contest.ratio('reopen', 'wall_s', 'open', 'wall_s'):.3f}", "")
    line(
        "the whole report again / first, CPU (answers are made anew)",
        f"{contest.ratio('again', 'process_cpu_s', 'first', 'process_cpu_s'):.3f}",
        "",
    )
    for name in ("json.load", "hta"):
        if name in contest.results:
            line(
                f"{name}, CPU times ours", f"{contest.ratio(name, 'process_cpu_s', 'first', 'process_cpu_s'):.1f}x", ""
            )
            line(
                f"{name}, peak memory / text",
                f"{contest.median(name, 'process_rss_mb') * 2**20 / path.stat().st_size:.1f}",
                "",
            )
    if megabytes <= 100 and "hta" not in contest.results:
        line("HTA", "n/a", "not installed: pip install HolisticTraceAnalysis")
    return {"file": path.name, "report": contest.results}


def cold_start(rounds: int) -> dict[str, Any]:
    contest = Contest(max(rounds, 5))
    contest.add("help", [str(BUILD / "stepscope"), "--help"])
    contest.add("true", ["true"])
    contest.go()
    print("start of the command line")
    line("stepscope --help, wall", f"{contest.median('help', 'process_wall_s') * 1000:.0f} ms", "wanted <= 50 ms")
    line("an empty process, wall", f"{contest.median('true', 'process_wall_s') * 1000:.0f} ms", "")
    return {"cold_start": contest.results}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--quick", action="store_true", help="100 MB only")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--keep", type=Path, help="keep the grown traces in this folder and take them from there")
    args = parser.parse_args()
    if not PLAIN.exists():
        raise SystemExit(f"bench: no real trace to grow at {PLAIN}. Set STEPSCOPE_CORPUS to the folder of traces.")
    folder = args.keep or Path(tempfile.mkdtemp(prefix="stepscope-bench-"))
    folder.mkdir(parents=True, exist_ok=True)
    print(f"{os.cpu_count()} cores; medians of {args.rounds} alternating rounds; x = times as fast as the reference")
    results: list[dict[str, Any]] = [cold_start(args.rounds)]
    try:
        for megabytes in (100,) if args.quick else (100, 1000):
            plain = grown(folder, f"compact_{megabytes}", PLAIN, megabytes, "compact")
            for path in (
                plain,
                grown(folder, f"kineto_{megabytes}", PLAIN, megabytes, "kineto"),
                grown(folder, f"shapes_{megabytes}", SHAPES, megabytes, "kineto"),
            ):
                results.append(read_contest(path, args.rounds, megabytes))
            results.append(report_contest(plain, args.rounds, megabytes))
    finally:
        if args.keep is None:
            shutil.rmtree(folder)
    (BUILD / "bench").mkdir(parents=True, exist_ok=True)
    (BUILD / "bench" / "results.json").write_text(json.dumps(results, indent=1))


if __name__ == "__main__":
    main()
