"""What stepscope what-if predicts from a slow program's trace alone, against what the fix was then measured to give.

    python bench/what_if.py [CASE…] [--steps 60]

For each case of what_if_cases.py: torch.profiler records steps of the slow form, the prediction is made and written
down, then slow and fixed steps are run in turn, by CPU time of the process. Error = |predicted / measured speedup - 1|
with the middle of the predicted range. Wanted: median at most 4 %, worst 12 %; injected slow-downs 2 %.
"""

from __future__ import annotations

import argparse
import json
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
PROGRAM = ROOT / "build" / "stepscope"


def record(case: str, trace: Path, steps: int) -> None:
    import torch
    from torch.profiler import ProfilerActivity, profile, schedule
    from what_if_cases import CASES

    torch.set_num_threads(1)
    step = CASES[case].make()
    for _ in range(10):
        step(True)
    plan = schedule(wait=0, warmup=2, active=steps, repeat=1)
    with profile(activities=[ProfilerActivity.CPU], schedule=plan) as prof:
        for _ in range(steps + 2):
            step(True)
            prof.step()
    prof.export_chrome_trace(str(trace))


def measure(case: str, steps: int) -> None:
    """Prints the speedup: CPU time of slow steps over that of fixed ones, in turn."""
    import torch
    from what_if_cases import CASES

    torch.set_num_threads(1)
    step = CASES[case].make()
    for number in range(20):
        step(number % 2 == 0)
    times: dict[bool, list[float]] = {True: [], False: []}
    for number in range(2 * steps):
        slow = number % 2 == 0
        begun = time.process_time()
        step(slow)
        times[slow].append(time.process_time() - begun)
    print(statistics.median(times[True]) / statistics.median(times[False]))


def predict(trace: Path, changes: list[str]) -> tuple[float, float, str]:
    command = [str(PROGRAM), "what-if", str(trace), *changes, "--json"]
    answer = json.loads(subprocess.run(command, check=True, capture_output=True, text=True).stdout)
    scalars = answer["answers"]["what_if"]["scalars"]
    low, high = (scalars[name]["value"] for name in ("speedup_low", "speedup_high"))
    return low, high, scalars["binds"]["value"]


def child(*arguments: str) -> str:
    command = [sys.executable, __file__, *arguments]
    return subprocess.run(command, check=True, capture_output=True, text=True).stdout


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("cases", nargs="*")
    parser.add_argument("--steps", type=int, default=60)
    parser.add_argument("--record", type=Path)
    parser.add_argument("--measure", action="store_true")
    chosen = parser.parse_args()
    if chosen.record:
        record(chosen.cases[0], chosen.record, chosen.steps)
        return 0
    if chosen.measure:
        measure(chosen.cases[0], chosen.steps)
        return 0
    from what_if_cases import CASES

    errors: dict[bool, list[float]] = {True: [], False: []}
    print(f"{'case':20} {'predicted speedup':>18} {'measured':>9} {'error':>7}  inside")
    for name in chosen.cases or CASES:
        case = CASES[name]
        with tempfile.TemporaryDirectory() as folder:
            trace = Path(folder) / "slow.json"
            child(name, "--record", str(trace), "--steps", str(chosen.steps))
            low, high, _ = predict(trace, case.changes)  # before the fixed form runs
        measured = float(child(name, "--measure", "--steps", str(chosen.steps)))
        error = abs((low + high) / 2 / measured - 1)
        errors[case.exact].append(error)
        inside = "yes" if low <= measured <= high else "no"
        print(f"{name:20} {low:8.3f} to {high:6.3f} {measured:9.3f} {error:6.1%}  {inside}", flush=True)
    for exact, found in errors.items():
        if found:
            what = "injected slow-downs" if exact else "pairs"
            print(f"{len(found)} {what}: median error {statistics.median(found):.1%}, worst {max(found):.1%}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
