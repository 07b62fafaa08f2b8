#!/usr/bin/env python3
"""stepscope.flops, torch's FlopCounterMode and, where they are installed, DeepSpeed and fvcore against the truth.

    bench/flops_peers.py [ROW…]

A row is a model of tests/python/flops_models.py, whose FLOP are known by hand; a cell is what a tool finds over that:
1.000 is right. Backward is with what runs again in it; DeepSpeed and fvcore do not measure it. Each cell has a process
of its own, since tools patch torch and some leave it so. Exit code 1: stepscope is wrong somewhere.
"""

from __future__ import annotations

import argparse
import contextlib
import importlib
import importlib.util
import io
import os
import pickle
import sys
import warnings
from collections.abc import Callable
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
sys.path[:0] = [str(ROOT / "python"), str(ROOT / "tests" / "python")]

import torch  # noqa: E402
from flops_models import ROWS, Job, Row  # noqa: E402

Found = tuple[float, float]  # FLOP of forward and of backward


def stepscope(job: Job) -> Found:
    from stepscope.flops import FlopsProfiler

    job.step()
    profiler = FlopsProfiler(job.model)
    profiler.start_profile()
    job.step()
    profiler.stop_profile()
    return profiler.get_total_flops(), profiler.get_total_backward_flops()


def flop_counter(job: Job) -> Found:
    from torch.utils.flop_counter import FlopCounterMode

    job.step()
    with FlopCounterMode(display=False) as first:
        loss = job.forward()
    with FlopCounterMode(display=False) as second:
        loss.backward()
    return first.get_total_flops(), second.get_total_flops()


def deepspeed(job: Job) -> Found:
    profiler = importlib.import_module("deepspeed.profiling.flops_profiler")
    macs = profiler.get_model_profile(job.model, args=list(job.inputs), print_profile=False, as_string=False)[1]
    return 2 * macs, 0


def fvcore(job: Job) -> Found:
    count = importlib.import_module("fvcore.nn").FlopCountAnalysis(job.model.eval(), job.inputs)
    count.unsupported_ops_warnings(False).uncalled_modules_warnings(False).tracer_warnings("none")
    return 2 * count.total(), 0


Tool = Callable[[Job], Found]
TOOLS: dict[str, tuple[Tool, bool]] = {  # whether it measures backward
    "stepscope": (stepscope, True),
    "FlopCounterMode": (flop_counter, True),
    "DeepSpeed": (deepspeed, False),
    "fvcore": (fvcore, False),
}


def cell(row: Row, tool: Tool) -> Found | str:
    """In a process of its own."""
    reading, writing = os.pipe()
    child = os.fork()
    if child == 0:
        os.close(reading)
        with os.fdopen(writing, "wb") as out:
            pickle.dump(found_by(row, tool), out)
        os._exit(0)
    os.close(writing)
    with os.fdopen(reading, "rb") as told:
        text = told.read()
    os.waitpid(child, 0)
    found: Found | str = pickle.loads(text) if text else "died"
    return found


def found_by(row: Row, tool: Tool) -> Found | str:
    nowhere = io.StringIO()
    try:
        with contextlib.redirect_stdout(nowhere), contextlib.redirect_stderr(nowhere), warnings.catch_warnings():
            warnings.simplefilter("ignore")
            return tool(row.job())
    except BaseException as error:
        return type(error).__name__


def ratio(found: Found | str, part: int, truth: int) -> str:
    return found if isinstance(found, str) else f"{found[part] / truth:.3f}"


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("rows", nargs="*", help="names of models; all without")
    args = parser.parse_args()
    torch.set_num_threads(1)
    tools = {
        name: tool
        for name, tool in TOOLS.items()
        if name in ("stepscope", "FlopCounterMode") or importlib.util.find_spec(name.lower()) is not None
    }
    for name in tools:  # once, before the processes part
        with contextlib.suppress(ImportError), contextlib.redirect_stderr(io.StringIO()):
            importlib.import_module({"DeepSpeed": "deepspeed.profiling.flops_profiler"}.get(name, name.lower()))
    heads = [f"{name} {part}" for name, (_, both) in tools.items() for part in ("fwd", "bwd")[: 1 + both]]
    print(f"{'model':<16}{'fwd MFLOP':>11}{'bwd MFLOP':>11}  " + "".join(f"{head:>21}" for head in heads))
    wrong = 0
    for row in ROWS:
        if args.rows and row.name not in args.rows:
            continue
        truth = row.truth()
        parts = (truth.forward.full, truth.backward.full + truth.recompute.full)
        cells = []
        for name, (tool, both) in tools.items():
            found = cell(row, tool)
            cells += [ratio(found, part, parts[part]) for part in range(1 + both)]
            wrong += name == "stepscope" and found != parts
        shown = "".join(f"{one:>21}" for one in cells)
        print(f"{row.name:<16}{parts[0] / 1e6:>11.3f}{parts[1] / 1e6:>11.3f}  {shown}", flush=True)
    return min(1, wrong)


if __name__ == "__main__":
    sys.exit(main())
