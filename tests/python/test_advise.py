"""What to change first: faults of small programs, recorded as anyone would, named with their place and their price."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from conftest import WriteTrace, op
from jobs import Job, Place, measured, needs_torch, read, rows

import stepscope

MODEL = """
import torch
from torch import nn
from torch.nn import functional as F

torch.manual_seed(0)
model = nn.Sequential(nn.Linear(256, 512), nn.ReLU(), nn.Linear(512, 10))
optimizer = torch.optim.SGD(model.parameters(), lr=0.01)


def train(inputs, targets):
    loss = F.cross_entropy(model(inputs), targets)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
"""

PYTHON = (
    MODEL
    + """
def ranked(rows):
    return [
        sorted(row, key=lambda value: (value * 7919) % 104729)
        for row in rows
    ]


for step in range(30):
    inputs = torch.rand(64, 256)
    ranked((inputs * 1000).int().tolist())
    train(inputs, torch.randint(0, 10, (64,)))
"""
)

DOUBLE = (
    MODEL
    + """
model.double()
data = torch.rand(512, 256).double()
for step in range(30):
    train(data, torch.randint(0, 10, (512,)))
"""
)

# In no step that is recorded with frames.
GARBAGE = (
    "import gc"
    + MODEL
    + """
kept = [[number] for number in range(400_000)]
gc.disable()
for step in range(30):
    if step % 4 == 0:
        gc.collect()
    train(torch.rand(64, 256), torch.randint(0, 10, (64,)))
"""
)


def advise(place: Place, *arguments: str) -> dict[str, Any]:
    done = place.plain(str(place.stepscope), "advise", *arguments, "--json", "--no-cache")
    assert done.returncode in (0, 4), done.stderr
    found: dict[str, Any] = json.loads(done.stdout)
    return found


def recorded(place: Place, text: str) -> Job:
    job = place.run(sys.executable, place.script(text), options=("--steps", "10:14"))
    assert job.code == 0, job.stderr
    return job


def assert_queries_answer(place: Place, path: str, findings: list[dict[str, Any]]) -> int:
    """Each query beside a number gives rows; how many there are."""
    queries = {one["query"] for finding in findings for one in finding["evidence"] if one.get("query")}
    queries = {query for query in queries if query.startswith("select ")}
    for query in queries:
        done = place.plain(str(place.stepscope), "query", path, query, "--json", "--no-cache")
        assert done.returncode in (0, 4), f"{query}: {done.stderr}"
        assert json.loads(done.stdout), query
    return len(queries)


@needs_torch
@measured
def test_python_between_operators_has_its_function(place: Place) -> None:
    job = recorded(place, PYTHON)
    found = advise(place, str(job.folder))
    first = found["findings"][0]
    assert first["id"] == "python_in_step"
    assert first["where"]["file"] == "job.py"
    # Python 3.12 has no functions for comprehensions any more.
    assert first["where"]["function"] in ("ranked", "<listcomp>", "<lambda>")
    gain = first["gain"]
    assert 1.1 < gain["speedup_low"] <= gain["speedup_high"]

    text = place.plain(str(place.stepscope), "advise", str(job.folder))
    assert text.stdout.index("Worth changing, most first") < text.stdout.index("job.py:")
    assert place.plain(str(place.stepscope), "advise", str(job.folder), "--fail-on", "1.05").returncode == 3
    stopped = place.plain(str(place.stepscope), "advise", str(job.folder), "--fail-on", "1000")
    assert stopped.returncode == 0, stopped.stderr
    wrong = place.plain(str(place.stepscope), "advise", str(job.folder), "--fail-on", "soon")
    assert wrong.returncode == 2 and "high or a speedup above 1" in wrong.stderr


@needs_torch
def test_a_program_that_is_started_by_a_way_round_is_its_own(place: Place) -> None:
    """python jobs/../job.py: so Python names its frames, and its module."""
    (place.folder / "jobs").mkdir()
    place.script(PYTHON)
    job = place.run(sys.executable, "jobs/../job.py", options=("--steps", "10:14"))
    files = {finding["where"]["file"] for finding in advise(place, str(job.folder))["findings"]}
    assert any(file and file.endswith("jobs/../job.py") for file in files), files


@needs_torch
@measured
def test_float64_is_named_before_all_else(place: Place) -> None:
    folder = str(recorded(place, DOUBLE).folder)
    found = advise(place, folder)
    assert assert_queries_answer(place, folder, found["findings"]) >= 2
    first = found["findings"][0]
    assert first["id"] == "float64" and first["where"]["file"] == "job.py"
    assert 1.3 < first["gain"]["speedup_high"] < 2.1


@needs_torch
@measured
def test_garbage_is_seen_without_frames(place: Place) -> None:
    found = advise(place, str(recorded(place, GARBAGE).folder))
    first = found["findings"][0]
    assert first["id"] == "garbage_collection" and first["gain"]["speedup_low"] > 1.1


def test_nothing_to_change_is_an_answer(place: Place, write_trace: WriteTrace) -> None:
    events = []
    for number in range(3):
        at = 1000 * number
        step = {"ph": "X", "cat": "user_annotation", "name": f"ProfilerStep#{number}", "pid": 7, "tid": 8}
        events.append({**step, "ts": at, "dur": 1000})
        events.append(op("aten::mm", at, 1000))
    path = str(write_trace(events=events))
    done = place.plain(str(place.stepscope), "advise", path)
    said = " ".join(done.stdout.split())  # a terminal is as wide as it is
    assert "Nothing was found that is worth more than 3 %: bound by the main thread of rank 0." in said
    assert said.endswith(f"Next: where the time goes: stepscope report {path} --only advice")  # there is no first
    assert place.plain(str(place.stepscope), "advise", path, "--fail-on", "high").returncode == 0
    refused = place.plain(str(place.stepscope), "advise", str(place.folder / "none"))
    assert refused.returncode == 1 and "none" in refused.stderr


def test_an_option_is_no_file_to_write(place: Place, write_trace: WriteTrace) -> None:
    done = place.plain(str(place.stepscope), "report", str(write_trace()), "--html", "-o")
    assert done.returncode == 2
    assert "-o is an option, not a file to write" in done.stderr and "./-o" in done.stderr
    assert not (place.folder / "-o").exists()


def test_a_program_asks_for_the_same_findings(place: Place, write_trace: WriteTrace) -> None:
    path = write_trace()
    said = advise(place, str(path))["findings"]
    assert said
    assert stepscope.open(path, cache=False).advise() == said


SAVES = (
    MODEL
    + """
import time


def save(path):
    time.sleep(0.3)
    torch.save(model.state_dict(), path)


for step in range(120):
    train(torch.rand(64, 256), torch.randint(0, 10, (64,)))
    if step % 12 == 11:
        save("last.pt")
"""
)


@needs_torch
@measured
def test_what_happens_every_so_many_steps_is_known_from_their_marks(place: Place) -> None:
    job = place.run(sys.executable, place.script(SAVES), options=("--steps", "25:29"))
    assert job.code == 0, job.stderr
    first = advise(place, str(job.folder))["findings"][0]
    assert first["id"] == "checkpoint_in_loop" and first["where"]["file"] == "job.py", first
    assert first["confidence"] == "medium" and "none of these steps was recorded" in first["confidence_reason"]
    assert first["gain"]["speedup_low"] > 2
    assert assert_queries_answer(place, str(job.folder), [first]) == 1  # the marks of all steps


RETURNS = """
import ctypes, sys
import torch

M_TRIM_THRESHOLD, M_MMAP_THRESHOLD, M_MMAP_MAX = -1, -3, -4
libc = ctypes.CDLL(None)
if sys.argv[1] == "kept":
    libc.mallopt(M_TRIM_THRESHOLD, 1 << 30)
    libc.mallopt(M_MMAP_MAX, 0)
else:
    libc.mallopt(M_MMAP_THRESHOLD, 1 << 16)  # what is larger goes back at once
model = torch.nn.Sequential(torch.nn.Linear(32, 256), torch.nn.Tanh(), torch.nn.Linear(256, 1))
optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
parts = torch.rand(8, 1024, 32)
for step in range(60):
    loss = sum(model(part).square().mean() for part in parts)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
"""


@needs_torch
@pytest.mark.parametrize("way", ["back", "kept"])
def test_memory_that_goes_back_in_each_step_is_told_with_its_pages(place: Place, way: str) -> None:
    """Each tensor is of 1 MiB, which no system has as a page. What the recorder used has room for them afterwards."""
    job = place.run(sys.executable, place.script(RETURNS), way, options=("--steps", "20:25"))
    assert job.code == 0, job.stderr
    (process,) = job.manifest()["processes"]
    steps, before = process["page_faults_around"]["before"]
    assert 10 < steps < 20
    assert (before < 500) == (way == "kept")
    found = [one for one in advise(place, str(job.folder))["findings"] if one["id"] == "memory_returned"]
    if way == "kept":
        assert found == []
        return
    (one,) = found
    assert one["where"]["file"] == "job.py" and "op" in one["where"]
    assert one["gain"]["speedup_high"] > 1
    assert "MALLOC_TRIM_THRESHOLD_=1073741824 " in one["next"]
    said = {each["text"]: each["value"] for each in one["evidence"]}
    assert said["Pages of new memory in a step"] > 2048 and said["A page takes here"] > 0


THREADS = """
import sys, threading
import torch
sys.path.insert(0, sys.argv[1])
from _stepscope_hooks import torch_settings

torch.set_num_threads(1)
state, threads = torch.get_rng_state(), threading.active_count()
notes = torch_settings.noted()
assert torch.get_num_threads() == 1 and threading.active_count() == threads
assert torch.equal(torch.get_rng_state(), state)
print(notes.get("stepscope_cores"), notes.get("stepscope_cores_speed_permille"))
"""


CROWD = """
import os, sys
import torch
sys.path.insert(0, sys.argv[1])
from _stepscope_hooks import torch_settings

many = 4 * (os.cpu_count() or 1)
torch.set_num_threads(many)
notes = torch_settings.noted()
assert torch.get_num_threads() == many and torch.is_grad_enabled()
assert "stepscope_cores_speed_permille" not in notes
print(notes["stepscope_crowd_call_ns"])
torch.set_num_threads(1)
assert "stepscope_crowd_call_ns" not in torch_settings.noted()
"""


@needs_torch
@measured
def test_what_calling_more_threads_than_cores_costs_is_measured(place: Place) -> None:
    hooks = Path(stepscope.__file__).parent / "hooks"
    done = place.plain(sys.executable, place.script(CROWD), str(hooks))
    assert done.returncode == 0, done.stderr
    assert 0 <= int(done.stdout) < 1e9


@needs_torch
@measured
def test_what_the_cores_give_is_measured_and_leaves_nothing_behind(place: Place) -> None:
    hooks = Path(stepscope.__file__).parent / "hooks"
    done = place.plain(sys.executable, place.script(THREADS), str(hooks))
    assert done.returncode == 0, done.stderr
    cores, permille = done.stdout.split()
    if cores == "1":
        assert permille == "None"
    else:
        assert 100 < int(permille) < 1100 * int(cores)


@needs_torch
@measured
def test_live_says_on_request_what_to_change_first(place: Place) -> None:
    folder = recorded(place, PYTHON).folder
    keyboard, terminal = os.openpty()
    command = [str(place.stepscope), "live", str(folder)]
    environment = {**os.environ, "TERM": "xterm"}
    with subprocess.Popen(command, stdin=terminal, stdout=terminal, stderr=terminal, env=environment) as live:
        os.close(terminal)
        os.write(keyboard, b"a")
        said = b""
        while b"python_in_step" not in said and b"Python between operators" not in said:
            said += os.read(keyboard, 4096)  # an error where the program has ended without it
        os.write(keyboard, b"q")
        assert live.wait(30) == 0
    os.close(keyboard)
    assert b"Worth changing, most first" in said


# On one core with another process that never rests.
CROWDED = (
    """
import os, subprocess, sys
core = min(os.sched_getaffinity(0))
os.sched_setaffinity(0, {core})
other = subprocess.Popen([sys.executable, "-c", "while True: pass"])
"""
    + MODEL
    + """
for step in range(30):
    train(torch.rand(2048, 256), torch.randint(0, 10, (2048,)))
other.kill()
other.wait()
"""
)


@needs_torch
@measured
def test_what_the_main_thread_waited_for_a_core_is_noted_and_is_no_code(place: Place) -> None:
    job = recorded(place, CROWDED)
    (trace,) = job.traces()
    text = read(trace)
    noted = text["stepscope_waits"]
    assert noted and {number for number, _ in noted} <= {10, 11, 12, 13}
    took_us = sum(one["dur"] for one in text["traceEvents"] if one.get("name", "").startswith("ProfilerStep#"))
    assert 0.1 * took_us < sum(ns for _, ns in noted) / 1000 < 1.1 * took_us
    answer = advise(place, str(job.folder))
    assert not [one for one in answer["findings"] if one["id"] == "python_in_step" and one["confidence"] == "high"]


FIXED = PYTHON.replace("    ranked((inputs * 1000).int().tolist())\n", "")


@needs_torch
@measured
def test_a_comparison_says_what_was_mended_and_what_it_gave(place: Place) -> None:
    assert FIXED != PYTHON
    slow = recorded(place, PYTHON).folder
    assert slow is not None
    before = slow.rename(place.folder / "before")
    after = recorded(place, FIXED).folder
    done = place.plain(str(place.stepscope), "diff", str(before), str(after), "--json")
    assert done.returncode == 0, done.stderr
    (answer,) = json.loads(done.stdout)["answers"].values()
    (mended,) = [row for row in rows(answer, "fixes") if row["finding"] == "python_in_step"]
    assert mended["mended"] and mended["after_ns"] < mended["before_ns"] / 2
    assert 1.1 < mended["predicted_low"] <= mended["predicted_high"]
    # Of the job's own steps, as the prediction is: what recording takes in each run is none of it.
    real = advise(place, str(before))["step_ns"] / advise(place, str(after))["step_ns"]
    told = answer["findings"][0]
    assert told["id"] == "finding_gone" and f"{real:.2f}x" in told["sentence"], (real, told)
    assert answer["tables"]["fixes"] == next(iter(answer["tables"].values()))
    # Asked of both at once it says that they are two jobs, and none of them is the slow rank of the other.
    both = [str(place.stepscope), "advise", str(before), str(after)]
    said = " ".join(place.plain(*both).stdout.split())
    assert "do not look like one job: several are of rank 0" in said
    named = [finding["id"] for finding in json.loads(place.plain(*both, "--json").stdout)["findings"]]
    assert "python_in_step" in named and not any(one.startswith("straggler") for one in named)
