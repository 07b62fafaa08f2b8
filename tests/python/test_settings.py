"""What `stepscope run` is told to record, by options, variables and files, as the hooks and the doctor see it."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest
from jobs import needs_torch

SHOW = ["sh", "-c", 'echo "$STEPSCOPE_CAPTURE"']


def plain_environment(**more: str) -> dict[str, str]:
    kept = {name: value for name, value in os.environ.items() if not name.startswith("STEPSCOPE_")}
    return {**kept, **more}


def stepscope_run(
    stepscope: Path, folder: Path, *options: str, command: list[str] = SHOW, **more: str
) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [str(stepscope), "run", *options, "--", *command],
        cwd=folder,
        env=plain_environment(**more),
        capture_output=True,
        text=True,
        timeout=240,
    )


def words(done: subprocess.CompletedProcess[str]) -> dict[str, str]:
    assert done.returncode == 0, done.stderr
    return dict(word.split("=", 1) for word in done.stdout.split())


def wait_for(path: Path) -> str:
    end = time.monotonic() + 60
    while not path.exists():
        assert time.monotonic() < end, f"{path} did not come"
        time.sleep(0.01)
    return path.read_text()


@pytest.mark.parametrize(
    ("options", "word", "value"),
    [
        ((), "with", "shapes,memory,modules"),
        ((), "ranks", "all"),
        (("--steps", "10:15"), "steps", "10:15"),
        (("--steps=40:45,10:15",), "steps", "10:15,40:45"),
        (("--profile-step-start", "4", "--profile-step-end", "6"), "steps", "4:6"),
        (("--profile-ranks", "0", "1", "--steps", "3"), "ranks", "0,1"),
        (("--profile-ranks", "0", "last"), "ranks", "0,last"),
        (("--schedule", "wait=5,warmup=2,active=6,repeat=2"), "cycle", "7:6:13:2"),
        (("--seconds", "2"), "seconds", "3:5"),
        (("--time", "15", "--warmup", "120"), "seconds", "120:135"),
        (("--trigger", "command"), "steps", "none"),
        (("--profiling",), "with", "shapes,memory,modules,stack"),
        (("--no-shapes", "--stack"), "with", "memory,modules,stack"),
        (("--budget", "1%,512MB"), "budget_bytes", "512000000"),
    ],
)
def test_options_reach_the_hooks(
    stepscope: Path, tmp_path: Path, options: tuple[str, ...], word: str, value: str
) -> None:
    done = stepscope_run(stepscope, tmp_path, *options)
    assert words(done)[word] == value
    (manifest,) = tmp_path.glob("stepscope/sh/*/run.json")
    assert json.loads(manifest.read_text())["capture"] == done.stdout.strip()


def test_the_job_s_words_are_not_taken_for_values(stepscope: Path, tmp_path: Path) -> None:
    command = [
        str(stepscope),
        "run",
        "--profile-ranks",
        "0",
        "1",
        "sh",
        "-c",
        'echo "$STEPSCOPE_CAPTURE|$1"',
        "sh",
        "2",
    ]
    done = subprocess.run(
        command, cwd=tmp_path, env=plain_environment(), capture_output=True, text=True, timeout=60, check=True
    )
    assert "ranks=0,1 " in done.stdout
    assert done.stdout.endswith("|2\n")


def test_openmetrics_without_telemetry_is_told(stepscope: Path, tmp_path: Path) -> None:
    done = stepscope_run(stepscope, tmp_path, "--telemetry", "off", "--openmetrics", "job.prom")
    assert "openmetrics writes what telemetry samples, which is off" in done.stderr
    assert not (tmp_path / "job.prom").exists()


def test_option_over_variable_over_file(stepscope: Path, tmp_path: Path) -> None:
    inner = tmp_path / "inner"
    inner.mkdir()
    (tmp_path / "stepscope.toml").write_text(
        'steps = "1:2"\nranks = 0\nbudget = "1%"\nout = "runs"\nopenmetrics = "job.prom"\n'
    )
    done = stepscope_run(stepscope, inner, "--steps", "5:6", STEPSCOPE_STEPS="3:4", STEPSCOPE_RANKS="1")
    found = words(done)
    assert (found["steps"], found["ranks"], found["budget"]) == ("5:6", "1", "0.01")
    assert str(tmp_path / "stepscope.toml") in done.stderr.splitlines()[0]
    assert list(tmp_path.glob("runs/sh/*/run.json")), "out is meant from where the file lies"
    assert (tmp_path / "job.prom").is_file(), "and so is any other path"


@pytest.mark.parametrize(
    ("options", "file", "says"),
    [
        (("--steps", "5:5"), "", "--steps: '5:5' is no window of steps. Write START:END"),
        (("--ranks", "first"), "", "--ranks: 'first' is no rank. Write all, or numbers"),
        (("--steps", "1", "--time", "2"), "", "--steps and --time do not go together"),
        (("--with", "shape"), "", "did you mean 'shapes'?"),
        (("--config", "none.toml"), "", "none.toml: there is no such file"),
        ((), "steps = 1\nrank = 0\n", "stepscope.toml:2: unknown setting 'rank'; did you mean 'ranks'?"),
        ((), "\nsteps = [1\n", "stepscope.toml:"),
        ((), "\nranks = '3-1'\n", "stepscope.toml:2: ranks: '3-1' is no rank"),
    ],
)
def test_wrong_settings_are_told_before_the_job_starts(
    stepscope: Path, tmp_path: Path, options: tuple[str, ...], file: str, says: str
) -> None:
    (tmp_path / "stepscope.toml").write_text(file)
    done = stepscope_run(stepscope, tmp_path, *options, command=["touch", "ran"])
    assert done.returncode == 2
    assert says in done.stderr
    assert len(done.stderr.splitlines()) == 1
    assert sorted(path.name for path in tmp_path.iterdir()) == ["stepscope.toml"]


def test_a_signal_asks_and_does_not_reach_the_job(stepscope: Path, tmp_path: Path) -> None:
    # Without a handler the job would be killed by the signal; it ends when the second request is there.
    program = (
        "import os, pathlib, time\n"
        "print(os.environ['STEPSCOPE_RUN'], flush=True)\n"
        "end = pathlib.Path(os.environ['STEPSCOPE_RUN'], 'requests', '0002.json')\n"
        "stop = time.monotonic() + 60\n"
        "while not end.exists() and time.monotonic() < stop: time.sleep(0.01)\n"
    )
    with subprocess.Popen(
        [str(stepscope), "run", "--trigger", "USR2", "--ranks", "0,last", "--", sys.executable, "-c", program],
        cwd=tmp_path,
        env=plain_environment(),
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    ) as job:
        try:
            assert job.stdout is not None
            requests = Path(job.stdout.readline().strip(), "requests")
            job.send_signal(signal.SIGUSR2)
            first = json.loads(wait_for(requests / "0001.json"))
            job.send_signal(signal.SIGUSR2)
            stderr = job.communicate(timeout=60)[1]
        finally:
            job.kill()
    assert job.returncode == 0, stderr
    assert f"kill -USR2 {job.pid} " in stderr.splitlines()[0]
    assert abs(first.pop("unix_ns") / 1e9 - time.time()) < 3600
    assert first == {"schema_version": 1, "id": "0001", "steps": 3, "ranks": "0,last"}
    assert sorted(path.name for path in requests.iterdir()) == ["0001.json", "0002.json"]


def test_a_signal_does_not_end_a_job_that_cannot_be_recorded(stepscope: Path, tmp_path: Path) -> None:
    (tmp_path / "out").write_text("a file where a folder is meant")
    program = "import time; print('ready', flush=True); time.sleep(1); print('done')"
    with subprocess.Popen(
        [str(stepscope), "run", "--trigger", "USR2", "--out", "out", "--", sys.executable, "-c", program],
        cwd=tmp_path,
        env=plain_environment(),
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    ) as job:
        try:
            assert job.stdout is not None
            assert job.stdout.readline() == "ready\n"
            job.send_signal(signal.SIGUSR2)
            stdout, stderr = job.communicate(timeout=60)
        finally:
            job.kill()
    assert (job.returncode, stdout) == (0, "done\n")
    assert "runs without a recording" in stderr


def doctor(stepscope: Path, folder: Path, *options: str, **more: str) -> dict[str, Any]:
    done = subprocess.run(
        [str(stepscope), "doctor", "--json", "--python", sys.executable, *options],
        cwd=folder,
        env=plain_environment(**more),
        capture_output=True,
        text=True,
        timeout=240,
    )
    found: dict[str, Any] = json.loads(done.stdout)
    return found


def test_the_doctor_says_what_holds_and_why(stepscope: Path, tmp_path: Path) -> None:
    (tmp_path / "pyproject.toml").write_text('[project]\nname = "x"\n\n[tool.stepscope]\nsteps = "1:2"\nout = "runs"\n')
    answer = doctor(stepscope, tmp_path, STEPSCOPE_WITH="stack")
    held = {one["name"]: (one["value"], one["origin"]) for one in answer["settings"]}
    assert held["steps"] == ("1:2", "pyproject.toml:5")
    assert held["with"] == ("stack", "STEPSCOPE_WITH")
    assert held["ranks"] == ("all", "default")
    assert held["out"] == (str(tmp_path / "runs"), "pyproject.toml:6")
    checks = {check["name"]: check for check in answer["checks"]}
    assert checks["settings"]["status"] == "ok"
    assert checks["run folder"]["found"].startswith(str(tmp_path / "runs"))
    assert "steps" not in {one["name"] for one in doctor(stepscope, tmp_path, STEPSCOPE_TIME="5")["settings"]}


def test_the_doctor_names_a_wrong_setting(stepscope: Path, tmp_path: Path) -> None:
    (tmp_path / "stepscope.toml").write_text("steps = 'x'\n")
    answer = doctor(stepscope, tmp_path)
    assert (answer["ready"], answer["settings"]) == (False, None)
    (check,) = [check for check in answer["checks"] if check["name"] == "settings"]
    assert check["status"] == "failure"
    assert check["found"] == "stepscope.toml:1: steps: 'x' is no window of steps"
    assert check["fix"].startswith("Write START:END")


@needs_torch
def test_steps_of_a_file_are_recorded(stepscope: Path, tmp_path: Path) -> None:
    (tmp_path / "stepscope.toml").write_text("profile-step-start = 2\nprofile_step_end = 4\n")
    (tmp_path / "job.py").write_text(
        "import torch\n"
        "weight = torch.nn.Parameter(torch.ones(2))\n"
        "optimizer = torch.optim.SGD([weight], lr=0.1)\n"
        "for _ in range(6):\n"
        "    weight.sum().backward()\n"
        "    optimizer.step()\n"
    )
    done = stepscope_run(stepscope, tmp_path, command=[sys.executable, "job.py"])
    assert done.returncode == 0
    assert "recorded steps 2-3 of 6" in done.stderr
