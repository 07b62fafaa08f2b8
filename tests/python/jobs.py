"""Jobs for the tests of `stepscope run`: a command under it, and what came of it."""

from __future__ import annotations

import gzip
import importlib.util
import json
import os
import re
import signal
import subprocess
import textwrap
from pathlib import Path
from typing import Any

import pytest

needs_torch = pytest.mark.skipif(importlib.util.find_spec("torch") is None, reason="torch is not installed")
# Judges what the times of a real job show, or needs it to come along in time. A machine that takes up other work
# meanwhile spoils a recording, so a test that fails is run anew, twice at most; the closing lines say how many were.
measured = pytest.mark.flaky(reruns=2)

TRAIN = """
    import sys, torch
    torch.manual_seed(0)
    model = torch.nn.Sequential(torch.nn.Linear(8, 8), torch.nn.ReLU(), torch.nn.Linear(8, 1))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for step in range(int(sys.argv[1])):
        loss = model(torch.ones(4, 8)).square().sum()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        print(step, loss.item())
"""

TWO_RANKS = """
    import time, torch, torch.distributed as dist
    dist.init_process_group("gloo")
    net = torch.nn.Linear(8, 8)
    optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
    for number in range(40):
        net(torch.ones(2, 8)).sum().backward()
        optimizer.step()
        time.sleep(0.1)
    dist.destroy_process_group()
"""

NET = """
    import sys, torch
    from torch.utils.data import DataLoader, TensorDataset
    torch.manual_seed(0)
    class Block(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.up, self.down = torch.nn.Linear(8, 16), torch.nn.Linear(16, 8)
        def forward(self, x):
            return x + self.down(torch.relu(self.up(x)))
    class Net(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.layers = torch.nn.ModuleList([Block() for _ in range(2)])
        def forward(self, x):
            for layer in self.layers:
                x = layer(x)
            return x
    net = Net()
"""
LOOP = """
    optimizer = torch.optim.SGD(net.parameters(), lr=0.01)
    loader = DataLoader(TensorDataset(torch.ones(4 * int(sys.argv[1]), 8)), batch_size=4)
    for number, (x,) in enumerate(loader):
        loss = net(x).square().sum()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    print(loss.item())
"""


# A thread of torch's gloo may hold the last tensor a moment longer than the collective takes. A process that ends
# meanwhile is ended by torch ("terminate called without an active exception"), under stepscope or not: once in some
# sixty runs of a busy machine. So jobs give the threads that moment.
LEAVE = "dist.destroy_process_group()"
LEAVE_IN_PEACE = f"{LEAVE}; __import__('time').sleep(0.3)"


def together(processes: int) -> str:
    """Code after which so many processes of a job in one folder go on together: on a busy machine one imports torch
    seconds before another, and a report would rightly say so."""
    return f"""
    import os, pathlib, time
    pathlib.Path(f"began.{{os.getpid()}}").touch()
    end = time.monotonic() + 120
    while len(list(pathlib.Path().glob("began.*"))) < {processes} and time.monotonic() < end:
        time.sleep(0.01)
"""


# Loads torch's compiler late: that is half of what a small job takes.
LATE_COMPILER = f"__import__('runpy').run_path({str(Path(__file__).with_name('late_compiler.py'))!r})"


def code(text: str, late_compiler: bool = True) -> str:
    """A job's. An empty first line gets the late compiler, so that no other moves; not in a job that compiles."""
    text = textwrap.dedent(text).replace(LEAVE, LEAVE_IN_PEACE)
    may_be_late = late_compiler and text.startswith("\n") and not re.search("from __future__|compile", text)
    return LATE_COMPILER + text if may_be_late else text


class Job:
    """A command under `stepscope run`, and what came of it."""

    def __init__(self, out: Path, done: subprocess.CompletedProcess[str]) -> None:
        self.code, self.stdout, self.stderr = done.returncode, done.stdout, done.stderr
        self.ours = [line for line in self.stderr.splitlines() if line.startswith("stepscope: ")]
        self.others = [line for line in self.stderr.splitlines() if not line.startswith("stepscope: ")]
        folders = sorted(out.glob("*/*/run.json"))
        self.folder = folders[0].parent if folders else None

    def manifest(self) -> dict[str, Any]:
        assert self.folder is not None, self.stderr
        found: dict[str, Any] = json.loads((self.folder / "run.json").read_text())
        return found

    def traces(self) -> list[Path]:
        assert self.folder is not None, self.stderr
        found = sorted((self.folder / "traces").rglob("*.pt.trace.json.gz"))
        return [path for path in found if ".stacks." not in path.name]

    def recorded_steps(self) -> list[list[int]]:
        """Per process; a slow machine makes several parts of a recording."""
        marks: dict[str, list[int]] = {}
        for trace in self.traces():
            marks.setdefault(trace.name.partition(".")[0], []).extend(self.step_marks(trace))
        return [sorted(found) for found in marks.values()]

    def step_marks(self, trace: Path) -> list[int]:
        events = read(trace)["traceEvents"]
        return sorted(int(e["name"].split("#")[1]) for e in events if e.get("name", "").startswith("ProfilerStep#"))


def read(trace: Path) -> dict[str, Any]:
    with gzip.open(trace) as text:
        found: dict[str, Any] = json.load(text)
        return found


class Place:
    def __init__(self, stepscope: Path, folder: Path) -> None:
        self.stepscope, self.folder, self.out = stepscope, folder, folder / "out"
        self.environment = {k: v for k, v in os.environ.items() if not k.startswith(("STEPSCOPE_", "KINETO_"))}
        self.environment.update(OMP_NUM_THREADS="1")
        self.environment.pop("PYTHONPATH", None)

    def script(self, text: str, name: str = "job.py", late_compiler: bool = True) -> str:
        path = self.folder / name
        path.write_text(code(text, late_compiler and name.endswith(".py")))
        return str(path)

    def execute(self, command: list[str], **more: str) -> subprocess.CompletedProcess[str]:
        """Runs a command in a session of its own, and ends all of that session when it takes too long."""
        with subprocess.Popen(
            command,
            cwd=self.folder,
            env={**self.environment, **more},
            text=True,
            start_new_session=True,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
        ) as process:
            try:
                stdout, stderr = process.communicate(timeout=240)
            except BaseException:
                os.killpg(process.pid, signal.SIGKILL)
                raise
            return subprocess.CompletedProcess(command, process.returncode, stdout, stderr)

    def plain(self, *command: str) -> subprocess.CompletedProcess[str]:
        return self.execute(list(command))

    def command(self, *command: str, options: tuple[str, ...] = ()) -> list[str]:
        return [str(self.stepscope), "run", "--out", str(self.out), *options, "--", *command]

    def run(self, *command: str, options: tuple[str, ...] = (), **more: str) -> Job:
        return Job(self.out, self.execute(self.command(*command, options=options), **more))


def report(place: Place, *arguments: str) -> dict[str, Any]:
    done = place.plain(str(place.stepscope), "report", *arguments, "--json", "--no-cache")
    assert done.returncode in (0, 4), done.stderr
    found: dict[str, Any] = json.loads(done.stdout)
    return found


def rows(answer: dict[str, Any], table: str) -> list[dict[str, Any]]:
    found = answer["tables"][table]
    names = [column["name"] for column in found["columns"]]
    return [dict(zip(names, row)) for row in found["rows"]]
