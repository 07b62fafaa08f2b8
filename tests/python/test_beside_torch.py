"""libstepscope.so and torch in one process, whichever comes first: both work, and neither sees the other's symbols."""

from __future__ import annotations

import importlib.util
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]

PROGRAM = """
import sys
sys.path.insert(0, sys.argv[1])

def use_stepscope():
    import stepscope
    run = stepscope.open(sys.argv[2], cache=False)
    return len(run.table("slices").to_pylist()), run.answer("steps")["scalars"]["step_time_median_ns"]["value"]

def use_torch():
    import torch
    with torch.profiler.profile(activities=[torch.profiler.ProfilerActivity.CPU]) as recorded:
        product = torch.full((8, 8), 2.0) @ torch.ones(8, 8)
    return "aten::mm" in {event.key for event in recorded.key_averages()}, product.sum().item()

for name in sys.argv[3].split(","):
    print(name, *globals()["use_" + name]())
"""
# One of each per process: what both sides lean on.
RUNTIME = re.compile(r"(libc|libm|libpthread|libdl|librt|ld-linux[\w-]*|libstdc\+\+|libgcc_s)\.so")


def ours(path: str) -> bool:
    return re.match(r"lib(stepscope|fmt|simdjson|isal|zstd)\.so", Path(path).name) is not None


@pytest.mark.skipif(importlib.util.find_spec("torch") is None, reason="torch is not installed")
@pytest.mark.parametrize("order", ["torch,stepscope,torch", "stepscope,torch,stepscope"])
def test_both_work_and_stay_apart(order: str, tmp_path: Path) -> None:
    trace = ROOT / "tests" / "traces" / "tiny_train.json"
    # The loader writes down which library each symbol was taken from.
    environment = {**os.environ, "LD_DEBUG": "bindings", "LD_DEBUG_OUTPUT": str(tmp_path / "bound")}
    command = [sys.executable, "-W", "ignore", "-c", PROGRAM, str(ROOT / "python"), str(trace), order]
    done = subprocess.run(command, text=True, capture_output=True, env=environment, check=False)
    assert done.returncode == 0, done.stderr
    slices = trace.read_text().count('"X"')
    said = {"torch": "torch True 1024.0", "stepscope": f"stepscope {slices} 1000000"}
    assert done.stdout.splitlines() == [said[name] for name in order.split(",")]

    bound = set()
    for log in tmp_path.glob("bound.*"):
        for line in log.read_text(errors="replace").splitlines():
            pair = re.search(r"binding file (\S+) \[\d+\] to (\S+) \[", line)
            if pair:
                bound.add(pair.groups())
    names = {Path(user).name for user, _ in bound}
    assert {"libstepscope.so", "libtorch_cpu.so"} <= names, "the loader's notes were not understood"
    crossed = {(u, g) for u, g in bound if ours(u) != ours(g) and not RUNTIME.match(Path(g).name)}
    assert crossed == set()
