#!/usr/bin/env python3
"""What recording costs the job, as ratios of CPU time.

    bench/recording_cost.py [--rounds N] [--attaches N]

A 4-layer GPT of 128 channels on one thread: 3,200 ops in 37 ms, far denser than a training on a GPU, so the worst case
for what is paid per op or per hook. What is compared alternates within one process, and CPU time is what is compared:
a second job on the machine moves both sides. Three parts run in processes of their own, started as users start them.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import re
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from stepscope.hooks._stepscope_hooks.capture import Capture

ROOT = Path(__file__).resolve().parent.parent
STEPSCOPE = str(ROOT / "build" / "stepscope")
WINDOW = 12  # steps of a recorded window; the last one holds stop and export and is not counted as running
UNITS_NS = {"ns": 1, "us": 1e3, "µs": 1e3, "ms": 1e6, "s": 1e9}


class Training:
    """The job, step by step."""

    def __init__(self) -> None:
        import torch
        from torch import nn

        class Attention(nn.Module):
            def __init__(self) -> None:
                super().__init__()
                self.project, self.out = nn.Linear(128, 384), nn.Linear(128, 128)

            def forward(self, x: Any) -> Any:
                q, k, v = (part.view(8, 64, 4, 32).transpose(1, 2) for part in self.project(x).chunk(3, -1))
                mixed = nn.functional.scaled_dot_product_attention(q, k, v, is_causal=True)
                return self.out(mixed.transpose(1, 2).reshape(8, 64, 128))

        class Block(nn.Module):
            def __init__(self) -> None:
                super().__init__()
                self.before, self.attention, self.between = nn.LayerNorm(128), Attention(), nn.LayerNorm(128)
                self.mix = nn.Sequential(nn.Linear(128, 512), nn.GELU(), nn.Linear(512, 128))

            def forward(self, x: Any) -> Any:
                x = x + self.attention(self.before(x))
                return x + self.mix(self.between(x))

        torch.set_num_threads(1)
        torch.manual_seed(0)
        blocks = [Block() for _ in range(4)]
        self.model = nn.Sequential(nn.Embedding(256, 128), *blocks, nn.LayerNorm(128), nn.Linear(128, 256))
        self.optimizer = torch.optim.AdamW(self.model.parameters())
        self.words = torch.randint(256, (8, 65))

    def step(self) -> None:
        from torch.nn.functional import cross_entropy

        found = self.model(self.words[:, :-1])
        loss = cross_entropy(found.flatten(0, 1), self.words[:, 1:].flatten())
        self.optimizer.zero_grad()
        loss.backward()
        self.optimizer.step()

    def cpu_ns(self, steps: int) -> float:
        """CPU time per step."""
        began = time.process_time_ns()
        for _ in range(steps):
            self.step()
        return (time.process_time_ns() - began) / steps


# Parts that run in a process of their own, under `stepscope run` -----------------------------------------------------


def call_ns(function: Callable[[], object], calls: int = 20_000) -> float:
    began = time.thread_time_ns()
    for _ in range(calls):
        function()
    return (time.thread_time_ns() - began) / calls


def loaded_hooks() -> Any:
    """The hooks that `stepscope run` brought into this process; nothing else here can import them."""
    return sys.modules["_stepscope_hooks"]


def loaded_capture() -> Capture:
    capture: Capture = loaded_hooks()._capture
    return capture


def hooks_ns(capture: Capture, rounds: int) -> dict[str, float]:
    """CPU time that each hook adds to one call of what it sits on, torch's own dispatch to it included."""
    import torch

    roots = loaded_hooks().roots

    class Still(torch.optim.Optimizer):
        def step(self, closure: Any = None) -> None:
            pass

    class Empty(torch.nn.Module):
        def forward(self, x: Any) -> Any:
            return x

    bare, seen = Empty(), Empty()
    root = roots.Root(seen, capture.phases)
    still = Still([torch.nn.Parameter(torch.ones(1))], {})
    capture.leader = None  # the next optimizer to step counts the steps
    timed = capture.phases.timed_backward(time.thread_time_ns)
    found: dict[str, list[float]] = {"forward": [], "backward": [], "optimizer": []}
    with torch.enable_grad():
        for _ in range(rounds):
            found["forward"].append(call_ns(lambda: seen(1)) - call_ns(lambda: bare(1)))
            found["backward"].append(call_ns(timed) - call_ns(time.thread_time_ns))
            with_hooks = call_ns(still.step)
            capture.phases.uninstall()
            found["optimizer"].append(with_hooks - call_ns(still.step))
            capture.phases.install()
    root.remove()
    return {name: statistics.median(values) for name, values in found.items()}


def idle(rounds: int) -> dict[str, Any]:
    training = Training()
    training.cpu_ns(20)
    capture = loaded_capture()
    first = capture.marks.written
    training.cpu_ns(20)
    marked = (capture.marks.written - first) / 20  # forward, backward, optimizer and the step: all hooks were called
    armed: list[float] = []
    bare: list[float] = []
    for number in range(6 * rounds):
        for with_hooks in (True, False) if number % 2 else (False, True):
            # The search for the model, paid once in a job, goes through all objects: before either side.
            capture.phases.install()
            capture.phases.find_roots(training.optimizer)
            if not with_hooks:
                capture.phases.uninstall()
            training.cpu_ns(2)
            (armed if with_hooks else bare).append(training.cpu_ns(8))
            if with_hooks:
                capture.phases.uninstall()
    capture.phases.install()

    def look() -> None:
        capture.requests.look_at_ns = 0
        capture.requests.look()

    look_ns = call_ns(look, 2000)
    return {"marked": marked, "armed": armed, "bare": bare, "hooks": hooks_ns(capture, rounds), "look_ns": look_ns}


def window(rounds: int) -> dict[str, Any]:
    """Our windows and torch.profiler's in turn, with plain steps beside them."""
    import torch

    training = Training()
    training.cpu_ns(20)
    capture = loaded_capture()
    found: dict[str, list[float]] = {name: [] for name in ("ours", "torch", "plain", "ours_end", "torch_end")}

    def ours() -> None:
        capture.phases.install()
        capture.phases.find_roots(training.optimizer)
        first = capture.boundary + 3
        capture.plan.add((first, first + WINDOW))
        training.cpu_ns(3)
        found["ours"].append(training.cpu_ns(WINDOW - 1))
        training.cpu_ns(4)  # the last one, and the one with stacks
        assert capture.recordings.active is None
        parts = [part for part in capture.notes.fields["windows"] if part["kind"] == "steps"]
        found["ours_end"].append(1e9 * sum(parts[-1]["cost_s"].values()))
        capture.phases.uninstall()

    def torchs() -> None:
        with loaded_hooks().other_profiler.own_profiler():
            profiler = torch.profiler.profile(
                activities=[torch.profiler.ProfilerActivity.CPU], record_shapes=True, profile_memory=True
            )
            began = time.perf_counter_ns()
            profiler.start()
            spent = time.perf_counter_ns() - began
        cpu = time.process_time_ns()
        for _ in range(WINDOW - 1):
            training.step()
            profiler.step()
        found["torch"].append((time.process_time_ns() - cpu) / (WINDOW - 1))
        training.step()
        began = time.perf_counter_ns()
        profiler.stop()
        profiler.export_chrome_trace(os.path.join(capture.settings.run_folder, "torch.json"))
        found["torch_end"].append(spent + time.perf_counter_ns() - began)

    capture.phases.uninstall()
    for number in range(rounds + 1):
        for contestant in (ours, torchs) if number % 2 else (torchs, ours):
            contestant()
        found["plain"].append(training.cpu_ns(WINDOW - 1))
        if number == 0:
            found = {name: [] for name in found}  # what is slow only once
    return found


def job(stop: str) -> dict[str, Any]:
    """Steps until the file is there, each with when it ended and its CPU time."""
    training = Training()
    training.cpu_ns(20)
    print("running", flush=True)
    steps = []
    while not os.path.exists(stop):
        cpu = training.cpu_ns(1)
        steps.append((time.monotonic(), cpu))
    return {"steps": steps}


def result() -> dict[str, Any]:
    """The bits of the result after 25 steps."""
    training = Training()
    training.cpu_ns(25)
    return {"parameters": [p.double().sum().item().hex() for p in training.model.parameters()]}


# What runs them and prints ------------------------------------------------------------------------------------------


def part(name: str, *arguments: str, folder: Path, options: tuple[str, ...] | None = None) -> dict[str, Any]:
    """A part in a process of its own; with `options` under `stepscope run`."""
    to = folder / f"{name}.json"
    command = [sys.executable, __file__, "--part", name, "--result", str(to), *arguments]
    if options is not None:
        command = [STEPSCOPE, "run", "--out", str(folder / "runs"), *options, "--", *command]
    done = subprocess.run(command, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True, check=False)
    if done.returncode != 7:
        raise SystemExit(f"bench: {name} ended with {done.returncode}: {done.stderr}")
    found: dict[str, Any] = json.loads(to.read_text())
    return found


def interval(values: list[float]) -> tuple[float, float, float]:
    """The median and the 95 % interval of it, by drawing again 2000 times."""
    chance = random.Random(1)
    medians = sorted(statistics.median(chance.choices(values, k=len(values))) for _ in range(2000))
    return statistics.median(values), medians[50], medians[-50]


def line(text: str, value: str, wanted: str = "") -> None:
    print(f"  {text:<64} {value:>24}   {wanted}")


def show_idle(found: dict[str, Any]) -> None:
    step_ns = statistics.median(found["bare"])
    hooks: dict[str, float] = found["hooks"]
    share = sum(hooks.values()) / step_ns + found["look_ns"] / 1e9
    print(f"while nothing is recorded (a step: {step_ns / 1e6:.1f} ms CPU, {found['marked']:.1f} marks)")
    for name, cost in hooks.items():
        line(f"hook on {name}, CPU per call", f"{cost / 1000:.2f} us")
    line("a look for requests, once a second", f"{found['look_ns'] / 1000:.1f} us")
    line("all of them / a step", f"{100 * share:.3f} %", "wanted <= 0.5 %")
    median, low, high = interval([a / b for a, b in zip(found["armed"], found["bare"])])
    line("steps with hooks / without, alternating", f"{median:.4f} [{low:.4f} {high:.4f}]", "the same, less exactly")


def show_window(found: dict[str, Any]) -> None:
    def ratio(top: str, bottom: str) -> str:
        median, low, high = interval([a / b for a, b in zip(found[top], found[bottom])])
        return f"{median:.3f} [{low:.3f} {high:.3f}]"

    print("while a window is recorded, CPU per step")
    line("shapes, memory, modules / torch.profiler's shapes, memory", ratio("ours", "torch"), "wanted <= 1.05")
    line("ours / plain steps", ratio("ours", "plain"))
    line("torch.profiler / plain steps", ratio("torch", "plain"))
    line(f"start, stop and export of {WINDOW} steps: ours", f"{statistics.median(found['ours_end']) / 1e6:.0f} ms")
    line("the same: torch.profiler", f"{statistics.median(found['torch_end']) / 1e6:.0f} ms")


def attaches(folder: Path, times: int) -> None:
    stop, to = folder / "stop", folder / "job.json"
    command = [sys.executable, __file__, "--part", "job", "--stop", str(stop), "--result", str(to)]
    stopped: list[float] = []
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as running:
        try:
            assert running.stdout is not None
            running.stdout.readline()
            time.sleep(8)
            first = time.monotonic()
            for _ in range(times):
                attach = [STEPSCOPE, "attach", str(running.pid), "--steps", "1", "--out", str(folder / "attached")]
                attach += ["--timeout", "60"]
                done = subprocess.run(attach, stderr=subprocess.PIPE, text=True, check=False)
                said = re.search(r"entering took ([\d.]+) (\S+) at most", done.stderr)
                if done.returncode != 0 or said is None:
                    raise SystemExit(f"bench: attaching failed: {done.stderr}")
                stopped.append(float(said[1]) * UNITS_NS[said[2]])
            last = time.monotonic()
            time.sleep(8)
        finally:
            stop.touch()
    steps = json.loads(to.read_text())["steps"]
    before = [cpu for at, cpu in steps if at < first]
    after = [cpu for at, cpu in steps if at > last + 0.5]
    print(f"attaching {times} times to a running job, one step each")
    line("the main thread stands still, median", f"{statistics.median(stopped) / 1e6:.2f} ms", "wanted <= 10 ms")
    line("the main thread stands still, worst", f"{max(stopped) / 1e6:.2f} ms", "wanted <= 50 ms")
    line(
        f"CPU per step after the last / before the first ({len(after)}, {len(before)} steps)",
        f"{statistics.median(after) / statistics.median(before):.3f}",
    )


def show_result(folder: Path) -> None:
    plain = part("result", folder=folder)
    recorded = part("result", folder=folder, options=("--steps", "5:15"))
    traces = list((folder / "runs").glob("*/*/traces/*/*.gz"))
    print("the job's result with 10 of 25 steps recorded, and without")
    same = plain == recorded and bool(traces)
    line("all parameters bit for bit, and the exit code", "equal" if same else "DIFFERENT", "wanted equal")


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rounds", type=int, default=10)
    parser.add_argument("--attaches", type=int, default=50)
    parser.add_argument("--part", help=argparse.SUPPRESS)
    parser.add_argument("--result", type=Path, help=argparse.SUPPRESS)
    parser.add_argument("--stop", help=argparse.SUPPRESS)
    args = parser.parse_args()
    if args.part:
        parts = {
            "idle": lambda: idle(args.rounds),
            "window": lambda: window(args.rounds),
            "job": lambda: job(args.stop),
            "result": result,
        }
        args.result.write_text(json.dumps(parts[args.part]()))
        return 7  # to be seen through `stepscope run`
    print(f"{os.cpu_count()} cores, load {os.getloadavg()[0]:.1f}; medians [95 % interval]; CPU time unless said")
    with tempfile.TemporaryDirectory(prefix="stepscope-bench-") as name:
        folder = Path(name)
        rounds = ("--rounds", str(args.rounds))
        show_idle(part("idle", *rounds, folder=folder, options=("--trigger", "command")))
        show_window(part("window", *rounds, folder=folder, options=("--trigger", "command")))
        show_result(folder)
        attaches(folder, args.attaches)
    return 0


if __name__ == "__main__":
    sys.exit(main())
