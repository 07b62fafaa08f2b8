#!/usr/bin/env python3
"""Reading CUDA memory snapshots: ours against Python's pickle.load, in alternating rounds of one run.

    bench/snapshot.py [--rounds N] [--keep FOLDER] [--programs FOLDER]

Two files of a million events and at least 190 MB each: the events of a real snapshot repeated, moved in time; and the
same with stacks of some 40 frames that the events share, as larger real files have them. CPU time of the call alone and
the peak memory of the whole process; medians. pickle.load runs as users run it, with the garbage collector on; without
it stands beside. Then the whole answer of each file, of one of 100,000 events too, and the
state at 200 random events.
"""

from __future__ import annotations

import argparse
import json
import os
import pickle
import random
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
CORPUS = Path(os.environ.get("STEPSCOPE_CORPUS", ROOT / ".." / "shared" / "data"))
REAL = CORPUS / "mosaic" / "output.pickle"
EVENTS, FEW_EVENTS = 1_050_000, 100_000
LEAST_BYTES = 190_000_000

PYTHON = """
import gc, json, pickle, sys, time
if sys.argv[2:] == ["no gc"]:
    gc.disable()
with open(sys.argv[1], "rb") as file:
    began = time.process_time()
    data = pickle.load(file)
    cpu_s = time.process_time() - began
peak = next(line for line in open("/proc/self/status") if line.startswith("VmHWM:"))
events = sum(map(len, data["device_traces"]))
print(json.dumps({"cpu_s": cpu_s, "rss_mb": int(peak.split()[1]) / 1024, "events": events}))
"""


def repeated(snapshot: dict[str, Any], count: int) -> list[dict[str, Any]]:
    """The events of the first device again and again, each copy objects of its own, as another dump would have them."""
    packed = pickle.dumps(snapshot["device_traces"][0])
    grown: list[dict[str, Any]] = []
    while len(grown) < count:
        turn = pickle.loads(packed)
        span = turn[-1]["time_us"] - turn[0]["time_us"] + 1000
        for event in turn:
            event["time_us"] += span * (len(grown) // len(turn))
        grown += turn
    return grown


def deepen(events: list[dict[str, Any]]) -> None:
    """A list of its own for each event, of frames that all share: what torch makes of one stack seen again."""
    chance = random.Random(0)
    frames = [{"filename": f"/opt/pkg{i % 37}/mod_{i}.py", "line": i, "name": f"call_{i}"} for i in range(600)]
    stacks = [chance.choices(frames, k=chance.randint(20, 60)) for _ in range(500)]
    for event in events:
        event["frames"] = list(chance.choice(stacks))


def write(folder: Path, name: str, deep: bool, count: int = EVENTS) -> Path:
    path = folder / name
    if path.exists():
        return path
    print(f"writing {path} …", file=sys.stderr)
    with REAL.open("rb") as file:
        snapshot = pickle.load(file)  # ours to trust
    events = repeated(snapshot, count)
    if deep:
        deepen(events)
    snapshot["device_traces"] = [events]
    with path.open("wb") as file:
        pickle.dump(snapshot, file, protocol=4)
    if count == EVENTS and path.stat().st_size < LEAST_BYTES:
        raise SystemExit(f"{path} has only {path.stat().st_size:,} bytes")
    return path


def measure(command: list[str]) -> dict[str, Any]:
    done = subprocess.run(command, text=True, capture_output=True, check=True)
    result: dict[str, Any] = json.loads(done.stdout)
    return result


def contest(path: Path, reader: str, rounds: int) -> None:
    ours: list[dict[str, float]] = []
    python: list[dict[str, float]] = []
    without_gc: list[dict[str, float]] = []
    for _ in range(rounds):
        ours.append(measure([reader, str(path)]))
        python.append(measure([sys.executable, "-c", PYTHON, str(path)]))
        without_gc.append(measure([sys.executable, "-c", PYTHON, str(path), "no gc"]))
    size_mb = path.stat().st_size / 1e6
    assert ours[0]["events"] == python[0]["events"]

    def median(results: list[dict[str, float]], key: str) -> float:
        return statistics.median(result[key] for result in results)

    def by_rounds(theirs: list[dict[str, float]]) -> str:
        ratios = sorted(p["cpu_s"] / o["cpu_s"] for o, p in zip(ours, theirs))
        return f"{statistics.median(ratios):.2f} [{ratios[0]:.2f} {ratios[-1]:.2f}]"

    file_mib = path.stat().st_size / (1 << 20)
    print(f"{path.name}: {size_mb:.0f} MB, {ours[0]['events']:,} events, {ours[0]['stacks']:,} stacks")
    print(f"  ours        {median(ours, 'cpu_s'):6.2f} CPU s  {size_mb / median(ours, 'cpu_s'):5.0f} MB/s")
    print(f"  pickle.load {median(python, 'cpu_s'):6.2f} CPU s  {size_mb / median(python, 'cpu_s'):5.0f} MB/s")
    print(f"  times as fast, by rounds: {by_rounds(python)} (wanted >= 5)")
    print(f"  pickle.load without gc {median(without_gc, 'cpu_s'):6.2f} CPU s; times as fast: {by_rounds(without_gc)}")
    print(
        f"  peak memory / file: {median(ours, 'rss_mb') / file_mib:.2f} (wanted <= 1.5); "
        f"pickle.load {median(python, 'rss_mb') / file_mib:.2f}"
    )


def answers(path: Path, program: str, rounds: int) -> None:
    """The whole way from the file to its answer, against pickle.load of the same file in the same round."""
    ours: list[dict[str, Any]] = []
    python: list[dict[str, float]] = []
    for _ in range(rounds):
        ours.append(measure([program, str(path)]))
        python.append(measure([sys.executable, "-c", PYTHON, str(path)]))
    whole = [one["open_cpu_s"] + one["answer_cpu_s"] for one in ours]
    ratios = [p["cpu_s"] / one for p, one in zip(python, whole)]
    file_mib = path.stat().st_size / (1 << 20)
    states = [one["state_ms"] for one in ours]
    few = ours[0]["events"] <= 2 * FEW_EVENTS
    print(f"{path.name}, all answers: {path.stat().st_size / 1e6:.0f} MB, {ours[0]['events']:,} events")
    print(
        f"  open {statistics.median(one['open_cpu_s'] for one in ours):.2f} CPU s, "
        f"answer {statistics.median(one['answer_cpu_s'] for one in ours):.2f} CPU s, together "
        f"{statistics.median(whole):.2f} CPU s{' (wanted <= 0.3)' if few else ''}; pickle.load alone takes "
        f"{statistics.median(ratios):.1f} times as long"
    )
    print(
        f"  state at a random event: median {statistics.median(one['median'] for one in states):.1f} ms, "
        f"most {max(one['most'] for one in states):.1f} ms (wanted < 50)"
    )
    print(f"  peak memory / file: {statistics.median(one['rss_mb'] for one in ours) / file_mib:.2f}")


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--keep", type=Path, help="folder for the files, to use them again")
    parser.add_argument("--programs", type=Path, default=ROOT / "build" / "bench", help="folder of what was built")
    args = parser.parse_args()
    if not REAL.exists():
        print(f"skipped: no real snapshot at {REAL} (set STEPSCOPE_CORPUS)")
        return 0
    with tempfile.TemporaryDirectory() as temporary:
        folder = args.keep or Path(temporary)
        folder.mkdir(parents=True, exist_ok=True)
        large = [write(folder, "repeated.pickle", False), write(folder, "deep.pickle", True)]
        for path in large:
            contest(path, str(args.programs / "snapshot_file"), args.rounds)
        for path in (*large, write(folder, "few.pickle", True, FEW_EVENTS)):
            answers(path, str(args.programs / "memory_file"), args.rounds)
    return 0


if __name__ == "__main__":
    sys.exit(main())
