"""`stepscope run --memory-history`: what is written, when, for which ranks; and that the job is unharmed.

No GPU is needed: jobs put a stand-in in the place of torch's functions for CUDA memory. It keeps what it was asked for
and gives a snapshot of the real form; when and how ours are called, and what they write, is real.
"""

from __future__ import annotations

import json
import pickle
import subprocess
import sys
from pathlib import Path

import pytest
from jobs import code as job_code
from jobs import needs_torch
from test_settings import SHOW, stepscope_run, words

pytestmark = needs_torch

# The first use of the GPU, as torch.cuda._lazy_init has it, and running out of memory, as the allocator has it.
STAND_IN = """
import os, sys, torch
asked, observers = [], []
def record(enabled="all", context="all", stacks="all", max_entries=sys.maxsize, device=None, clear_history=False,
           compile_context=False, global_record_annotations=False):
    asked.append((enabled, stacks, max_entries, global_record_annotations))
def snapshot(device=None, augment_with_fx_traces=False):
    frame = {"filename": "train.py", "line": 7, "name": "main"}
    return {"segments": [], "device_traces": [[{"action": "alloc", "addr": 512, "size": 1024, "stream": 0,
            "time_us": len(asked), "frames": [frame]}]], "allocator_settings": {}, "external_annotations": []}
torch.cuda.memory._record_memory_history, torch.cuda.memory._snapshot = record, snapshot
torch._C._cuda_attach_out_of_memory_observer = observers.append
torch.cuda.get_device_name = lambda: "stand-in"
def first_use_of_cuda():
    ours = [call for call, _ in torch.cuda._queued_calls if "stepscope" in getattr(call, "__module__", "")]
    torch.cuda._initialized = True
    for call in ours:
        call()
def run_out():
    for observer in observers:
        observer(0, 1 << 40, 1 << 36, 1 << 30)
    raise torch.OutOfMemoryError("CUDA out of memory.")
"""
TRAIN = """
torch.manual_seed(0)
model = torch.nn.Linear(8, 8)
first_use_of_cuda()
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for step in range(7):
    loss = model(torch.ones(2, 8)).sum()
    loss.backward()
    optimizer.step()
    optimizer.zero_grad()
print(f"{loss.item():.6f}", asked)
"""


def run_job(
    stepscope: Path, folder: Path, code: str, *options: str, **more: str
) -> tuple[subprocess.CompletedProcess[str], Path]:
    (folder / "train.py").write_text(job_code(code))
    command = [sys.executable, "train.py"]
    done = stepscope_run(stepscope, folder, "--trace=false", *options, command=command, OMP_NUM_THREADS="1", **more)
    (run,) = folder.glob("stepscope/train/*")
    return done, run


def names(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.glob("*.pickle"))


def problems(run: Path) -> list[str]:
    return [text for note in run.glob("processes/*.json") for text in json.loads(note.read_text())["problems"]]


def test_snapshots_every_so_many_steps(stepscope: Path, tmp_path: Path) -> None:
    done, run = run_job(stepscope, tmp_path, STAND_IN + TRAIN, "--memory-history", "--memory-every", "3")
    assert done.returncode == 0, done.stderr
    assert "('all', 'python', 100000, True)" in done.stdout  # no stacks of C++, once
    assert done.stdout.count("'all'") == 1
    written = [f"rank-0_step-{step}_snapshot.pickle" for step in (1, 3, 6, 7)]  # 7: the end of the job
    assert names(run / "memory") == written
    for name in written:
        content = (run / "memory" / name).read_bytes()
        assert content[:2] == b"\x80\x04"  # the protocol that the official viewer reads
        assert pickle.loads(content)["device_traces"][0][0]["frames"][0]["name"] == "main"
    (note,) = run.glob("processes/*.json")
    assert json.loads(note.read_text())["memory_snapshots"] == [f"memory/{name}" for name in written]
    assert not problems(run)


def test_megatron_s_names(stepscope: Path, tmp_path: Path) -> None:
    end = "run_out()\n"
    options = ("--record-memory-history", "--max-entries", "500", "--memory-snapshot-path", "my snaps/näme %.pickle")
    done, run = run_job(stepscope, tmp_path, STAND_IN + TRAIN + end, *options)
    assert done.returncode == 1  # as the job ends by itself
    assert "OutOfMemoryError: CUDA out of memory." in done.stderr
    assert "('all', 'python', 500, True)" in done.stdout
    assert names(tmp_path / "my snaps") == ["näme %.pickle", "oom_rank-0_näme %.pickle"]
    assert not (run / "memory").exists()
    assert not problems(run)


@pytest.mark.parametrize(
    ("options", "rank", "written"),
    [
        ((), "1", True),  # the last, as Megatron-LM has it
        ((), "0", False),
        (("--profile-ranks", "0", "1"), "1", True),
    ],
)
def test_ranks(stepscope: Path, tmp_path: Path, options: tuple[str, ...], rank: str, written: bool) -> None:
    code = STAND_IN + TRAIN
    done, run = run_job(stepscope, tmp_path, code, "--memory-history", *options, RANK=rank, WORLD_SIZE="2")
    assert done.returncode == 0, done.stderr
    assert names(run / "memory") == ([f"rank-{rank}_step-{n}_snapshot.pickle" for n in (1, 7)] if written else [])
    assert ("python" in done.stdout) == written  # nothing is recorded where nobody asked
    assert not problems(run)


def test_a_rank_that_is_known_late(stepscope: Path, tmp_path: Path) -> None:
    """Recording began before the process was anybody; once it is rank 0 of 2, it stops."""
    late = TRAIN.replace(
        "    optimizer.step()", "    os.environ.update(RANK='0', WORLD_SIZE='2')\n    optimizer.step()"
    )
    done, run = run_job(stepscope, tmp_path, STAND_IN + late, "--memory-history")
    assert done.returncode == 0, done.stderr
    assert names(run / "memory") == []
    assert "[('all', 'python', 100000, True), (None, 'all'" in done.stdout


def test_many_snapshots_are_thinned(stepscope: Path, tmp_path: Path) -> None:
    code = STAND_IN + TRAIN.replace("range(7)", "range(30)")
    _, run = run_job(stepscope, tmp_path, code, "--memory-history", "--memory-every", "1")
    steps = sorted(int(name.split("_")[1].removeprefix("step-")) for name in names(run / "memory"))
    assert steps == [1, *range(22, 31)]  # the first and the newest


def test_a_job_on_the_cpu_has_nothing_to_record(stepscope: Path, tmp_path: Path) -> None:
    code = (STAND_IN + TRAIN).replace("\nfirst_use_of_cuda()", "")
    done, run = run_job(stepscope, tmp_path, code, "--memory-history")
    assert done.returncode == 0, done.stderr
    assert problems(run) == ["--memory-history had nothing to record: the process used no GPU"]
    assert "--memory-history had nothing to record" in done.stderr
    assert "[]" in done.stdout


@pytest.mark.parametrize("broken", ["record", "snapshot", "observers.append"])
def test_what_fails_in_ours_stays_there(stepscope: Path, tmp_path: Path, broken: str) -> None:
    alone = tmp_path / "alone"
    alone.mkdir()
    plain, _ = run_job(stepscope, alone, STAND_IN + TRAIN)
    fails = "def fails(*args, **kwargs):\n    raise RuntimeError('broken')\n"
    places = {
        "record": "torch.cuda.memory._record_memory_history = fails\n",
        "snapshot": "torch.cuda.memory._snapshot = fails\n",
        "observers.append": "torch._C._cuda_attach_out_of_memory_observer = fails\n",
    }
    done, run = run_job(stepscope, tmp_path, STAND_IN + fails + places[broken] + TRAIN, "--memory-history")
    assert done.returncode == 0, done.stderr
    assert done.stdout.split()[0] == plain.stdout.split()[0]
    assert any("broken" in text for text in problems(run))
    assert not list((tmp_path / "stepscope").rglob("*.tmp"))


def test_settings(stepscope: Path, tmp_path: Path) -> None:
    done = stepscope_run(stepscope, tmp_path, "--memory-history", "--memory-snapshot-path", "a b.pickle")
    assert words(done)["memory_history"] == "100000:100"
    assert words(done)["memory_path"] == str(tmp_path / "a%20b.pickle")
    assert "memory_history" not in words(stepscope_run(stepscope, tmp_path, "--memory-history=false"))
    alone = stepscope_run(stepscope, tmp_path, "--memory-every", "5", command=SHOW)
    assert alone.returncode == 2
    assert "Add --memory-history" in alone.stderr
    wrong = stepscope_run(stepscope, tmp_path, "--memory-history", "--max-entries", "0", command=SHOW)
    assert wrong.returncode == 2
    assert "no whole number from 1 on" in wrong.stderr
