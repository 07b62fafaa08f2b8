"""What goes wrong around a recorded job: signals, full and missing file systems, exec, clocks, strange torches.

The measure is always the same job without us: same output, same exit code; and what was recorded until then opens.
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time

import pytest
from jobs import Job, Place, measured, needs_torch, read, report, rows
from rings import rings
from rings import steps_of as marked_steps
from test_attach import LOOP, attach, running

TRAIN = """
    import os, signal, sys, threading, time, torch
    torch.manual_seed(0)
    net = torch.nn.Linear(8, 8)
    optimizer = torch.optim.SGD(net.parameters(), lr=0.01)
    def step():
        net(torch.ones(4, 8)).sum().backward()
        optimizer.step()
    def train(steps, at, action):
        for number in range(steps):
            step()
            if number == at:
                action()
        print("trained", flush=True)
    def end():
        os.kill(os.getpid(), signal.SIGTERM)
"""
IN_WINDOW = ("--steps", "5:100000")


def run(place: Place, text: str, code: int, stdout: str, options: tuple[str, ...] = IN_WINDOW) -> Job:
    """The job under us, where what it does alone is known."""
    job = place.run(sys.executable, place.script(TRAIN + text), options=options)
    assert (job.code, job.stdout, job.others) == (code, stdout, [])
    return job


def compare(place: Place, text: str, options: tuple[str, ...] = IN_WINDOW) -> Job:
    """The job under us, after its output and exit code were found to be those of the job alone."""
    script = place.script(text)
    plain = place.plain(sys.executable, script)
    job = place.run(sys.executable, script, options=options)
    code = plain.returncode if plain.returncode >= 0 else 128 - plain.returncode
    assert (job.code, job.stdout, job.others) == (code, plain.stdout, plain.stderr.splitlines())
    return job


def recorded(job: Job) -> list[int]:
    """The whole steps of the one window that was recorded, which the report opens; a long one has several parts."""
    (process,) = job.manifest()["processes"]
    windows = process["windows"]
    assert {window["window"] for window in windows} == {0}
    assert windows[-1]["complete"] is False
    assert job.folder is not None
    assert all(read(job.folder / window["trace"])["traceEvents"] for window in windows)
    return [step for window in windows for step in window["steps"]]


# SIGTERM and SIGINT -------------------------------------------------------------------------------------------------


@needs_torch
def test_sigterm_ends_the_job_as_ever_and_the_running_part_is_written(place: Place) -> None:
    job = compare(place, TRAIN + "    train(1000, 20, end)\n")
    assert (job.code, job.stdout) == (128 + signal.SIGTERM, "")
    assert recorded(job) == list(range(5, 21))
    found = report(place, str(job.folder))
    assert found["answers"]["steps"]["scalars"]["step_count"]["value"] >= 16
    assert "part_lost" not in {issue["code"] for issue in found["issues"]}


@needs_torch
@pytest.mark.parametrize("at", [pytest.param("before", marks=pytest.mark.soak), "during"])
def test_a_handler_of_the_job_s_own_is_left_alone(place: Place, at: str) -> None:
    handler = """
    def mine(number, frame):
        print("mine", flush=True)
        sys.exit(5)
    def handle():
        signal.signal(signal.SIGTERM, mine)
"""
    begin = "    handle()\n" if at == "before" else "    train(8, 7, handle)\n"
    job = compare(place, TRAIN + handler + begin + "    train(1000, 20, end)\n")
    assert (job.code, job.stdout.splitlines()[-1]) == (5, "mine")
    assert len(recorded(job)) >= 16


@needs_torch
def test_sigterm_ends_a_main_thread_that_does_not_come_back_to_python(place: Place) -> None:
    """A mutex that is locked twice: no signal gets a thread out of that."""
    text = """
    import ctypes
    mutex = ctypes.create_string_buffer(64)
    def hang():
        threading.Timer(0.2, end).start()
        lock = ctypes.CDLL(None).pthread_mutex_lock
        lock(mutex), lock(mutex)
    train(1000, 20, hang)
    """
    run(place, text, 128 + signal.SIGTERM, "")


@needs_torch
def test_children_that_end_by_sigterm_do_not_take_the_job_with_them(place: Place) -> None:
    text = """
    import multiprocessing
    from torch.utils.data import DataLoader, TensorDataset
    def children():
        for _ in range(5):
            child = multiprocessing.get_context("fork").Process(target=time.sleep, args=(60,))
            child.start()
            child.terminate()
            child.join()
            print(child.exitcode)
    train(1000, 10, children)
    for x in DataLoader(TensorDataset(torch.ones(8, 8)), 4, num_workers=2):
        step()
    time.sleep(1)
    """
    job = run(place, text, 0, "-15\n" * 5 + "trained\n")
    assert len(recorded(job)) >= 990


@needs_torch
@pytest.mark.parametrize("options", [IN_WINDOW, pytest.param(("--steps", "0:100000"), marks=pytest.mark.soak)])
def test_signal_handlers_of_asyncio_keep_working(place: Place, options: tuple[str, ...]) -> None:
    text = """
    import asyncio
    async def main():
        done = asyncio.Event()
        asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, done.set)
        for number in range(1000):
            step()
            if number == 20:
                end()
            await asyncio.sleep(0)
            if done.is_set():
                break
        print("stopped", number >= 20 and number < 25)
    asyncio.run(main())
    train(5, 0, time.time)
    """
    run(place, text, 0, "stopped True\ntrained\n", options)


@needs_torch
def test_outside_of_a_window_signals_are_as_without_us(place: Place) -> None:
    text = """
    def look():
        print(signal.getsignal(signal.SIGTERM) is signal.SIG_DFL, signal.set_wakeup_fd(-1))
    train(5, 0, look)
    train(20, 15, look)
    train(1000, 20, end)
    """
    said = "True -1\ntrained\n" * 2
    job = run(place, text, 128 + signal.SIGTERM, said, ("--steps", "2:5"))
    assert job.recorded_steps() == [[2, 3, 4]]


def typed_ctrl_c(place: Place, command: list[str]) -> subprocess.CompletedProcess[str]:
    """The command on a terminal of its own, where Ctrl-C is typed once it has printed a line."""
    keyboard, terminal = os.openpty()
    try:
        with subprocess.Popen(
            ["setsid", "-c", *command],
            cwd=place.folder,
            env=place.environment,
            text=True,
            stdin=terminal,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
        ) as process:
            try:
                assert process.stdout is not None
                assert process.stdout.readline() == "trained\n"
                time.sleep(1)  # until it sleeps
                os.write(keyboard, b"\x03")
                stdout, stderr = process.communicate(timeout=120)
            finally:
                process.kill()
            return subprocess.CompletedProcess(command, process.returncode, stdout, stderr)
    finally:
        os.close(keyboard)
        os.close(terminal)


@needs_torch
def test_ctrl_c_in_a_window(place: Place) -> None:
    script = place.script(TRAIN + "    train(20, 0, time.time)\n    time.sleep(60)\n")
    plain = typed_ctrl_c(place, [sys.executable, script])
    job = Job(place.out, typed_ctrl_c(place, place.command(sys.executable, script, options=IN_WINDOW)))
    assert (plain.returncode, job.code) == (-signal.SIGINT, 128 + signal.SIGINT)
    assert plain.stderr.splitlines()[-1] == "KeyboardInterrupt"
    assert (job.stdout, job.others) == (plain.stdout, plain.stderr.splitlines())
    assert recorded(job) == list(range(5, 20))


# File systems -------------------------------------------------------------------------------------------------------


def mounted(place: Place, mount: str, command: list[str]) -> subprocess.CompletedProcess[str]:
    """The command in a mount namespace of its own, after the shell line `mount`."""
    if subprocess.run(["unshare", "-rm", "true"], capture_output=True).returncode != 0:
        pytest.skip("this machine does not let us mount in a namespace")
    return place.execute(["unshare", "-rm", "sh", "-ec", f'{mount}; "$@"', "sh", *command])


@needs_torch
@pytest.mark.parametrize(
    "mount",
    [
        "mount -t tmpfs -o size=64k none /dev/shm; head -c 65536 /dev/zero >/dev/shm/full",
        pytest.param("mount -t tmpfs -o ro none /dev/shm", marks=pytest.mark.soak),
    ],
    ids=["full", "read-only"],
)
def test_without_shared_memory_all_is_recorded(place: Place, mount: str) -> None:
    done = mounted(place, mount, place.command(sys.executable, place.script(TRAIN + "    train(20, 0, time.time)\n")))
    job = Job(place.out, done)
    assert (job.code, job.stdout, job.others) == (0, "trained\n", [])
    assert job.recorded_steps() == [[10, 11, 12, 13, 14]]
    assert rings(job)


@needs_torch
def test_a_disk_that_is_full(place: Place) -> None:
    """Room for the small record of steps, not for the trace."""
    place.out.mkdir()
    mount = f"mount -t tmpfs -o size=96k none {place.out}"
    command = place.command(sys.executable, place.script(TRAIN + "    train(20, 0, time.time)\n"))
    keep = place.folder / "kept"
    done = mounted(place, mount, ["sh", "-c", f'"$@"; code=$?; cp -r {place.out} {keep}; exit $code', "sh", *command])
    job = Job(keep, done)
    assert (job.code, job.stdout, job.others) == (0, "trained\n", [])
    ((_, marks),) = rings(job)
    assert marked_steps(marks) == list(range(20))


def test_a_folder_of_runs_that_is_read_only(place: Place) -> None:
    place.out.mkdir()
    command = place.command(sys.executable, "-c", "print('done'); raise SystemExit(5)")
    job = Job(place.out, mounted(place, f"mount -t tmpfs -o ro none {place.out}", command))
    assert (job.code, job.stdout, job.others, len(job.ours)) == (5, "done\n", [], 1)
    assert "--out" in job.ours[0]


# Processes ----------------------------------------------------------------------------------------------------------


@needs_torch
def test_a_job_that_replaces_itself(place: Place) -> None:
    """exec in the middle of a window: what was recorded is kept, what comes then is recorded too."""
    text = """
    def again():
        if sys.argv[1:] != ["again"]:
            os.execv(sys.executable, [sys.executable, __file__, "again"])
    train(30, 8, again)
    """
    job = run(place, text, 0, "trained\n", ("--steps", "5:20"))
    first, second = sorted((note["windows"] for note in job.manifest()["processes"]), key=len)
    assert [window["steps"] for window in first] == [[5, 6, 7, 8]]
    assert [window["steps"] for window in second] == [list(range(5, 20)), [20]]
    assert sorted(len(marked_steps(marks)) for _, marks in rings(job)) == [9, 30]


@needs_torch
def test_a_fork_in_the_middle_of_a_window(place: Place) -> None:
    text = """
    def fork():
        child = os.fork()
        if child == 0:
            step()
            os._exit(3)
        print(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))
    train(20, 6, fork)
    """
    job = run(place, text, 0, "3\ntrained\n", ("--steps", "4:10"))
    assert job.recorded_steps() == [[4, 5, 6, 7, 8, 9]]


def test_a_sitecustomize_that_raises_does_so_as_ever(place: Place) -> None:
    own = place.folder / "own"
    own.mkdir()
    (own / "sitecustomize.py").write_text("raise RuntimeError('mine')\n")
    command = [sys.executable, "-c", "print('done')"]
    plain = place.execute(command, PYTHONPATH=str(own))
    job = place.run(*command, PYTHONPATH=str(own))
    assert "mine" in plain.stderr
    assert (job.code, job.stdout, job.others) == (0, plain.stdout, plain.stderr.splitlines())


@needs_torch
def test_a_python_that_keeps_the_hooks_out_is_attached_to(place: Place) -> None:
    text = """
    import glob
    until = time.monotonic() + 60
    while time.monotonic() < until and not glob.glob("out/*/*/traces/*/*.gz"):
        step()
        time.sleep(0.02)
    """
    job = place.run(sys.executable, "-I", place.script(TRAIN + text), options=("--steps", "5:8"))
    if "ptrace" in job.stderr:
        pytest.skip(f"this machine does not let us trace processes: {job.stderr.strip()}")
    assert (job.code, job.others) == (0, [])
    assert job.recorded_steps() == [[5, 6, 7]]
    (said,) = [line for line in job.ours if "python -I" in line]
    assert "attached to it" in said


STEPLESS = """
    import os, sys, time, torch
    print("running", flush=True)
    x = torch.ones(64, 64)
    until = time.monotonic() + 60
    while time.monotonic() < until:
        x = (x @ x).clamp(0, 1)
        time.sleep(0.002)
"""


@needs_torch
@pytest.mark.parametrize("start", ["plain", "run"])
@measured
def test_seconds_of_a_job_without_steps(place: Place, start: str) -> None:
    command = [sys.executable, place.script(STEPLESS)]
    if start == "run":
        command = place.command(*command, options=("--trigger", "command"))
    with running(place, command) as job:
        time.sleep(0.5)
        whom = [str(job.pid)] if start == "plain" else ["--job", str(place.out)]
        folder, said = attach(place, *whom, "--time", "2", "--warmup", "1")
        assert job.poll() is None
    assert "2 s" in said
    # Frames may follow.
    (trace,) = [path for path in (folder / "traces").rglob("*.gz") if ".stacks." not in path.name]
    events = read(trace)["traceEvents"]
    ops = [event for event in events if event.get("cat") == "cpu_op"]
    assert "aten::mm" in {op["name"] for op in ops}
    assert 1e6 < max(op["ts"] for op in ops) - min(op["ts"] for op in ops) < 4e6, "microseconds"


@pytest.mark.soak
@needs_torch
def test_attaching_again_at_once(place: Place) -> None:
    """Long steps, so that the hooks of the first time are still there."""
    script = place.script(LOOP.replace("else 0.02", "else 0.4"))
    with running(place, [sys.executable, script, "100000"]) as job:
        folders = [attach(place, str(job.pid), "--steps", "1")[0] for _ in range(2)]
    assert all(list((folder / "traces").rglob("*.gz")) for folder in folders)


# Torches, ranks, clocks ---------------------------------------------------------------------------------------------

STAND_IN = {
    "torch/__init__.py": "from . import autograd, cuda, nn, optim, profiler, utils, version\n__version__ = '2.99'\n",
    "torch/version.py": "cuda = None\n",
    "torch/cuda.py": "def is_initialized(): return False\n",
    "torch/utils.py": "",
    "torch/nn.py": "class Module: pass\n",
    "torch/profiler.py": """
class ProfilerActivity:
    CPU = None
class _KinetoProfile:
    def __init__(self, **options):
        raise RuntimeError("a stand-in")
""",
    "torch/autograd/__init__.py": "from . import profiler\ndef backward(): pass\n",
    "torch/autograd/profiler.py": "class profile:\n    def __init__(self): pass\n",
    "torch/optim/__init__.py": "from . import optimizer\n",
    "torch/optim/optimizer.py": """
hooks = []
def register_optimizer_step_post_hook(hook):
    hooks.append(hook)
class Optimizer:
    param_groups = []
    def step(self):
        for hook in hooks:
            hook(self, (), {})
""",
}
BARE = {"torch/__init__.py": "__version__ = '2.99'\nclass Optimizer:\n    def step(self): pass\n"}


def stand_in(place: Place, files: dict[str, str]) -> str:
    """A folder for PYTHONPATH with a torch that has only some names."""
    for name, text in files.items():
        path = place.folder / "stand_in" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    return str(place.folder / "stand_in")


STEPS_OF_A_STAND_IN = """
    import torch
    optimizer = getattr(torch, "optim", torch)
    optimizer = getattr(optimizer, "optimizer", optimizer).Optimizer()
    for number in range(20):
        optimizer.step()
"""


def test_a_torch_that_has_next_to_nothing(place: Place) -> None:
    script = place.script(STEPS_OF_A_STAND_IN)
    job = place.run(sys.executable, script, PYTHONPATH=stand_in(place, BARE))
    assert (job.code, job.stdout, job.others) == (0, "", [])
    assert job.folder is not None
    assert (job.folder / "hooks.log").read_text().strip()


def test_64_ranks_that_start_at_once(place: Place) -> None:
    """With a stand-in for torch, whose profiler fails: the steps are marked all the same, and each note says why."""
    script = place.script(STEPS_OF_A_STAND_IN)
    launch = place.script(
        f"""
        import os, subprocess, sys
        def rank(number):
            named = dict(os.environ, RANK=str(number), WORLD_SIZE="64")
            return subprocess.Popen([sys.executable, {script!r}], env=named)
        print([rank.wait() for rank in [rank(number) for number in range(64)]])
        """,
        "launch.py",
    )
    job = place.run(sys.executable, launch, PYTHONPATH=stand_in(place, STAND_IN))
    assert (job.code, job.stdout, job.others) == (0, f"{[0] * 64}\n", [])
    found = rings(job)
    assert sorted(about["rank"] for about, _ in found) == list(range(64))
    assert all(marked_steps(marks) == list(range(20)) for _, marks in found)
    notes = job.manifest()["processes"]
    assert len(notes) == 64
    assert all("a stand-in" in note["problems"][0] for note in notes)


JUMP = """
    import time
    real, jump = time.time_ns, 0
    time.time_ns = lambda: real() + jump
    def turn(seconds):
        global jump
        jump += seconds * 10**9
    for number in range(30):
        step()
        time.sleep(0.1)
        if number == 12:
            turn(3600)
        if number == 22:
            turn(-7200)
"""


@needs_torch
@measured
def test_a_clock_that_is_set_does_not_move_the_steps(place: Place) -> None:
    job = run(place, JUMP, 0, "", ("--trigger", "command"))
    ((_, marks),) = rings(job)
    clocks = [mark.step for mark in marks if mark.kind == 1]
    assert max(clocks) - min(clocks) > 3600 * 10**9, "the jump is in the file"
    assert all(mark.dur_ns < 60 * 10**9 for mark in marks)
    live = place.plain(str(place.stepscope), "live", str(job.folder), "--once")
    assert live.returncode == 0, live.stderr
    assert live.stdout.splitlines()[2].split()[:2] == ["0", "30"]
    found = report(place, str(job.folder))["answers"]["steps"]["scalars"]
    assert 0.1e9 < found["step_time_median_ns"]["value"] < 5e9


@needs_torch
def test_a_job_that_is_killed_before_its_window_has_its_marks(place: Place) -> None:
    text = TRAIN + "    train(1000, 40, lambda: os.kill(os.getpid(), signal.SIGKILL))\n"
    job = place.run(sys.executable, place.script(text), options=("--steps", "500:505"))
    assert job.code == 128 + signal.SIGKILL
    assert job.traces() == []
    done = place.plain(str(place.stepscope), "report", str(job.folder), "--json", "--no-cache")
    assert done.returncode == 0, done.stderr
    answer = json.loads(done.stdout)["answers"]["steps"]
    assert answer["scalars"]["step_count"]["value"] >= 39
    assert {"forward", "backward", "optimizer"} <= {row["phase"] for row in rows(answer, "phases")}


@needs_torch
@pytest.mark.parametrize(("dies_at", "kept", "lost"), [(8, "steps 1-5 of 9", False), (12, "steps 1-5 of 13", True)])
def test_a_job_that_is_killed_soon_keeps_its_early_steps(place: Place, dies_at: int, kept: str, lost: bool) -> None:
    text = TRAIN + f"    train(1000, {dies_at}, lambda: os.kill(os.getpid(), signal.SIGKILL))\n"
    job = place.run(sys.executable, place.script(text))
    assert job.code == 128 + signal.SIGKILL
    assert job.ours[-1].startswith(f"stepscope: recorded {kept}"), job.stderr
    assert "the job was ended by signal 9" in job.ours[-1]
    assert ("what it recorded just then is lost" in job.ours[-1]) == lost
    assert report(place, str(job.folder))["answers"]["steps"]["scalars"]["whole_step_count"]["value"] == 5


@needs_torch
def test_a_job_that_fails_in_its_window_keeps_both(place: Place) -> None:
    text = TRAIN + "    train(1000, 12, lambda: sys.exit(3))\n"
    job = place.run(sys.executable, place.script(text))
    assert job.code == 3
    (process,) = job.manifest()["processes"]
    kept = [(window["kind"], window["steps"]) for window in process["windows"]]
    assert kept == [("steps", [1, 2, 3, 4, 5]), ("stacks", [6]), ("steps", [10, 11, 12])]


@needs_torch
@pytest.mark.parametrize(("steps", "then_s"), [(6, 0), (6, 3), (15, 3)])
def test_frames_are_of_a_step_and_not_of_what_follows_the_last_one(place: Place, steps: int, then_s: int) -> None:
    text = f"""
    train({steps}, -1, None)
    def evaluate():
        end = time.monotonic() + {then_s}
        while time.monotonic() < end:
            net(torch.ones(4, 8))
    evaluate()
    """
    job = place.run(sys.executable, place.script(TRAIN + text))
    assert job.code == 0
    (process,) = job.manifest()["processes"]
    frames = [window["steps"] for window in process["windows"] if window["kind"] == "stacks"]
    assert frames == ([[6]] if steps > 6 else []), job.stderr
    found = report(place, str(job.folder))["answers"]
    assert found["steps"]["scalars"]["whole_step_count"]["value"] == 5
    assert steps == 6 or "train" in {row["function"] for row in rows(found["stacks"], "functions")}


@needs_torch
def test_frames_of_a_step_that_takes_too_long_are_tried_once_more(place: Place) -> None:
    text = """
    def evaluate():
        end = time.monotonic() + 3
        while time.monotonic() < end:
            net(torch.ones(4, 8))
    with torch.profiler.record_function("epoch"):
        train(30, 14, evaluate)
    """
    job = place.run(sys.executable, place.script(TRAIN + text))
    assert job.code == 0
    (process,) = job.manifest()["processes"]
    frames = [window["steps"] for window in process["windows"] if window["kind"] == "stacks"]
    assert len(frames) == 1 and frames[0] in ([16], [17]), job.stderr


@needs_torch
@measured
def test_the_early_steps_make_room_for_the_better_ones(place: Place) -> None:
    job = place.run(sys.executable, place.script(TRAIN + "    train(30, -1, None)\n"))
    (process,) = job.manifest()["processes"]
    window, stacks = process["windows"]
    assert window["steps"] == [10, 11, 12, 13, 14]
    # The next one, or, where long steps happen to come periodically, one of these.
    assert len(stacks["steps"]) == 1 and 15 <= stacks["steps"][0] < 25
    assert process["replaced_cost_s"] > 0
    assert len(job.traces()) == 1  # and the step with stacks


@needs_torch
@pytest.mark.parametrize(
    ("text", "code"),
    [
        ("    train(4, -1, None)\n    time.sleep(1)\n    net(torch.ones(4, 8))\n", 0),
        ("    train(1000, 3, lambda: (time.sleep(1), os.kill(os.getpid(), signal.SIGTERM)))\n", 128 + signal.SIGTERM),
        ("    train(1000, 3, lambda: (time.sleep(1), sys.exit(5)))\n", 5),
    ],
)
@measured
def test_what_follows_the_last_step_is_no_whole_step(place: Place, text: str, code: int) -> None:
    job = place.run(sys.executable, place.script(TRAIN + text))
    assert job.code == code
    found = report(place, str(job.folder))["answers"]["steps"]
    assert found["scalars"]["step_time_max_ns"]["value"] < 0.9e9
    cut = [row["step"] for row in rows(found, "steps") if row["partial"]]
    assert cut == ["ProfilerStep#4"], rows(found, "steps")


@needs_torch
def test_a_lost_terminal_ends_the_job_as_ever_and_the_running_part_is_written(place: Place) -> None:
    text = TRAIN + "    train(1000, 40, lambda: (time.sleep(0.2), os.kill(os.getpid(), signal.SIGHUP)))\n"
    job = place.run(sys.executable, place.script(text), options=IN_WINDOW)
    assert job.code == 128 + signal.SIGHUP
    assert recorded(job)[0] == 5 and recorded(job)[-1] >= 38
    assert "lost" not in job.ours[-1], job.stderr


@needs_torch
def test_a_mistyped_command_does_not_hide_the_run_before(place: Place) -> None:
    good = place.run(sys.executable, place.script(TRAIN + "    train(8, -1, None)\n"))
    assert good.code == 0
    assert place.plain(str(place.stepscope), "run", "--out", str(place.out), "--", "python", "no.py").returncode == 2
    failing = ["sh", "-c", "sleep 0.5; exit 7"]  # long enough to be sampled
    assert place.plain(str(place.stepscope), "run", "--out", str(place.out), "--", *failing).returncode == 7
    done = place.plain(str(place.stepscope), "report", str(place.out), "--json", "--no-cache")
    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout)
    assert found["answers"]["steps"]["scalars"]["whole_step_count"]["value"] >= 4
    assert any(issue["code"] == "other_runs" for issue in found["issues"])
