"""Activation bytes that stepscope reports beside those that autograd keeps, of nine models that counting gets wrong.

    python bench/memory_truth.py [--internevo REPO]

With a checkout of InternEvo its own profiler is run on the same models: what it says stands in the last columns.
"""

from __future__ import annotations

import argparse
import importlib.util
import json
import sys
import tempfile
import types
import warnings
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
sys.path[:0] = [str(ROOT / "python"), str(ROOT / "tests" / "python")]

import memory_cases as cases  # noqa: E402
import torch  # noqa: E402

from stepscope.memory import SimpleMemoryProfiler  # noqa: E402


def ours(name: str, folder: Path) -> tuple[int, int, int]:
    """What is kept after the forward pass: all, of it inputs of the model, and what is left after the backward pass."""
    model, batch = cases.make(name)
    optimizer = torch.optim.Adam(model.parameters())
    profiler = SimpleMemoryProfiler(model, optimizer, folder, total_steps=2)
    for _ in range(2):
        cases.scalar(model(batch)).backward()
        optimizer.step()
        optimizer.zero_grad()
        profiler.step()
    points = json.loads((folder / "memory_state.json").read_text())["points"]
    forward = next(point["bytes"] for point in points if point["event"] == "forward")
    backward = next(point["bytes"] for point in points if point["event"] == "backward")
    return forward["activation"] + forward["input"], forward["input"], backward["activation"] + backward["input"]


def theirs(name: str, folder: Path, module: Any) -> str:
    model, batch = cases.make(name)
    optimizer = torch.optim.Adam(model.parameters())
    warnings.simplefilter("ignore")  # of the hook that it puts on the whole model
    try:
        profiler = module.SimpleMemoryProfiler(model, optimizer, str(folder), total_steps=3)
        output = model(batch)
        found = profiler._activation_mem
        cases.scalar(output).backward()
    except Exception as error:
        return type(error).__name__
    return str(found)


def load(repository: Path) -> Any:
    """Its one file, with a stand-in for the two names that it imports from the rest."""
    for name in ("internlm", "internlm.core", "internlm.core.naive_amp", "internlm.utils", "internlm.utils.common"):
        sys.modules[name] = types.ModuleType(name)
    amp: Any = sys.modules["internlm.core.naive_amp"]
    amp.NaiveAMPModel = type("NaiveAMPModel", (torch.nn.Module,), {})
    common: Any = sys.modules["internlm.utils.common"]
    common.get_current_device = lambda: torch.device("cpu")
    path = repository / "internlm" / "utils" / "simple_memory_profiler.py"
    spec = importlib.util.spec_from_file_location("simple_memory_profiler", path)
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--internevo", type=Path)
    args = parser.parse_args()
    peer = load(args.internevo) if args.internevo else None
    print(f"torch {torch.__version__}; bytes kept for backward after one forward pass, parameters left out")
    print(
        f"{'model':<22}{'autograd':>12}{'stepscope':>12}{'of it input':>13}{'error':>8}{'after backward':>16}", end=""
    )
    print(f"{'InternEvo':>16}{'ratio':>8}" if peer else "")
    worst = 0.0
    with tempfile.TemporaryDirectory() as folder:
        for name in cases.CASES:
            model, batch = cases.make(name)
            truth = cases.kept_bytes(model, lambda: model(batch))  # noqa: B023
            kept, inputs, left = ours(name, Path(folder, name.replace(" ", "_")))
            worst = max(worst, abs(kept - truth) / truth)
            print(f"{name:<22}{truth:>12,}{kept:>12,}{inputs:>13,}{kept / truth - 1:>8.2%}{left:>16,}", end="")
            if peer:
                said = theirs(name, Path(folder, "peer"), peer)
                print(f"{said:>16}{int(said) / truth:>8.2f}" if said.isdigit() else f"{said:>16}{'-':>8}", end="")
            print()
    print(f"largest error {worst:.2%}, wanted <= 1 %")
    return 0 if worst <= 0.01 else 1


if __name__ == "__main__":
    sys.exit(main())
