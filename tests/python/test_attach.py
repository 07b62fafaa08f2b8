"""`stepscope attach`: steps of a job that runs already."""

from __future__ import annotations

import contextlib
import json
import os
import re
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from jobs import Place, measured, needs_torch, read

pytestmark = needs_torch

LOOP = """
    import os, sys, time, torch
    torch.manual_seed(0)
    net = torch.nn.Sequential(torch.nn.Linear(8, 8), torch.nn.ReLU(), torch.nn.Linear(8, 1))
    optimizer = torch.optim.SGD(net.parameters(), lr=0.01)
    for number in range(int(sys.argv[1])):
        loss = net(torch.ones(4, 8)).square().sum()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        time.sleep(0 if "ALONE" in os.environ else 0.02)
        if number == 5:
            print("running", flush=True)
    print(loss.item())
"""
DDP = """
    import torch, torch.distributed as dist, time, sys
    dist.init_process_group("gloo")
    net = torch.nn.parallel.DistributedDataParallel(torch.nn.Linear(8, 8))
    optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
    for number in range(int(sys.argv[1])):
        net(torch.ones(2, 8)).sum().backward()
        optimizer.step()
        time.sleep(0.03)
        if number == 5 and dist.get_rank() == 0:
            print("running", flush=True)
    dist.destroy_process_group()
"""


@contextlib.contextmanager
def running(place: Place, command: list[str]) -> Iterator[subprocess.Popen[str]]:
    """The job, once it has printed that it runs; ended with everything it started."""
    with subprocess.Popen(
        command,
        cwd=place.folder,
        env=place.environment,
        text=True,
        start_new_session=True,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    ) as job:
        try:
            assert job.stdout is not None and job.stderr is not None
            if job.stdout.readline() != "running\n":
                pytest.fail("the job did not start: " + job.stderr.read())
            yield job
        finally:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(job.pid, signal.SIGKILL)


def try_to_attach(place: Place, *arguments: str) -> subprocess.CompletedProcess[str]:
    """Where the kernel forbids it, as in some containers, there is nothing to test."""
    done = place.plain(str(place.stepscope), "attach", "--out", str(place.out), *arguments)
    if "ptrace" in done.stderr and done.returncode == 1:
        pytest.skip(f"this machine does not let us trace processes: {done.stderr.strip()}")
    return done


def attach(place: Place, *arguments: str) -> tuple[Path, str]:
    """The run folder that attach names, and what it said."""
    done = try_to_attach(place, "--timeout", "120", *arguments)
    assert done.returncode == 0, done.stderr
    named = re.search(r"Next: stepscope report (\S+)", done.stderr)
    assert named, done.stderr
    return place.folder / named.group(1), done.stderr


def attach_when_free(place: Place, *arguments: str) -> str:
    """What it says once the job has written what it records; a machine with other work takes seconds for it."""
    deadline = time.monotonic() + 60
    while True:
        done = try_to_attach(place, "--timeout", "120", *arguments)
        if done.returncode == 0 or time.monotonic() > deadline:
            return done.stderr
        assert "it is recorded already" in done.stderr and "Ask again afterwards" in done.stderr
        time.sleep(0.5)


def refused(place: Place, *arguments: str) -> str:
    """What attach says of a job that it could not record; the time it may wait is far longer than a test's."""
    done = try_to_attach(place, "--timeout", "9999", *arguments)
    assert done.returncode == 1, done.stderr
    return done.stderr


def steps_of(folder: Path) -> list[list[int]]:
    traces = [path for path in sorted((folder / "traces").rglob("*.gz")) if ".stacks." not in path.name]
    marks = []
    for trace in traces:
        events: list[dict[str, Any]] = read(trace)["traceEvents"]
        names = [event.get("name", "") for event in events]
        marks.append(sorted(int(name.split("#")[1]) for name in names if name.startswith("ProfilerStep#")))
    return marks


def test_a_job_that_was_started_with_nothing_special(place: Place) -> None:
    script = place.script(LOOP)
    plain = place.execute([sys.executable, script, "250"], ALONE="1")
    with running(place, [sys.executable, script, "250"]) as job:
        folder, said = attach(place, str(job.pid), "--steps", "4")
        out, err = job.communicate(timeout=120)
    assert "attached to 1 process" in said
    assert (job.returncode, "running\n" + out, err) == (0, plain.stdout, plain.stderr)
    (steps,) = steps_of(folder)
    assert len(steps) == 4
    (note,) = [json.loads(path.read_text()) for path in (folder / "processes").glob("*.json")]
    assert note["detached"] is True
    assert note["problems"] == []
    done = place.plain(str(place.stepscope), "report", str(folder), "--only", "steps", "--json")
    assert json.loads(done.stdout)["answers"]["steps"]["scalars"]["step_count"]["value"] == 4


@measured
def test_the_shared_loop_without_optimizer_and_modules(place: Place, corpus: Path) -> None:
    program = corpus.parent / "examples" / "matmul_loop.py"
    if not program.exists():
        pytest.skip("../shared/examples is not there")
    text = f"import torch, runpy; print('running', flush=True); runpy.run_path({str(program)!r})"
    with running(place, [sys.executable, "-c", text]) as job:
        folder, said = attach(place, str(job.pid), "--time", "1")
        assert "recorded 1 s of 1 rank" in said
        assert job.communicate(timeout=120) == ("", "")
    assert job.returncode == 0
    (trace,) = [path for path in (folder / "traces").rglob("*.gz") if ".stacks." not in path.name]
    names = [event.get("name") for event in read(trace)["traceEvents"]]
    assert names.count("matmul_step") >= 2
    assert abs(names.count("aten::mm") - names.count("matmul_step")) <= 1


@pytest.mark.parametrize("when", ["runs", "is_constructed"])
def test_a_profiler_of_the_job_s_own_keeps_its_events(place: Place, when: str) -> None:
    """torch has room for one, and a second would empty it without a word."""
    script = place.script(f"""
        import sys, time, torch
        from torch.profiler import profile
        net = torch.nn.Linear(8, 8)
        optimizer = torch.optim.SGD(net.parameters(), lr=0.01)
        def step():
            net(torch.ones(4, 8)).sum().backward()
            optimizer.step()
            time.sleep(0.02)
        own, began = profile(), None
        for number in range(300):
            if number == 5:
                print("running", flush=True)
            if began is None and ("{when}" == "runs" or "_stepscope_hooks.capture" in sys.modules):
                own.start()
                began = number
            step()
        own.stop()
        counts = {{event.key: event.count for event in own.key_averages()}}
        print(counts["aten::addmm"] == 300 - began, began == 0)
    """)
    with running(place, [sys.executable, script]) as job:
        said = refused(place, str(job.pid), "--steps", "400")
        out, err = job.communicate(timeout=120)
    assert (job.returncode, out.strip()) == (0, {"runs": "True True", "is_constructed": "True False"}[when])
    assert [line for line in err.splitlines() if "profiler_st" not in line] == [], "Kineto itself says start and stop"
    assert "nothing was recorded: the job runs a profiler of its own, and torch has room for one" in said


def test_a_job_that_is_recorded_already(place: Place) -> None:
    with running(place, [sys.executable, place.script(LOOP), "4000"]) as job:
        first = [str(place.stepscope), "attach", str(job.pid), "--steps", "400", "--out", str(place.out)]
        with subprocess.Popen(first, cwd=place.folder, text=True, stderr=subprocess.PIPE) as other:
            assert other.stderr is not None
            assert "attached to 1 process" in other.stderr.readline()
            said = refused(place, str(job.pid))
            other.kill()
    assert "nothing was recorded: it is recorded already, into " + str(place.out) in said
    assert len(list(place.out.glob("*/*/run.json"))) == 1, "no second run folder without a recording"


@measured
def test_all_ranks_of_torchrun_record_the_same_steps(place: Place) -> None:
    launcher = [sys.executable, "-m", "torch.distributed.run", "--nproc-per-node", "2", "--rdzv-backend", "c10d"]
    where = ["--rdzv-endpoint", "127.0.0.1:0", "--local-addr", "127.0.0.1", place.script(DDP), "2000"]
    with running(place, launcher + where) as job:
        folder, said = attach(place, str(job.pid))
        assert "attached to 2 process" in said
    steps = steps_of(folder)
    assert len(steps) == 2
    assert len(steps[0]) == 3
    assert steps[0] == steps[1]


def test_a_job_under_run_is_asked_through_its_folder(place: Place) -> None:
    with running(place, place.command(sys.executable, place.script(LOOP), "2000", options=("--steps", "9000"))) as job:
        time.sleep(0.5)
        folder, said = attach(place, "--job", str(place.out), "--steps", "2")
        assert job.poll() is None
    assert re.search(r"asked 1 rank of \S+ for 2 steps", said)
    assert [len(steps) for steps in steps_of(folder)] == [2]


@measured
def test_ranks_in_separate_network_namespaces_record_the_same_steps(place: Place) -> None:
    """They share nothing but the run folder: no address of one can be reached from the other."""
    alone = ["unshare", "--map-root-user", "--net"]
    allowed = place.plain(*alone, "true")
    if allowed.returncode != 0:
        pytest.skip(f"no network namespaces of one's own here: {allowed.stderr.strip()}")
    script = place.script(LOOP)
    launch = place.script(
        f"""
        for rank in 0 1; do
            RANK=$rank WORLD_SIZE=2 {" ".join(alone)} {sys.executable} {script} 2000 &
        done
        wait
        """,
        "launch.sh",
    )
    with running(place, place.command("sh", launch, options=("--steps", "9000"))) as job:
        assert job.stdout is not None and job.stdout.readline() == "running\n", "the other rank too"
        folder, said = attach(place, "--job", str(place.out), "--steps", "3")
        assert job.poll() is None
    assert re.search(r"asked 2 ranks of \S+ for 3 steps", said)
    steps = steps_of(folder)
    assert len(steps) == 2
    assert len(steps[0]) == 3
    assert steps[0] == steps[1]
    assert sorted(path.name for path in (folder / "traces").iterdir()) == ["rank0", "rank1"]


def test_an_attach_that_is_interrupted_takes_its_request_back(place: Place) -> None:
    script = place.script(LOOP)
    with running(place, [sys.executable, script, "1500"]) as job:
        command = [str(place.stepscope), "attach", "--out", str(place.out), str(job.pid), "--steps", "5000"]
        asking = subprocess.Popen(command, cwd=place.folder, text=True, stderr=subprocess.PIPE)
        assert asking.stderr is not None
        said = asking.stderr.readline()
        if "ptrace" in said:
            pytest.skip(said)
        time.sleep(4)
        asking.send_signal(signal.SIGINT)
        assert "withdrawn" in asking.stderr.read()
        assert asking.wait(timeout=30) == 130
        assert "recorded 2 steps of 1 rank" in attach_when_free(place, str(job.pid), "--steps", "2")
        none = refused(place, str(job.pid), "--ranks", "3")
        assert "none of the job's ranks is one of --ranks" in none
        _, said = attach(place, "./job.py", "--steps", "2")  # by its path
        assert "recorded 2 steps of 1 rank" in said


@measured
def test_a_job_that_ends_meanwhile(place: Place) -> None:
    with running(place, place.command(sys.executable, place.script(LOOP), "60", options=("--steps", "9000"))):
        time.sleep(0.3)
        done = place.plain(str(place.stepscope), "attach", "--job", str(place.out), "--steps", "5000")
    assert done.returncode == 1
    assert "the job ended before" in done.stderr or "no rank of this run" in done.stderr


def test_what_cannot_be_attached_to(place: Place) -> None:
    for arguments, sentence in (
        (("999999999",), "no"),
        (("no_such_script.py",), "no"),
        (("--job", str(place.folder)), "no run was found here"),
        ((), "a running job is to be named"),
    ):
        done = place.plain(str(place.stepscope), "attach", *arguments)
        assert done.returncode in (1, 2), done.stderr
        assert sentence in done.stderr
        assert len(done.stderr.splitlines()) == 1


def test_a_job_that_asks_kineto_s_daemon(place: Place) -> None:
    place.environment["KINETO_USE_DAEMON"] = "1"
    # The machine's own name may be taken; a socket's path has room for 108 characters.
    with tempfile.TemporaryDirectory(dir="/tmp") as sockets:
        place.environment["KINETO_IPC_SOCKET_DIR"] = sockets
        with running(place, [sys.executable, place.script(LOOP), "9000"]) as job:
            folder, said = attach(place, str(job.pid), "--method", "daemon", "--time", "1")
            assert job.poll() is None
    assert "recorded 1 s of 1 rank" in said
    (trace,) = (folder / "traces" / "rank0").iterdir()
    names = {event.get("name", "") for event in json.loads(trace.read_text())["traceEvents"]}
    assert "Optimizer.step#SGD.step" in names
    done = place.plain(str(place.stepscope), "report", str(folder), "--only", "operators", "--json")
    assert json.loads(done.stdout)["answers"]["operators"]["tables"]["by_name"]["rows"]


def test_the_daemon_is_no_way_into_a_job_that_does_not_ask(place: Place) -> None:
    with running(place, [sys.executable, place.script(LOOP), "2000"]) as job:
        done = place.plain(str(place.stepscope), "attach", str(job.pid), "--method", "daemon")
    assert done.returncode == 1
    assert "does not ask a Kineto daemon" in done.stderr
    assert "KINETO_USE_DAEMON=1" in done.stderr


@measured
def test_what_was_asked_for_is_what_the_report_opens(place: Place) -> None:
    script = place.script(LOOP)
    with running(place, [str(place.stepscope), "run", "--out", str(place.out), "--", sys.executable, script, "1000"]):
        time.sleep(1.5)  # steps 10-14 are over
        folder, _ = attach(place, "--job", str(place.out), "--steps", "2")
    done = place.plain(str(place.stepscope), "report", str(folder), "--only", "steps", "--json", "--no-cache")
    found = json.loads(done.stdout)["answers"]["steps"]
    assert found["scalars"]["whole_step_count"]["value"] == 2
    (note,) = [json.loads(path.read_text()) for path in (folder / "processes").glob("*.json")]
    assert note["windows"][0]["steps"] == [10, 11, 12, 13, 14]


def test_what_attach_is_not_told_the_settings_say(place: Place) -> None:
    (place.folder / "stepscope.toml").write_text('with = "stack"\n')
    with running(place, [sys.executable, place.script(LOOP), "1000"]) as job:
        folder, _ = attach(place, str(job.pid), "--steps", "1")
    assert "with=stack" in json.loads((folder / "run.json").read_text())["capture"]
    (trace,) = folder.rglob("*.pt.trace.json.gz")
    assert any(event.get("cat") == "python_function" for event in read(trace)["traceEvents"])
