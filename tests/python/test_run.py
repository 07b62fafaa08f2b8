"""`stepscope run` around real jobs with the real torch: the job must not notice, the run folder must be whole."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
from pathlib import Path

import pytest
from jobs import TRAIN, Place, measured, needs_torch, read

ROOT = Path(__file__).resolve().parents[2]
HOOKS = ROOT / "python" / "stepscope" / "hooks"

# The job does not notice ------------------------------------------------------------------------------------------


@needs_torch
def test_same_output_and_result(place: Place) -> None:
    script = place.script(TRAIN, late_compiler=False)
    plain = place.plain(sys.executable, script, "20")
    job = place.run(sys.executable, script, "20")
    assert (job.code, job.stdout) == (0, plain.stdout)
    assert job.others == plain.stderr.splitlines()
    assert len(job.ours) == 2
    assert job.recorded_steps() == [[10, 11, 12, 13, 14]]
    assert "steps 10-14 of 20" in job.ours[1]
    assert "CPU only" in job.ours[1] or "GPU" in job.ours[1]


@pytest.mark.parametrize("code", [0, 3, 255])
def test_exit_code(place: Place, code: int) -> None:
    assert place.run(sys.executable, "-c", f"raise SystemExit({code})").code == code


def test_killed(place: Place) -> None:
    assert place.run("sh", "-c", "kill -9 $$").code == 128 + signal.SIGKILL
    assert place.run("sh", "-c", "kill -TERM $$").code == 128 + signal.SIGTERM


def test_command_that_cannot_start(place: Place) -> None:
    job = place.run("/no/such/program")
    assert job.code == 127
    assert "'/no/such/program' could not be started" in job.ours[-1]
    assert not place.out.exists()


def test_stdin_and_arguments_reach_the_job(place: Place) -> None:
    command = [
        sys.executable,
        "-c",
        "import sys; print(sys.argv[1:], sys.stdin.read())",
        "[1,2]",
        "--",
        "--steps",
        "-m",
        "",
    ]
    done = subprocess.run(
        place.command(*command),
        input="hello",
        cwd=place.folder,
        env=place.environment,
        capture_output=True,
        text=True,
        timeout=60,
    )
    assert done.stdout == "['[1,2]', '--', '--steps', '-m', ''] hello\n"


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT, signal.SIGUSR1])
def test_signals_are_forwarded(place: Place, number: signal.Signals) -> None:
    script = place.script("""
        import os, signal, sys, time
        def stop(number, frame):
            os.write(1, b"got %d\\n" % number)  # print would be refused while "ready" is still being printed
            sys.exit(7)
        for number in (signal.SIGTERM, signal.SIGINT, signal.SIGUSR1):
            signal.signal(number, stop)
        print("ready", flush=True)
        time.sleep(60)
    """)
    with subprocess.Popen(
        place.command(sys.executable, script),
        cwd=place.folder,
        env=place.environment,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    ) as job:
        try:
            assert job.stdout is not None
            assert job.stdout.readline() == "ready\n"
            job.send_signal(number)
            assert job.communicate(timeout=60)[0] == f"got {number.value}\n"
            assert job.returncode == 7
        finally:
            job.kill()


@needs_torch
def test_traceback_is_the_job_s_own(place: Place) -> None:
    script = place.script(TRAIN + "\n    raise ValueError('no')\n")
    plain = place.plain(sys.executable, script, "3")
    job = place.run(sys.executable, script, "3")
    assert job.code == 1
    assert job.others == plain.stderr.splitlines()
    assert job.traces(), "what was recorded before the exception is kept"


def test_torch_that_fails_to_import(place: Place) -> None:
    (place.folder / "torch").mkdir()
    (place.folder / "torch" / "__init__.py").write_text("def load():\n    raise ImportError('broken wheel')\nload()\n")
    script = place.script("import torch")
    plain = place.plain(sys.executable, script)
    job = place.run(sys.executable, script)
    assert job.code == plain.returncode == 1
    assert job.others == plain.stderr.splitlines()


def test_own_sitecustomize_runs(place: Place) -> None:
    own = place.folder / "own"
    own.mkdir()
    (own / "sitecustomize.py").write_text("import sys\nsys.from_own = 42\n")
    script = place.script("import sys, sitecustomize; print(sys.from_own, sitecustomize.__file__)")
    job = place.run(sys.executable, script, PYTHONPATH=str(own))
    assert job.stdout == f"42 {own / 'sitecustomize.py'}\n"


def test_nothing_is_imported_before_torch(place: Place) -> None:
    script = place.script("""
        import sys
        print(sorted(sys.modules), [p for p in sys.path if "stepscope" in p], "sitecustomize" in sys.modules)
    """)
    assert place.run(sys.executable, script).stdout == place.plain(sys.executable, script).stdout


def test_a_job_without_torch_says_so(place: Place) -> None:
    job = place.run(sys.executable, "-c", "print('plain')")
    assert (job.code, job.stdout) == (0, "plain\n")
    assert "imported torch" in job.ours[-1]
    assert job.manifest()["exit_code"] == 0


# Our own failures ---------------------------------------------------------------------------------------------------


def test_out_folder_that_cannot_be_made(place: Place) -> None:
    place.out.write_text("a file")
    job = place.run(sys.executable, "-c", "print('done'); raise SystemExit(5)")
    assert (job.code, job.stdout) == (5, "done\n")
    assert len(job.ours) == 1
    assert "--out" in job.ours[0]


def test_hooks_that_are_not_there(place: Place) -> None:
    job = place.run(sys.executable, "-c", "print('done')", STEPSCOPE_HOOKS=str(place.folder))
    assert (job.code, job.stdout) == (0, "done\n")
    assert "STEPSCOPE_HOOKS" in job.ours[0]


@needs_torch
def test_run_folder_that_goes_away(place: Place) -> None:
    script = place.script(TRAIN + f"\n        if step == 2: import shutil; shutil.rmtree({str(place.out)!r})\n")
    job = place.run(sys.executable, script, "20")
    assert job.code == 0
    assert job.others == []
    assert len(job.stdout.splitlines()) == 20


@needs_torch
def test_a_bug_in_the_hooks_stays_there(place: Place) -> None:
    broken = place.folder / "hooks"
    subprocess.run(["cp", "-r", str(HOOKS), str(broken)], check=True)
    (broken / "_stepscope_hooks" / "recorder.py").write_text("raise RuntimeError('a bug')\n")
    job = place.run(sys.executable, place.script(TRAIN), "3", STEPSCOPE_HOOKS=str(broken))
    assert job.code == 0
    assert job.others == []
    assert job.folder is not None
    assert "a bug" in (job.folder / "hooks.log").read_text()


# What is recorded ---------------------------------------------------------------------------------------------------


@needs_torch
def test_fewer_steps_than_the_window(place: Place) -> None:
    script = place.script(TRAIN)
    job = place.run(sys.executable, script, "4")
    assert [steps[:3] for steps in job.recorded_steps()] == [[1, 2, 3]]
    assert "steps 1-3 of 4" in job.ours[1]


@needs_torch
def test_asked_steps(place: Place) -> None:
    job = place.run(
        sys.executable, place.script(TRAIN, late_compiler=False), "8", options=("--steps", "0:2", "--no-shapes")
    )
    (trace,) = job.traces()
    assert job.step_marks(trace) == [0, 1]
    assert "record_shapes" not in read(trace)
    window = job.manifest()["processes"][0]["windows"][0]
    assert (window["steps"], window["complete"]) == ([0, 1], True)


@needs_torch
def test_window_that_was_never_reached(place: Place) -> None:
    job = place.run(sys.executable, place.script(TRAIN), "4", options=("--steps", "100:103"))
    assert job.traces() == []
    assert "after 4 optimizer steps" in job.ours[-1]


@needs_torch
def test_step_marks_do_not_overlap_other_ranges(place: Place) -> None:
    job = place.run(sys.executable, place.script(TRAIN), "16")
    events = [e for e in read(job.traces()[0])["traceEvents"] if e.get("cat") == "user_annotation"]
    marks = [e for e in events if e["name"].startswith("ProfilerStep#")]
    others = [e for e in events if not e["name"].startswith("ProfilerStep#")]
    assert len(marks) == 5
    for other in others:
        inside = [m for m in marks if m["ts"] < other["ts"] + other["dur"] and other["ts"] < m["ts"] + m["dur"]]
        assert len(inside) == 1, other
        assert inside[0]["ts"] <= other["ts"]
        assert other["ts"] + other["dur"] <= inside[0]["ts"] + inside[0]["dur"]


@needs_torch
@measured
def test_inference_by_time(place: Place) -> None:
    script = place.script("""
        import time, torch
        model = torch.nn.Sequential(torch.nn.Linear(8, 8), torch.nn.ReLU())
        end = time.monotonic() + 2
        with torch.no_grad():
            while time.monotonic() < end:
                model(torch.ones(4, 8))
                time.sleep(0.01)
    """)
    job = place.run(sys.executable, script, options=("--seconds", "0.2:1"))
    assert job.others == []
    assert job.traces(), job.stderr + str(job.manifest())  # seen once to be empty, on a loaded machine
    (trace,) = job.traces()
    assert len(job.step_marks(trace)) >= 3
    assert any(e.get("cat") == "cpu_op" for e in read(trace)["traceEvents"])


@needs_torch
def test_a_process_that_only_waits_is_not_recorded(place: Place) -> None:
    script = place.script("import time, torch; time.sleep(2)")
    job = place.run(sys.executable, script, options=("--seconds", "0.1:1"))
    assert job.traces() == []
    assert job.manifest()["processes"][0]["problems"] == []
    assert "nothing was recorded" in job.ours[-1]


@needs_torch
def test_a_job_that_profiles_itself_is_left_alone(place: Place) -> None:
    script = place.script("""
        import torch
        from torch.profiler import profile
        model = torch.nn.Linear(4, 4)
        optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
        def step():
            model(torch.ones(1, 4)).sum().backward()
            optimizer.step()
        for _ in range(3):
            step()
        with profile() as own:
            step()
        own.export_chrome_trace("own.json")
    """)
    job = place.run(sys.executable, script)
    assert (job.code, job.others) == (0, [])
    assert "ProfilerStep" not in (place.folder / "own.json").read_text()
    assert job.manifest()["processes"][0]["own_profiler"] is True
    assert [steps[:2] for steps in job.recorded_steps()] == [[1, 2]], "what was recorded before is kept"
    assert "with 1 trace of the job's own torch.profiler" in job.ours[-1]
    assert job.folder is not None
    (own,) = job.folder.glob("traces/rank0/*.own0.pt.trace.json")
    assert own.read_bytes() == (place.folder / "own.json").read_bytes()


@needs_torch
def test_traces_of_the_job_s_own_are_reported_on(place: Place) -> None:
    script = place.script("""
        import os, torch
        from torch.profiler import profile, schedule, tensorboard_trace_handler
        model = torch.nn.Linear(4, 4)
        optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
        save = tensorboard_trace_handler("log", use_gzip=True)
        when = schedule(wait=1, warmup=1, active=2, repeat=2)
        with profile(schedule=when, on_trace_ready=save, acc_events=True) as own:
            for _ in range(12):
                model(torch.ones(1, 4)).sum().backward()
                optimizer.step()
                own.step()
        with profile() as gone:
            model(torch.ones(1, 4))
        gone.export_chrome_trace("gone.json")
        os.unlink("gone.json")
    """)
    job = place.run(sys.executable, script)
    assert (job.code, job.others) == (0, [])
    assert "recorded by the job's own torch.profiler" in job.ours[-1]
    assert "gone.json was not taken over: No such file" in job.ours[-1]
    assert job.folder is not None
    assert len(list(job.folder.glob("traces/rank0/*.gz"))) == 2
    done = place.plain(str(place.stepscope), "report", str(job.folder), "--only", "steps", "--json")
    assert json.loads(done.stdout)["answers"]["steps"]["scalars"]["step_count"]["value"] == 4


@needs_torch
def test_run_folder(place: Place) -> None:
    job = place.run(
        sys.executable,
        place.script(TRAIN, "my_train.py"),
        "20",
        "--api-key=hidden",
        WORLD_SIZE="2",
        RANK="1",
        HF_TOKEN="hidden",
    )
    assert job.folder is not None
    assert job.folder.parent.name == "my_train"
    manifest = job.manifest()
    assert manifest["schema_version"] == 1
    assert manifest["command"][-1] == "--api-key=***"
    assert "hidden" not in (job.folder / "run.json").read_text()
    assert manifest["environment"]["WORLD_SIZE"] == "2"
    assert manifest["ended_unix_ns"] > manifest["started_unix_ns"]
    (process,) = manifest["processes"]
    assert (process["rank"], process["world_size"], process["steps_seen"]) == (1, 2, 20)
    (trace,) = job.traces()
    assert trace.parent.name == "rank1"
    assert read(trace)["distributedInfo"] == {"rank": 1, "world_size": 2}
    assert process["windows"][0]["trace"] == str(trace.relative_to(job.folder))
    stacks = process["windows"][1]["trace"].rpartition("/")[2]
    assert {p.name for p in trace.parent.iterdir()} == {trace.name, stacks}, "nothing half-written is left"


# Several processes --------------------------------------------------------------------------------------------------


@needs_torch
def test_torchrun_two_ranks(place: Place) -> None:
    script = place.script("""
        import torch, torch.distributed as dist
        from torch.nn.parallel import DistributedDataParallel
        dist.init_process_group("gloo")
        model = DistributedDataParallel(torch.nn.Linear(8, 8))
        optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
        for _ in range(16):
            model(torch.ones(2, 8)).sum().backward()
            optimizer.step()
        dist.destroy_process_group()
    """)
    job = place.run(
        sys.executable,
        "-m",
        "torch.distributed.run",
        "--nproc-per-node",
        "2",
        "--rdzv-backend",
        "c10d",
        "--rdzv-endpoint",
        "127.0.0.1:0",
        "--local-addr",
        "127.0.0.1",
        script,
    )
    assert job.code == 0, job.stderr
    assert sorted({t.parent.name for t in job.traces()}) == ["rank0", "rank1"]
    assert job.recorded_steps() == [[10, 11, 12, 13, 14]] * 2
    for trace in job.traces():
        found = read(trace)
        rank = int(trace.parent.name[len("rank")])
        assert (found["distributedInfo"]["rank"], found["distributedInfo"]["world_size"]) == (rank, 2)
        assert any("all_reduce" in e.get("name", "") for e in found["traceEvents"])


@needs_torch
@pytest.mark.parametrize("method", ["fork", "spawn"])
def test_data_workers_are_not_recorded(place: Place, method: str) -> None:
    script = place.script(f"""
        import torch
        from torch.utils.data import DataLoader, TensorDataset
        def main():
            loader = DataLoader(TensorDataset(torch.ones(64, 8)), 4, num_workers=2, multiprocessing_context={method!r})
            model = torch.nn.Linear(8, 8)
            optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
            for (x,) in loader:
                model(x).sum().backward()
                optimizer.step()
        if __name__ == "__main__":
            main()
    """)
    job = place.run(sys.executable, script)
    assert (job.code, job.others) == (0, [])
    assert job.recorded_steps() == [[10, 11, 12, 13, 14]]
    assert len(job.manifest()["processes"]) == 1


@needs_torch
def test_ranks_made_by_fork(place: Place) -> None:
    script = place.script("""
        import multiprocessing, torch
        def work(rank):
            torch.set_num_threads(1)
            model = torch.nn.Linear(8, 8)
            optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
            for _ in range(4):
                model(torch.ones(2, 8)).sum().backward()
                optimizer.step()
        children = [multiprocessing.get_context("fork").Process(target=work, args=(r,)) for r in range(2)]
        [c.start() for c in children]
        [c.join() for c in children]
        print([c.exitcode for c in children])
    """)
    job = place.run(sys.executable, script)
    assert job.stdout == "[0, 0]\n"
    assert len(job.recorded_steps()) == 2


@needs_torch
@pytest.mark.parametrize("name", ["nn_demo", "matmul_loop", "nn_ddp_demo", "schedule_demo"])
def test_shared_examples_run_unmodified(place: Place, corpus: Path, name: str) -> None:
    program = corpus.parent / "examples" / f"{name}.py"
    if not program.exists():
        pytest.skip(f"there is no {program}")
    job = place.run(sys.executable, str(program), options=("--seconds", "0:1") if name == "matmul_loop" else ())
    assert job.code == 0, job.stderr
    ranks = sorted({t.parent.name for t in job.traces()})
    if name == "nn_ddp_demo":
        assert ranks == [f"rank{r}" for r in range(4)]
        for trace in job.traces():
            assert any("gloo:all_reduce" in e.get("name", "") for e in read(trace)["traceEvents"])
    elif name == "schedule_demo":
        assert ranks == []
        assert len(list((place.folder / "tb_log").iterdir())) == 2
    else:
        assert len(ranks) == 1


@needs_torch
def test_killed_after_its_window_keeps_the_trace(place: Place) -> None:
    script = place.script(
        TRAIN + "\n    import os, signal, time; time.sleep(1); os.kill(os.getpid(), signal.SIGKILL)\n"
    )
    job = place.run(sys.executable, script, "20")
    assert job.code == 137
    assert job.recorded_steps() == [[10, 11, 12, 13, 14]]
    assert job.manifest()["signal"] == 9
