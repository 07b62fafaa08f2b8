"""`stepscope run` around an engine of DeepSpeed that is to profile FLOP: our report in the place of its own.

The package is a stand-in (stand_in_deepspeed.py); with a real one installed its engine is run too.
"""

from __future__ import annotations

import importlib.util
import json
import re
import shutil
import sys
from pathlib import Path
from typing import Any

import pytest
import stand_in_deepspeed
from jobs import Job, Place, measured, needs_torch

HOOKS = Path(__file__).resolve().parents[2] / "python" / "stepscope" / "hooks"
MACS = 4 * (8 * 16 + 16 * 8)
BACKWARD = 2 * 4 * (8 * 16 + 2 * 16 * 8)  # nothing needs the gradient of the data
TORCHRUN = ["-m", "torch.distributed.run", "--rdzv-backend", "c10d", "--rdzv-endpoint", "127.0.0.1:0"]
pytestmark = needs_torch

TRAIN = """
    import json, sys
    import deepspeed
    import torch
    torch.manual_seed(0)
    class Net(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.up, self.down = torch.nn.Linear(8, 16), torch.nn.Linear(16, 8)
        def forward(self, x):
            return self.down(torch.relu(self.up(x)))
    net = Net()
    config = json.loads(sys.argv[1])
    micro = config.pop("micro", 1)
    optimizer = torch.optim.SGD(net.parameters(), lr=0.01)
    engine = deepspeed.DeepSpeedEngine(net, optimizer, config, micro)
    for step in range(8 * micro):
        loss = engine(torch.ones(4, 8)).square().sum()
        engine.backward(loss)
        engine.step(asks=config.get("asks", True))
    if engine.global_rank == 0:
        print("loss", loss.item().hex())
    left = [name for name, one in net.named_modules() if name and (one._forward_hooks or one._forward_pre_hooks)]
    assert left == [] or not config.get("asks", True), left
    raise SystemExit(3)
"""


@pytest.fixture
def place(place: Place) -> Place:
    stand_in_deepspeed.write(place.folder)
    place.script(TRAIN)
    return place


def config(**block: Any) -> dict[str, Any]:
    return {"flops_profiler": {"enabled": True, **block}}


def run(place: Place, wanted: dict[str, Any], *options: str, **more: str) -> Job:
    command = [sys.executable, str(place.folder / "job.py"), json.dumps(wanted)]
    return place.run(*command, options=options, **more)


def reports(text: str) -> list[str]:
    return re.findall(r"\n-{26} DeepSpeed Flops Profiler.*?\n-{78}\n", text, re.DOTALL)


def value(text: str, label: str) -> str:
    found = [line[72:].strip() for line in text.split("\n") if line.startswith(label)]
    assert len(found) == 1, label
    return found[0]


def problems(job: Job) -> list[str]:
    return [problem for note in job.manifest()["processes"] for problem in note["problems"]]


def seconds(text: str) -> float:
    number, unit = text.split(" ")
    return float(number) * {"us": 1e-6, "ms": 1e-3, "s": 1.0}[unit]


def is_ours(job: Job, step: int) -> str:
    """The one report of a job, checked."""
    assert job.code == 3, job.stderr
    assert "theirs" not in job.stdout and job.others == []
    (report,) = reports(job.stdout)
    assert f"Profile Summary at step {step}:\n" in report
    assert value(report, "fwd MACs per GPU") == "1.02 KMACs" and MACS == 1024
    assert value(report, "batch size per GPU") == "4"
    root = re.search(r"^Net\(\n  280 = 100% Params, .*", report, re.MULTILINE)
    assert root is not None
    latency = re.search(r"([\d.]+ [mu]s) = 100% latency", root[0])
    assert latency is not None, "the root's latency is a latency"
    assert seconds(latency[1]) < 1 and " 0 FLOPS" not in root[0]
    return report


@pytest.mark.parametrize("step", [1, 2, 5])
@measured
def test_the_engine_prints_our_report(place: Place, step: int) -> None:
    job = run(place, config(profile_step=step, top_modules=2))
    report = is_ours(job, step)
    backward = seconds(value(report, "bwd latency: "))
    assert "bwd FLOPS per GPU = measured bwd flops per GPU / bwd latency: " in report
    number, unit = value(report, "bwd FLOPS per GPU").split(" ")
    rate = float(number) * {"KFLOPS": 1e3, "MFLOPS": 1e6, "GFLOPS": 1e9}[unit]
    assert rate == pytest.approx(BACKWARD / backward, rel=0.02)
    kept = job.folder / "flops" / f"rank-0_step-{step}.txt"  # type: ignore[operator]
    text = kept.read_text()
    assert text.startswith(report) and text in job.stdout
    assert text[len(report) :].startswith("not counted: operators with ")
    (note,) = job.manifest()["processes"]
    assert note["flops_reports"] == [f"flops/rank-0_step-{step}.txt"] and note["problems"] == []
    (recorded,) = job.recorded_steps()
    assert recorded != [] and step not in recorded, "torch has room for one profiler"


def test_the_job_computes_the_same(place: Place) -> None:
    losses = set()
    for wanted in (config(profile_step=2), {"flops_profiler": {"enabled": False}}):
        job = run(place, wanted)
        losses.update(re.findall(r"loss (\S+)", job.stdout))
    plain = place.plain(sys.executable, str(place.folder / "job.py"), json.dumps({"flops_profiler": {}}))
    losses.update(re.findall(r"loss (\S+)", plain.stdout))
    assert plain.returncode == 3 and len(losses) == 1


def test_an_engine_without_it_is_left_alone(place: Place) -> None:
    job = run(place, {"flops_profiler": {"enabled": False}})
    assert job.code == 3 and reports(job.stdout) == [] and "theirs" not in job.stdout
    assert "flops_reports" not in job.manifest()["processes"][0]


def test_into_the_file_that_the_configuration_names(place: Place) -> None:
    file = place.folder / "reports" / "flops.txt"
    job = run(place, config(profile_step=2, output_file=str(file), detailed=False))
    assert job.code == 3 and reports(job.stdout) == []
    assert "Profile Summary at step 2:" in file.read_text() and "Detailed Profile" not in file.read_text()


def test_strict_in_the_configuration_gives_deepspeed_s_factor(place: Place) -> None:
    report = is_ours(run(place, config(profile_step=2, strict=True, recompute_fwd_factor=1.0)), 2)
    assert "bwd FLOPS per GPU = 3 * fwd flops per GPU / bwd latency: " in report


@pytest.mark.parametrize(("step", "recorded"), [(3, [1, 2, 4, 5]), (1, [2, 3, 4, 5])])
@measured
def test_a_recording_leaves_the_step_to_it(place: Place, step: int, recorded: list[int]) -> None:
    job = run(place, config(profile_step=step), "--steps", "1:6")
    is_ours(job, step)
    assert job.recorded_steps() == [recorded]
    assert any(f"step {step} was not recorded" in problem for problem in problems(job))


@measured
def test_micro_batches_have_a_report_each(place: Place) -> None:
    job = run(place, {**config(profile_step=2, detailed=False), "micro": 2})
    first, second = reports(job.stdout)
    for report in (first, second):
        assert "Profile Summary at step 2:" in report
        assert value(report, "fwd MACs per GPU") == "1.02 KMACs"
    total = seconds(value(second, "fwd latency: ")) + seconds(value(first, "fwd latency: "))
    assert seconds(value(second, "fwd latency: ")) < total, "its own time, not that of both"


@measured
def test_an_engine_that_does_not_ask_is_reported_with_its_next_pass(place: Place) -> None:
    """As those of pipelines, and where step() is somebody else's."""
    is_ours(run(place, {**config(profile_step=2), "asks": False}), 2)
    last = run(place, {**config(profile_step=7), "asks": False})
    assert last.code == 3 and last.stdout.index("loss") < last.stdout.index("Profile Summary at step 7:")


def test_the_autotuner_keeps_its_own(place: Place) -> None:
    job = run(place, {**config(profile_step=2), "autotuning": True})
    assert job.code == 3 and "theirs, step 3" in job.stdout and problems(job) == []


def test_hooks_that_were_copied_alone_leave_theirs_in_place(place: Place) -> None:
    hooks = place.folder / "alone" / "hooks"
    shutil.copytree(HOOKS, hooks)
    place.script("", "stepscope.py")  # of the job's own; none that we could use
    job = run(place, config(profile_step=2), STEPSCOPE_HOOKS=str(hooks))
    assert job.code == 3 and "theirs, step 3" in job.stdout and reports(job.stdout) == []
    (why,) = [problem for problem in problems(job) if "stays in place" in problem]
    assert "stepscope" in why and job.recorded_steps() != []


def test_without_the_library_theirs_stays_in_place(place: Place) -> None:
    shutil.copytree(HOOKS.parent, place.folder / "copy" / "stepscope")
    job = run(place, config(profile_step=2), STEPSCOPE_HOOKS=str(place.folder / "copy" / "stepscope" / "hooks"))
    assert job.code == 3 and "theirs, step 3" in job.stdout and reports(job.stdout) == []
    (why,) = [problem for problem in problems(job) if "stays in place" in problem]
    assert "libstepscope.so was not found" in why


def test_another_profiler_in_that_step_leaves_it_to_theirs(place: Place) -> None:
    text = (place.folder / "job.py").read_text()
    loop = "for step in range(8 * micro):\n"
    assert loop in text
    own = "own = torch.profiler.profile(activities=[torch.profiler.ProfilerActivity.CPU])\nown.start()\n"
    (place.folder / "job.py").write_text(
        text.replace(loop, own + loop).replace("left = [", "own.stop()\nprint(len(own.events()) > 100)\nleft = [")
    )
    job = run(place, config(profile_step=2))
    assert job.code == 3, job.stderr
    assert "theirs, step 2" in job.stdout and "True\n" in job.stdout
    assert any("a torch profiler runs already" in problem for problem in problems(job))


@measured
def test_rank_0_prints_and_all_ranks_record_the_same_steps(place: Place) -> None:
    text = (place.folder / "job.py").read_text()
    begin = "torch.manual_seed(0)\n"
    (place.folder / "job.py").write_text(
        text.replace(begin, begin + "import torch.distributed as dist\ndist.init_process_group('gloo')\n").replace(
            "raise SystemExit(3)", "dist.barrier()\ndist.destroy_process_group()"
        )
    )
    command = [sys.executable, *TORCHRUN, "--local-addr", "127.0.0.1", "--nproc-per-node", "2"]
    job = place.run(
        *command, str(place.folder / "job.py"), json.dumps(config(profile_step=2)), options=("--steps", "1:6")
    )
    assert job.code == 0, job.stderr
    (report,) = reports(job.stdout)
    assert (value(report, "world size"), value(report, "data parallel size: ")) == ("2", "2")
    steps = job.recorded_steps()
    assert len(steps) == 2 and steps[0] == steps[1] and 2 not in steps[0]


OWN = """
    import sys, torch
    from stepscope.flops import FlopsProfiler
    torch.manual_seed(0)
    net = torch.nn.Sequential(torch.nn.Linear(8, 16), torch.nn.ReLU(), torch.nn.Linear(16, 8))
    optimizer = torch.optim.SGD(net.parameters(), lr=0.01)
    profiler = FlopsProfiler(net)
    for step in range(10):
        if step == 3:
            profiler.start_profile()
        net(torch.ones(4, 8)).sum().backward()
        if step == 3:
            print(profiler.get_total_macs(), profiler.get_total_backward_flops())
            profiler.end_profile()
        optimizer.step()
"""


def test_a_profiler_in_the_program_itself_has_its_step(place: Place) -> None:
    script = place.script(OWN, "own.py")
    job = place.run(sys.executable, script, options=("--steps", "2:7"), PYTHONPATH=str(HOOKS.parents[1]))
    assert (job.code, job.stdout, job.others) == (0, f"{MACS} {BACKWARD}\n", [])
    (recorded,) = job.recorded_steps()
    assert set(recorded) <= {2, 3, 4, 5, 6} and {2, 5, 6} <= set(recorded)


REAL = """
    import os, sys, torch
    os.environ.update(MASTER_ADDR="127.0.0.1", MASTER_PORT=str(20000 + os.getpid() % 20000), RANK="0",
                      LOCAL_RANK="0", WORLD_SIZE="1")
    import deepspeed
    class Net(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.up, self.down = torch.nn.Linear(8, 16), torch.nn.Linear(16, 8)
        def forward(self, x):
            return self.down(torch.relu(self.up(x)))
    torch.manual_seed(0)
    net = Net()
    config = {
        "train_batch_size": 4, "steps_per_print": 1000, "flops_profiler": {"enabled": True, "profile_step": 2},
        "optimizer": {"type": "Adam", "params": {"lr": 0.001, "torch_adam": True}},
    }
    engine, *_ = deepspeed.initialize(model=net, model_parameters=net.parameters(), config=config)
    for step in range(6):
        loss = engine(torch.ones(4, 8)).square().sum()
        engine.backward(loss)
        engine.step()
    print("loss", loss.item().hex())
    raise SystemExit(3)
"""


@pytest.mark.skipif(importlib.util.find_spec("deepspeed") is None, reason="deepspeed is not installed")
def test_the_real_engine(place: Place) -> None:
    shutil.rmtree(place.folder / "deepspeed")
    script = place.script(REAL, "real.py")
    job = place.run(sys.executable, script)
    plain = place.plain(sys.executable, script)
    assert (job.code, plain.returncode) == (3, 3), job.stderr
    assert re.findall(r"loss (\S+)", job.stdout) == re.findall(r"loss (\S+)", plain.stdout) != []
    (ours,), (theirs,) = reports(job.stdout), reports(plain.stdout)
    assert "Profile Summary at step 2:" in ours and "Profile Summary at step 3:" in theirs
    for label in ("world size", "params per GPU", "fwd MACs per GPU", "batch size per GPU"):
        assert value(ours, label) == value(theirs, label)
    assert "Gs = 100% latency" in theirs and "Gs = 100% latency" not in ours
