"""What is recorded beside a job that runs under `stepscope run`: marks, phases, modules, parts, requests, stacks."""

from __future__ import annotations

import json
import os
import random
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
from jobs import LOOP, NET, Job, Place, measured, needs_torch, read, report, rows
from rings import ring, rings, steps_of

pytestmark = needs_torch


# Marks ------------------------------------------------------------------------------------------------------------


def test_marks_hold_every_step_and_its_phases(place: Place) -> None:
    job = place.run(sys.executable, place.script(NET + LOOP), "12", options=("--steps", "100:101"))
    ((about, marks),) = rings(job)
    assert (about["rank"], about["world_size"]) == (0, 1)
    assert steps_of(marks) == list(range(12))
    for step in (5, 11):
        phases = [mark for mark in marks if mark.kind == 3 and mark.step == step]
        assert [mark.phase for mark in phases] == [1, 2, 3, 4], "dataloader, forward, backward, optimizer"
        (whole,) = [mark for mark in marks if mark.kind == 2 and mark.step == step]
        assert sum(mark.dur_ns for mark in phases) <= whole.dur_ns
        for before, after in zip(phases, phases[1:]):
            assert before.start_ns + before.dur_ns <= after.start_ns


def test_marks_of_gradient_accumulation(place: Place) -> None:
    text = (
        NET
        + """
    optimizer = torch.optim.SGD(net.parameters(), lr=0.01)
    for step in range(6):
        for micro in range(3):
            net(torch.ones(4, 8)).sum().backward()
        optimizer.step()
    """
    )
    ((_, marks),) = rings(place.run(sys.executable, place.script(text)))
    assert steps_of(marks) == list(range(6))
    assert [mark.phase for mark in marks if mark.kind == 3 and mark.step == 4] == [2, 3, 2, 3, 2, 3, 4]


def test_marks_of_inference(place: Place) -> None:
    text = (
        NET
        + """
    import time
    end = time.monotonic() + 6
    count = 0
    with torch.no_grad():
        while time.monotonic() < end:
            net(torch.ones(4, 8)); count += 1; time.sleep(0.02)
    """
    )
    ((_, marks),) = rings(place.run(sys.executable, place.script(text)))
    steps = [mark for mark in marks if mark.kind == 2]
    assert len(steps) >= 10
    assert {mark.phase for mark in steps} == {2}, "a step is a forward pass"


def test_marks_after_a_kill(place: Place) -> None:
    """SIGKILL in the middle of training: every step that ended is there."""
    text = NET + LOOP.replace("optimizer.step()", "optimizer.step(); print(number, flush=True)")
    command = place.command(sys.executable, place.script(text), "100000")
    with subprocess.Popen(
        command, cwd=place.folder, env=place.environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    ) as process:
        assert process.stdout is not None
        last = -1
        for line in process.stdout:
            last = int(line)
            if last >= 30:
                break
        (note,) = list(place.out.glob("*/*/processes/*.json"))
        pid = json.loads(note.read_text())["pid"]
        os.kill(pid, signal.SIGKILL)
        printed = [int(line) for line in process.stdout if line.strip().isdigit()]
        last = max([last, *printed])
        process.wait(timeout=60)
    (folder,) = [path.parent for path in place.out.glob("*/*/run.json")]
    ((_, marks),) = [ring(path) for path in folder.glob("telemetry/*.ring")]
    done = steps_of(marks)
    assert done == list(range(len(done)))
    assert len(done) in (last + 1, last + 2), "a step may end before its line is printed"


def test_live_shows_both_ranks(place: Place) -> None:
    text = """
        import os, torch, torch.distributed as dist
        dist.init_process_group("gloo")
        net = torch.nn.parallel.DistributedDataParallel(torch.nn.Linear(8, 8))
        optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
        for _ in range(20):
            net(torch.ones(2, 8)).sum().backward()
            optimizer.step()
        dist.destroy_process_group()
    """
    job = torchrun(place, text)
    done = place.plain(str(place.stepscope), "live", str(job.folder))
    assert done.returncode == 0, done.stderr
    lines = done.stdout.splitlines()
    assert "2 ranks of 2 present, 0 running" in lines[0]
    assert [line.split()[:2] for line in lines[2:4]] == [["0", "20"], ["1", "20"]]
    assert "ended" in lines[2]


# Traces -----------------------------------------------------------------------------------------------------------


def torchrun(place: Place, text: str, *arguments: str, options: tuple[str, ...] = ()) -> Job:
    launcher = ["-m", "torch.distributed.run", "--nproc-per-node", "2", "--rdzv-backend", "c10d"]
    where = ["--rdzv-endpoint", "127.0.0.1:0", "--local-addr", "127.0.0.1", place.script(text)]
    return place.run(sys.executable, *launcher, *where, *arguments, options=options)


def test_phases_modules_and_stacks(place: Place) -> None:
    job = place.run(sys.executable, place.script(NET + LOOP), "30")
    (trace,) = job.traces()
    names = [event.get("name", "") for event in read(trace)["traceEvents"]]
    assert names.count("forward") == names.count("backward") == 5
    assert names.count("stepscope.module: layers.1.down (Linear)") == 5
    (process,) = job.manifest()["processes"]
    window, stacks = process["windows"]
    assert (window["steps"], stacks["kind"]) == ([10, 11, 12, 13, 14], "stacks")
    # The next one, or, where long steps happen to come periodically, one of these.
    assert len(stacks["steps"]) == 1 and 15 <= stacks["steps"][0] < 25
    place_of = {module["path"]: module for module in window["modules"]}
    assert place_of["layers.0"]["file"].endswith("job.py")
    assert "layers" not in place_of, "a list of modules is never called"
    found = report(place, str(job.folder))["answers"]
    assert found["steps"]["scalars"]["step_count"]["value"] == 5, "the step with stacks is left out"
    functions = {row["function"] for row in rows(found["stacks"], "functions")}
    assert "forward" in functions
    operators = {row["name"] for row in rows(found["operators"], "by_name")}
    assert "aten::linear" in operators
    assert not [name for name in operators if name.startswith("stepscope.")], operators
    block = 8 * 16 + 16 + 16 * 8 + 8
    sizes = {row["module"]: row["parameters"] for row in rows(found["flops"], "by_module")}
    assert (sizes["Net"], sizes["layers"], sizes["layers.1"]) == (2 * block, 2 * block, block)
    held = {row["module"]: row["parameter_bytes"] for row in rows(found["memory"], "by_module")}
    assert (held["Net"], held["layers.1"]) == (2 * block * 4, block * 4)


def test_settings_that_explain_speed(place: Place) -> None:
    (process,) = place.run(sys.executable, place.script(NET + LOOP), "20").manifest()["processes"]
    assert process["data_loading"]["batch_size"] == 4
    assert process["data_loading"]["workers"] == 0
    assert process["optimizer"]["class"] == "SGD"
    assert process["models"] == [{"class": "Net", "parameters": 560, "training": True}]
    assert process["settings"]["threads"] == 1
    assert process["settings"]["anomaly_detection"] is False
    assert process["machine"]["cores"]


IN_PARTS = (
    NET
    + """
    sys.modules["_stepscope_hooks.recorder"].PART_S = 0.0
"""
    + LOOP
)


def test_parts_are_joined(place: Place) -> None:
    job = place.run(sys.executable, place.script(IN_PARTS), "20", options=("--steps", "4:10"))
    (process,) = job.manifest()["processes"]
    assert [w["steps"] for w in process["windows"] if w["kind"] == "steps"] == [[n] for n in range(4, 10)]
    found = report(place, str(job.folder))
    assert found["answers"]["steps"]["scalars"]["step_count"]["value"] == 6
    calls = {row["name"]: row["calls"] for row in rows(found["answers"]["operators"], "by_name")}
    assert calls["aten::linear"] == 6 * 4
    assert len(found["input"]["files"]) == 1
    done = place.plain(str(place.stepscope), "query", str(job.folder), "select count(*) from steps", "--csv")
    assert done.stdout.split()[-1] == "6", done.stdout + done.stderr
    (job.traces()[2]).unlink()
    codes = [issue["code"] for issue in report(place, str(job.folder))["issues"]]
    assert "parts_missing" in codes


def test_parts_of_a_server_hold_whole_ranges(place: Place) -> None:
    """Its steps end inside of the outermost module's call."""
    serve = """
    sys.modules["_stepscope_hooks.recorder"].PART_S = 0.0
    import time
    with torch.no_grad():
        for request in range(600):
            net(torch.ones(4, 8))
            time.sleep(0.01)
    """
    job = place.run(sys.executable, place.script(NET + serve), options=("--steps", "4:10"))
    (process,) = job.manifest()["processes"]
    parts = [window for window in process["windows"] if window["kind"] == "steps"]
    assert [part["steps"] for part in parts] == [[step] for step in range(4, 10)]
    assert process["problems"] == []
    for trace in job.traces():
        names = [event["name"] for event in read(trace)["traceEvents"] if event.get("cat") == "user_annotation"]
        assert names.count("forward") == 1
        events = read(trace)["traceEvents"]
        ranges = [event["name"] for event in events if event.get("name", "").startswith("stepscope.module: ")]
        assert "stepscope.module: Net (Net)" in ranges
        ended = [event.get("args", {}).get("finished", True) for event in events if event.get("ph") == "X"]
        assert all(ended)


@measured
def test_seconds_of_a_rank_that_is_always_in_backward(place: Place) -> None:
    """As one that waits for a slow one there: the clock finds it nowhere else, the end of its step does."""
    script = place.script("""
        import time, torch
        class Slow(torch.autograd.Function):
            @staticmethod
            def forward(context, x):
                return x * 1
            @staticmethod
            def backward(context, gradient):
                time.sleep(0.4)
                return gradient
        net = torch.nn.Linear(8, 8)
        optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
        for step in range(12):
            Slow.apply(net(torch.ones(4, 8))).sum().backward()
            optimizer.step()
    """)
    job = place.run(sys.executable, script, options=("--seconds", "1:2"))
    (process,) = job.manifest()["processes"]
    assert process["problems"] == []
    window = process["windows"][0]
    assert window["kind"] == "seconds"
    assert 1 <= len(window["steps"]) <= 5


@measured
def test_execution_traces_stand_beside_the_timeline(place: Place) -> None:
    script = place.script(NET + LOOP)
    plain = place.plain(sys.executable, script, "12")
    options = ("--steps", "5:8", "--with", "modules,execution-trace")
    job = place.run(sys.executable, script, "12", options=options)
    assert (job.code, job.stdout, job.others) == (plain.returncode, plain.stdout, plain.stderr.splitlines())
    linked = 0
    for timeline in job.traces():
        nodes = read(timeline.with_name(timeline.name.replace(".pt.trace.", ".et.")))["nodes"]
        assert {"aten::addmm", "AddmmBackward0"} <= {node["name"] for node in nodes}
        events = [event for event in read(timeline)["traceEvents"] if event.get("cat") == "cpu_op"]
        known = {a["value"] for node in nodes for a in node["attrs"] if a["name"] == "rf_id"}
        here = [event["args"].get("Record function id") in known for event in events]
        assert sum(here) > 0.95 * len(here)
        linked += sum(here)
    assert linked > 100
    assert job.folder is not None
    report = json.loads(place.plain(str(place.stepscope), "report", str(job.folder), "--json").stdout)
    scalars = report["answers"]["overview"]["scalars"]
    assert [scalars[name]["value"] for name in ("rank_count", "whole_step_count")] == [1, 3]


def test_an_execution_trace_of_the_jobs_own_stays_whole(place: Place) -> None:
    observed = """
    from torch.profiler import ExecutionTraceObserver
    observer = ExecutionTraceObserver()
    observer.register_callback("own.json")
    observer.start()
    """
    nodes = """
    observer.unregister_callback()
    import json
    print(len(json.load(open("own.json"))["nodes"]))
    """
    script = place.script(NET + observed + LOOP + nodes)
    job = place.run(sys.executable, script, "12", options=("--steps", "5:8", "--with", "execution-trace"))
    assert job.code == 0
    assert int(job.stdout.split()[-1]) > 12 * 50
    assert "the job records its own" in job.stderr
    assert job.recorded_steps() == [[5, 6, 7]]


@measured
def test_a_budget_shortens_the_window(place: Place) -> None:
    script = place.script(NET + LOOP, late_compiler=False)  # a share of the job's time, so that has to be some
    job = place.run(sys.executable, script, "30", options=("--steps", "4:20", "--budget", "0.0001%"))
    assert job.recorded_steps() == [[4]]
    assert "the window ended after 1 step: the next would cost more than 0.0001 % of the job's time" in job.ours[-1]
    other = Place(place.stepscope, place.folder / "other")
    other.folder.mkdir()
    job = other.run(sys.executable, script, "30", options=("--steps", "4:20", "--budget", "99%,900MB"))
    assert job.recorded_steps() == [list(range(4, 20))]


@measured
def test_a_budget_counts_all_windows(place: Place) -> None:
    text = NET + LOOP.replace("optimizer.step()", "optimizer.step(); time.sleep(0.01)").replace(
        "import", "import time,"
    )
    options = ("--schedule", "wait=1,warmup=1,active=2", "--budget", "2%")
    began = time.monotonic()
    job = place.run(sys.executable, place.script("    import time\n" + text), "200", options=options)
    longest_s = time.monotonic() - began
    (process,) = job.manifest()["processes"]
    cost_s = sum(sum(window["cost_s"].values()) for window in process["windows"])
    assert 0 < cost_s < 0.02 * longest_s + 0.05, "the first window's cost is not known before"
    assert any("would cost more than 2 %" in problem for problem in process["problems"])
    codes = [issue["code"] for issue in report(place, str(job.folder))["issues"]]
    assert "recording_problem" in codes


def test_several_windows(place: Place) -> None:
    """One is opened, the others are told of."""
    text = NET + LOOP
    job = place.run(sys.executable, place.script(text), "20", options=("--steps", "3:5,8:11"))
    assert [job.step_marks(trace) for trace in job.traces()] == [[3, 4], [8, 9, 10]]
    found = report(place, str(job.folder))
    assert found["answers"]["steps"]["scalars"]["step_count"]["value"] == 3
    (issue,) = [issue for issue in found["issues"] if issue["code"] == "other_windows"]
    assert job.traces()[0].name in issue["advice"]


def test_same_steps_of_all_ranks_on_request(place: Place) -> None:
    """A request that comes while the job runs: both ranks record the same steps."""
    text = """
        import json, os, time, torch, torch.distributed as dist
        dist.init_process_group("gloo")
        net = torch.nn.parallel.DistributedDataParallel(torch.nn.Linear(8, 8))
        optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
        begin = time.monotonic()
        stop = torch.zeros(1)
        while True:
            net(torch.ones(2, 8)).sum().backward()
            optimizer.step()
            time.sleep(0.02)
            stop[0] = time.monotonic() - begin > 9
            dist.all_reduce(stop)
            if stop.item():
                break
            folder = os.environ["STEPSCOPE_RUN"] + "/requests"
            if dist.get_rank() == 0 and time.monotonic() - begin > 1 and not os.path.exists(folder):
                os.makedirs(folder)
                with open(folder + "/0001.tmp", "w") as out:
                    json.dump({"schema_version": 1, "id": "0001", "steps": 4, "ranks": "all"}, out)
                os.rename(folder + "/0001.tmp", folder + "/0001.json")
        dist.destroy_process_group()
    """
    job = torchrun(place, text, options=("--steps", "1000000:1000001"))
    assert job.code == 0, job.stderr
    steps = job.recorded_steps()
    assert len(steps) == 2, job.stderr
    assert len(steps[0]) == 4
    assert steps[0] == steps[1]


LIMITED = "os.execv(sys.argv[1], sys.argv[1:])"


# Faults -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("seed", [0, 1, *(pytest.param(seed, marks=pytest.mark.soak) for seed in range(2, 12))])
def test_killed_at_random_points_every_file_opens(place: Place, seed: int) -> None:
    """A warm parent forks 20 ranks one after the other, each is killed while it records parts."""
    text = (
        IN_PARTS
        + """
    import os, random, signal, time
    chance = random.Random(int(sys.argv[2]))
    begun, tell = os.pipe()
    def rank():
        optimizer = torch.optim.SGD(net.parameters(), lr=0.01)
        for number in range(100_000):
            net(torch.ones(4, 8)).sum().backward()
            optimizer.step()
            if number == 4:
                os.write(tell, b"x")
    for _ in range(20):
        child = os.fork()
        if child == 0:
            rank()
        os.read(begun, 1)
        time.sleep(chance.uniform(0.0, 0.4))
        os.kill(child, signal.SIGKILL)
        os.waitpid(child, 0)
    """
    )
    job = place.run(sys.executable, place.script(text), "2", str(seed), options=("--steps", "4:100000"))
    assert job.code == 0, job.stderr
    assert job.folder is not None
    opened = 0
    assert len(rings(job)) == 21, "of each rank and of their parent"
    for path in job.folder.glob("telemetry/*.ring"):
        about, marks = ring(path)
        steps = steps_of(marks)
        assert steps == list(range(len(steps))), about
    for trace in (job.folder / "traces").rglob("*"):
        if trace.is_file() and trace.stat().st_size > 0:
            done = place.plain(str(place.stepscope), "report", str(trace), "--only", "steps", "--no-cache")
            assert done.returncode in (0, 4), f"{trace}: {done.stderr}"
            opened += 1
    assert opened >= 20


def test_the_lost_part_is_named_by_its_steps(place: Place) -> None:
    text = IN_PARTS.replace("loss.backward()", "number == 8 and os.kill(os.getpid(), 9); loss.backward()")
    job = place.run(sys.executable, place.script("    import os\n" + text), "20", options=("--steps", "2:100"))
    assert job.code == 137
    found = report(place, str(job.folder))
    assert found["answers"]["steps"]["scalars"]["step_count"]["value"] == 6
    (issue,) = [issue for issue in found["issues"] if issue["code"] == "part_lost"]
    assert "its steps from 8 to 8 are lost" in issue["sentence"]


def test_a_rank_that_never_starts(place: Place) -> None:
    job = place.run(sys.executable, place.script(NET + LOOP), "20", RANK="1", WORLD_SIZE="3")
    issues = {issue["code"]: issue["sentence"] for issue in report(place, str(job.folder))["issues"]}
    assert "2 of 3 ranks never ended a step: ranks 0, 2" in issues["ranks_never_started"]


def test_no_room_for_files(place: Place) -> None:
    """A limit on the size of files stands for a full disk: the job runs on, what fits is kept, and it is said."""
    limit = "    import resource; resource.setrlimit(resource.RLIMIT_FSIZE, (60_000, 60_000))\n"
    plain = place.plain(sys.executable, place.script(NET + LOOP, "plain.py"), "30")
    job = place.run(sys.executable, place.script(NET + limit + LOOP), "30")
    assert (job.code, job.stdout, job.others) == (0, plain.stdout, [])
    assert job.folder is not None
    assert "the trace was cut" in (job.folder / "hooks.log").read_text()
    (trace,) = job.traces()
    found = report(place, str(trace))
    assert "aten::linear" in {row["name"] for row in rows(found["answers"]["operators"], "by_name")}
    assert [issue for issue in found["issues"] if issue["severity"] == "lost"]


def test_a_disk_that_fills_up_while_a_trace_is_compressed(place: Place) -> None:
    script = Path(__file__).parents[2] / "python/stepscope/hooks/_stepscope_hooks/compress.py"
    noise = random.Random(1).randbytes(200_000).hex()
    limited = f"import resource, os, sys; resource.setrlimit(resource.RLIMIT_FSIZE, (50_000, 50_000)); {LIMITED}"
    target = place.folder / "x.json.gz"
    command = [sys.executable, "-c", limited, sys.executable, str(script), str(target), str(place.folder / "log")]
    done = subprocess.run(command, input=json.dumps({"traceEvents": [noise]}), text=True)
    assert done.returncode == 1
    assert "x.json.gz: the trace was cut" in (place.folder / "log").read_text()
    assert target.stat().st_size == 50_000


def test_same_bits_with_and_without(place: Place) -> None:
    text = NET + LOOP + "    print([p.double().sum().item().hex() for p in net.parameters()])\n"
    script = place.script(text, late_compiler=False)
    plain = place.plain(sys.executable, script, "24")
    job = place.run(sys.executable, script, "24", options=("--steps", "2:20"))
    assert (job.code, job.stdout, job.others) == (0, plain.stdout, plain.stderr.splitlines())


SLOW_START = """
    import sys, time, torch
    torch.manual_seed(0)
    net = torch.nn.Sequential(*[torch.nn.Linear(16, 16) for _ in range(3)])
    time.sleep(float(sys.argv[1]))
    def serve(passes):
        with torch.no_grad():
            for _ in range(passes):
                net(torch.ones(4, 16))
                time.sleep(0.01)
    def train(steps):
        optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
        for _ in range(steps):
            optimizer.zero_grad()
            net(torch.ones(4, 16)).sum().backward()
            optimizer.step()
            time.sleep(0.01)
"""


@needs_torch
@measured
def test_a_model_that_is_there_long_before_its_first_step(place: Place) -> None:
    """The clock finds it first, and the first call after that is no second begin of the same forward pass."""
    job = place.run(sys.executable, place.script(SLOW_START + "    train(40)\n"), "3.4")
    (process,) = job.manifest()["processes"]
    assert [len(window["steps"]) for window in process["windows"]] == [5, 1], job.stderr
    assert process["windows"][0]["steps"] == [10, 11, 12, 13, 14]
    assert "problem" not in job.stderr
    ((_, marks),) = rings(job)
    assert len([mark for mark in marks if (mark.kind, mark.phase) == (3, 2)]) >= 38  # forward passes


@needs_torch
def test_a_server_whose_first_request_comes_late(place: Place) -> None:
    job = place.run(sys.executable, place.script(SLOW_START + "    serve(40)\n"), "3.4", options=("--steps", "5:10"))
    (process,) = job.manifest()["processes"]
    assert process["windows"][0]["steps"] == [5, 6, 7, 8, 9], job.stderr


@needs_torch
@pytest.mark.parametrize("options", [(), ("--steps", "10:15")])
@measured
def test_forward_passes_before_a_training_give_way_to_it(place: Place, options: tuple[str, ...]) -> None:
    text = SLOW_START + "    serve(25)\n    train(40)\n"
    job = place.run(sys.executable, place.script(text), "0", options=options)
    assert "recorded steps 10-14 of 40" in job.ours[-1], job.stderr
    found = report(place, str(job.folder))["answers"]["steps"]
    assert {"forward", "backward", "optimizer"} <= {row["phase"] for row in rows(found, "phases")}


TRANSFORMER = """
    import sys, time, torch
    torch.manual_seed(0)
    layer = torch.nn.TransformerEncoderLayer(16, 2, 32, batch_first=True)
    net = torch.nn.TransformerEncoder(layer, 2, enable_nested_tensor=False)
    x = torch.randn(2, 6, 16)
    def train():
        optimizer = torch.optim.SGD(net.parameters(), lr=0.01)
        for step in range(30):
            net.train()
            optimizer.zero_grad()
            net(x).square().mean().backward()
            optimizer.step()
            net.eval()
            with torch.no_grad():
                print(net(x).double().sum().item().hex())
    def answer():
        time.sleep(3.4)  # the clock finds the model by then
        net.eval()
        with torch.inference_mode():
            for _ in range(30):
                print(net(x).double().sum().item().hex())
    train() if sys.argv[1] == "trains" else answer()
"""


@needs_torch
@pytest.mark.parametrize("does", ["answers", "trains"])
def test_what_looks_for_hooks_finds_none_of_ours(place: Place, does: str) -> None:
    """torch has one operator for a transformer's layer that answers, and takes the long way where it has hooks."""
    script = place.script(TRANSFORMER)
    plain = place.plain(sys.executable, script, does)
    job = place.run(sys.executable, script, does, options=("--steps", "5:10"))
    assert (job.code, job.stdout, job.others) == (0, plain.stdout, plain.stderr.splitlines())
    (trace,) = job.traces()
    noted = read(trace)
    assert 0 < noted["stepscope_boundary_ns"] < 1e8  # what our hooks take between two steps
    names = [event.get("name", "") for event in noted["traceEvents"]]
    assert names.count("aten::_transformer_encoder_layer_fwd") == 10  # of two layers in five steps
    of_layer = sum(name.endswith("layers.1 (TransformerEncoderLayer)") for name in names)
    inside = sum(name.endswith("layers.1.linear1 (Linear)") for name in names)
    assert (of_layer, inside) == ((10, 5) if does == "trains" else (5, 0))


@needs_torch
def test_backward_passes_are_the_steps_where_the_program_updates_parameters_itself(place: Place) -> None:
    text = """
        import torch
        net = torch.nn.Linear(16, 16)
        for _ in range(30):
            net(torch.ones(4, 16)).sum().backward()
            with torch.no_grad():
                for weight in net.parameters():
                    weight -= 0.1 * weight.grad
                    weight.grad = None
    """
    job = place.run(sys.executable, place.script(text))
    (process,) = job.manifest()["processes"]
    steps, frames = process["windows"]
    assert steps["steps"] == [10, 11, 12, 13, 14], job.stderr
    assert frames["kind"] == "stacks", job.stderr  # of a step soon after: these take microseconds, now more, now fewer
    assert "recorded steps 10-14 of 30" in job.ours[-1], job.stderr


@needs_torch
@pytest.mark.parametrize(("every", "framed"), [(100, 15), (5, 19)])
def test_frames_are_of_a_step_that_takes_long_where_some_do(place: Place, every: int, framed: int) -> None:
    text = """
        import sys, time, torch
        net = torch.nn.Linear(16, 16)
        optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
        for step in range(40):
            time.sleep(0.1 if step % int(sys.argv[1]) == int(sys.argv[1]) - 1 else 0.01)
            optimizer.zero_grad()
            net(torch.ones(4, 16)).sum().backward()
            optimizer.step()
    """
    job = place.run(sys.executable, place.script(text), str(every))
    (process,) = job.manifest()["processes"]
    stacks = [window["steps"] for window in process["windows"] if window["kind"] == "stacks"]
    assert stacks == [[framed]], job.stderr
