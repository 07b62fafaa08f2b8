"""`stepscope run` around the ways in which jobs are started, and the places of the ranks that they make."""

from __future__ import annotations

import importlib.util
import json
import os
import sys
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import Any

import pytest
from jobs import LOOP, NET, Job, Place, measured, needs_torch, read, report, rows, together

HOOKS = Path(__file__).resolve().parents[2] / "python" / "stepscope" / "hooks"
TORCHRUN = ["-m", "torch.distributed.run", "--rdzv-backend", "c10d", "--rdzv-endpoint", "127.0.0.1:0"]
TRAIN = """
    import sys, torch
    def main():
        model = torch.nn.Linear(8, 8)
        optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
        for step in range(8):
            model(torch.ones(4, 8)).sum().backward()
            optimizer.step()
        print("trained", sys.argv[1:])
        raise SystemExit(3)
"""


def torchrun(ranks: int, script: str) -> list[str]:
    return [sys.executable, *TORCHRUN, "--local-addr", "127.0.0.1", "--nproc-per-node", str(ranks), script]


def module_ranges(trace: Path) -> set[str]:
    names = {str(event.get("name", "")) for event in read(trace)["traceEvents"]}
    return {name.partition(": ")[2] for name in names if name.startswith("stepscope.module: ")}


# One process ------------------------------------------------------------------------------------------------------


def console_script(place: Place) -> list[str]:
    """A program on PATH as pip makes it of [project.scripts]."""
    programs = place.folder / "bin"
    programs.mkdir()
    place.script(TRAIN, "pretrain.py")
    program = programs / "pretrain"
    start = f"import sys; sys.path.insert(0, {str(place.folder)!r})"
    program.write_text(
        f"#!{sys.executable}\n{start}\nfrom pretrain import main\nif __name__ == '__main__':\n    main()\n"
    )
    program.chmod(0o755)
    place.environment["PATH"] = f"{programs}:{place.environment['PATH']}"
    return ["pretrain"]


def package(place: Place) -> list[str]:
    (place.folder / "pretrain").mkdir()
    place.script(TRAIN, "pretrain/__init__.py")
    place.script("from . import main\nmain()\n", "pretrain/__main__.py")
    return [sys.executable, "-m", "pretrain"]


def shell(place: Place) -> list[str]:
    return ["sh", "-c", f'{sys.executable} {place.script(TRAIN + "    main()")} "$@"; exit $?', "sh"]


@needs_torch
@pytest.mark.parametrize("start", [console_script, package, shell])
def test_a_program_however_it_is_started(place: Place, start: Any) -> None:
    job = place.run(*start(place), "--lr", "3e-4", options=("--steps", "2:5"))
    assert (job.code, job.stdout, job.others) == (3, "trained ['--lr', '3e-4']\n", [])
    assert job.recorded_steps() == [[2, 3, 4]]
    assert len(job.manifest()["processes"]) == 1


# Several processes ------------------------------------------------------------------------------------------------


def assert_same_steps(job: Job, ranks: list[str]) -> None:
    assert job.code == 0, job.stderr
    assert sorted(trace.parent.name for trace in job.traces()) == ranks
    assert job.recorded_steps() == [[2, 3, 4]] * len(ranks)
    assert all(note["problems"] == [] for note in job.manifest()["processes"])


@needs_torch
def test_fsdp2_under_torchrun(place: Place) -> None:
    script = place.script("""
        import time, torch, torch.distributed as dist
        from torch.distributed.fsdp import fully_shard
        dist.init_process_group("gloo")
        torch.manual_seed(0)
        model = torch.nn.Sequential(torch.nn.Linear(8, 16), torch.nn.ReLU(), torch.nn.Linear(16, 8))
        fully_shard(model[0])
        fully_shard(model)
        optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
        for step in range(8):
            loss = model(torch.ones(2, 8)).square().sum()
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            if dist.get_rank() == 0:
                print(step, loss.item())
        dist.barrier()
        time.sleep(1)  # torch 2.13 aborts, without us too, where a gloo thread lets go of a tensor as Python ends
    """)
    plain = place.plain(*torchrun(2, script))
    job = place.run(*torchrun(2, script), options=("--steps", "2:5"))
    assert plain.returncode == 0, plain.stderr
    assert job.stdout == plain.stdout
    assert_same_steps(job, ["rank0", "rank1"])
    for trace in job.traces():
        shown = {"FSDPSequential (FSDPSequential)", "0 (FSDPLinear)", "1 (ReLU)", "2 (Linear)"}
        assert module_ranges(trace) == shown
        names = [event.get("name", "") for event in read(trace)["traceEvents"]]
        assert any("all_gather" in name for name in names)


@needs_torch
def test_ranks_of_a_device_mesh_are_named_by_their_places(place: Place) -> None:
    script = place.script("""
        import torch, torch.distributed as dist
        from torch.distributed.device_mesh import init_device_mesh
        mesh = init_device_mesh("cpu", (2, 2), mesh_dim_names=("dp", "tp"))
        model = torch.nn.Linear(8, 8)
        optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
        for step in range(8):
            model(torch.ones(2, 8)).sum().backward()
            for parameter in model.parameters():
                dist.all_reduce(parameter.grad, group=mesh.get_group("dp"))
            optimizer.step()
        dist.destroy_process_group()
    """)
    job = place.run(*torchrun(4, script), options=("--steps", "2:5"))
    assert_same_steps(job, ["rank0_dp0_tp0", "rank1_dp0_tp1", "rank2_dp1_tp0", "rank3_dp1_tp1"])


@needs_torch
@pytest.mark.skipif(importlib.util.find_spec("accelerate") is None, reason="accelerate is not installed")
def test_accelerate_launch(place: Place) -> None:
    script = place.script("""
        import torch
        from accelerate import Accelerator
        accelerator = Accelerator(cpu=True)
        model = torch.nn.Linear(8, 8)
        model, optimizer = accelerator.prepare(model, torch.optim.SGD(model.parameters(), lr=0.1))
        for step in range(8):
            accelerator.backward(model(torch.ones(2, 8)).sum())
            optimizer.step()
        accelerator.print("trained by", accelerator.num_processes)
        accelerator.end_training()
    """)
    # More than one process on CPUs without MPI: accelerate starts them as it starts those of several GPUs.
    options = "--multi_gpu --num_processes 2 --num_machines 1 --mixed_precision no --dynamo_backend no"
    launch = [sys.executable, "-m", "accelerate.commands.launch", *options.split(), "--main_process_port", "0"]
    job = place.run(*launch, script, options=("--steps", "2:5"))
    assert job.stdout == "trained by 2\n"
    assert_same_steps(job, ["rank0", "rank1"])
    roles = sorted(note["role"] for note in job.manifest()["processes"])
    assert roles == ["launcher", "rank", "rank"]
    for trace in job.traces():
        assert any("all_reduce" in event.get("name", "") for event in read(trace)["traceEvents"])


@needs_torch
def test_a_launcher_that_hands_ranks_to_its_children_as_deepspeed_does(place: Place) -> None:
    """What `deepspeed` starts: it imports torch, and its children know their ranks from the environment alone."""
    launcher = place.folder / "deepspeed" / "launcher"
    launcher.mkdir(parents=True)
    (place.folder / "deepspeed" / "__init__.py").write_text("import torch\n")
    (launcher / "__init__.py").write_text("")
    place.script(
        """
        import os, subprocess, sys
        script = [word for word in sys.argv[1:] if not word.startswith("--master_")]
        def start(rank):
            env = dict(os.environ, RANK=str(rank), LOCAL_RANK=str(rank), WORLD_SIZE="2", LOCAL_SIZE="2")
            return subprocess.Popen([sys.executable, "-u", script[0], f"--local_rank={rank}", *script[1:]], env=env)
        ranks = [start(rank) for rank in range(2)]
        raise SystemExit(max(rank.wait() for rank in ranks))
        """,
        "deepspeed/launcher/launch.py",
    )
    script = place.script("""
        import torch
        model = torch.nn.Linear(8, 8)
        optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
        for step in range(8):
            model(torch.ones(4, 8)).sum().backward()
            optimizer.step()
    """)
    job = place.run(
        sys.executable, "-m", "deepspeed.launcher.launch", "--master_port=29500", script, options=("--steps", "2:5")
    )
    assert_same_steps(job, ["rank0", "rank1"])
    notes = job.manifest()["processes"]
    found = sorted((note["role"], note["rank_source"]) for note in notes)
    assert found == [("launcher", "single process"), ("rank", "environment"), ("rank", "environment")]


@needs_torch
def test_ranks_in_containers_with_the_host_s_name(place: Place) -> None:
    """Both are process 1 of the same host: files named HOST_PID would be the same."""
    contain = ["unshare", "--map-root-user", "--pid", "--fork", "--mount-proc"]
    allowed = place.plain(*contain, "true")
    if allowed.returncode != 0:
        pytest.skip(f"no process namespaces of one's own here: {allowed.stderr.strip()}")
    script = place.script(TRAIN.replace("raise SystemExit(3)", "") + "    main()")
    start = f"RANK=$rank WORLD_SIZE=2 {' '.join(contain)} {sys.executable} {script} &"
    job = place.run("sh", "-c", f"for rank in 0 1; do {start} done; wait", options=("--steps", "2:5"))
    assert_same_steps(job, ["rank0", "rank1"])
    assert sorted((note["rank"], note["pid"]) for note in job.manifest()["processes"]) == [(0, 1), (1, 1)]
    report = place.plain(str(place.stepscope), "report", str(job.folder), "--only", "steps")
    assert "2 ranks of 2" in report.stdout


@pytest.mark.parametrize(
    ("command", "expected"),
    [
        ("python -m torch.distributed.run --nproc-per-node 2 train.py", True),
        ("python -u /venv/bin/torchrun train.py", True),
        ("python /venv/bin/accelerate launch train.py", True),
        ("python /venv/bin/accelerate-launch train.py", True),
        ("python /venv/bin/ds train.py", True),
        ("python -m deepspeed.launcher.launch --world_info=x train.py", True),
        ("python train.py torchrun", False),
        ("python -m package.deepspeed", False),
        ("python -c pass", False),
        ("python", False),
    ],
)
def test_which_command_is_a_launcher(
    parallel: Any, monkeypatch: pytest.MonkeyPatch, command: str, expected: bool
) -> None:
    process = importlib.import_module("_stepscope_hooks.process")
    monkeypatch.setattr(sys, "orig_argv", command.split(), raising=False)
    assert process.is_launcher() is expected
    monkeypatch.setenv("RANK", "0")
    assert process.is_launcher() is False, "what a launcher started is a rank, whatever it is called"


# Places in parallelism, as other libraries tell them -----------------------------------------------------------------


@pytest.fixture
def parallel(monkeypatch: pytest.MonkeyPatch) -> Iterator[Any]:
    """hooks/parallel.py of a process without any of these libraries."""
    for name in list(sys.modules):
        if name.partition(".")[0] in ("megatron", "internlm", "deepspeed", "torch", "_stepscope_hooks"):
            monkeypatch.delitem(sys.modules, name)
    for name in list(os.environ):
        if name.endswith(("_RANK", "_SIZE")):
            monkeypatch.delenv(name)
    monkeypatch.syspath_prepend(str(HOOKS))
    module = importlib.import_module("_stepscope_hooks.parallel")
    assert Path(str(module.__file__)).is_relative_to(HOOKS)
    yield module
    for name in [name for name in sys.modules if name.partition(".")[0] == "_stepscope_hooks"]:
        del sys.modules[name]


def stand_in(monkeypatch: pytest.MonkeyPatch, name: str, **members: Any) -> Any:
    module = ModuleType(name)
    for key, value in members.items():
        setattr(module, key, value)
    monkeypatch.setitem(sys.modules, name, module)
    return module


def say(value: Any) -> Any:
    return lambda *_: value


def test_nobody_tells_places(parallel: Any) -> None:
    assert parallel.places() == {}
    assert parallel.folder_name(3) == "rank3"
    parallel.assume({"dp": (3, 4), "tp": (0, 1)})
    assert parallel.folder_name(3) == "rank3_dp3_tp0"


def test_places_of_megatron(parallel: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    known = {"data": (1, 2), "tensor_model": (3, 4), "pipeline_model": (1, 2), "context": (0, 1)}
    members: dict[str, Any] = {"model_parallel_is_initialized": say(False)}
    for name, (place, size) in known.items():
        members[f"get_{name}_parallel_rank"] = say(place)
        members[f"get_{name}_parallel_world_size"] = say(size)
    state = stand_in(monkeypatch, "megatron.core.parallel_state", **members)
    assert parallel.folder_name(15) == "rank15", "not before its groups are made"
    monkeypatch.setattr(state, "model_parallel_is_initialized", say(True))
    assert parallel.folder_name(15) == "rank15_dp1_tp3_pp1"
    assert parallel.places()["cp"] == (0, 1)
    monkeypatch.setattr(state, "model_parallel_is_initialized", say(False))
    assert parallel.folder_name(15) == "rank15_dp1_tp3_pp1", "still known when its groups are gone"
    parallel.forget()
    assert parallel.folder_name(15) == "rank15"


def test_places_of_internevo(parallel: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    places = {"data": (1, 4), "tensor": (0, 2)}
    context = SimpleNamespace(
        is_initialized=lambda mode: mode in places,  # no pipeline in this job
        get_local_rank=lambda mode: places[mode][0],
        get_world_size=lambda mode: places[mode][1],
    )
    modes = SimpleNamespace(DATA="data", TENSOR="tensor", PIPELINE="pipe")
    stand_in(monkeypatch, "internlm.core.context", global_context=context, ParallelMode=modes)
    assert parallel.folder_name(2) == "rank2_dp1_tp0"
    assert parallel.places() == places_of(dp=(1, 4), tp=(0, 2))


def places_of(**dimensions: tuple[int, int]) -> dict[str, tuple[int, int]]:
    return dimensions


def test_places_of_deepspeed(parallel: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    def no_such_group() -> int:
        raise AssertionError("the group is not initialized")

    stand_in(monkeypatch, "torch.distributed", is_initialized=say(True), is_available=say(True))
    groups = stand_in(
        monkeypatch,
        "deepspeed.utils.groups",
        mpu=None,
        _get_data_parallel_rank=no_such_group,
        _get_data_parallel_world_size=say(4),
    )
    assert parallel.places() == {}, "what a library refuses to tell stays unknown"
    groups._get_data_parallel_rank = say(3)
    assert parallel.folder_name(3) == "rank3_dp3"
    parallel.forget()
    groups.mpu = SimpleNamespace(
        get_data_parallel_rank=say(1),
        get_data_parallel_world_size=say(2),
        get_model_parallel_rank=say(0),
        get_model_parallel_world_size=say(2),
        get_pipe_parallel_rank=say(1),
        get_pipe_parallel_world_size=say(2),
    )
    assert parallel.places() == places_of(dp=(1, 2), tp=(0, 2), pp=(1, 2))


class Mesh:
    """What parallel.py asks a DeviceMesh."""

    def __init__(self, names: tuple[str, ...], sizes: tuple[int, ...], coordinate: tuple[int, ...] | None) -> None:
        self.mesh_dim_names, self.sizes, self.coordinate = names, sizes, coordinate

    def get_coordinate(self) -> list[int] | None:
        return None if self.coordinate is None else list(self.coordinate)

    def size(self, index: int) -> int:
        return self.sizes[index]


@pytest.mark.parametrize(
    ("names", "sizes", "coordinate", "expected"),
    [
        (("dp", "tp"), (2, 4), (1, 3), {"dp": (1, 2), "tp": (3, 4)}),
        (("pipeline", "data", "model"), (2, 2, 2), (1, 0, 1), {"pp": (1, 2), "dp": (0, 2), "tp": (1, 2)}),
        (("dp_replicate", "dp_shard"), (2, 4), (1, 2), {"dp": (6, 8)}),
        (("replicate", "shard", "tp"), (3, 2, 2), (2, 1, 0), {"dp": (5, 6), "tp": (0, 2)}),
        (("dp_shard", "cp", "tp"), (4, 2, 1), (3, 1, 0), {"dp": (3, 4), "cp": (1, 2), "tp": (0, 1)}),
        (("rows", "columns"), (2, 2), (1, 1), {}),
    ],
)
def test_places_of_device_meshes(
    parallel: Any,
    monkeypatch: pytest.MonkeyPatch,
    names: tuple[str, ...],
    sizes: tuple[int, ...],
    coordinate: tuple[int, ...],
    expected: dict[str, tuple[int, int]],
) -> None:
    stand_in(monkeypatch, "torch.distributed.device_mesh", DeviceMesh=Mesh)
    group = stand_in(monkeypatch, "torch.distributed", is_initialized=say(False), is_available=say(True))
    of_others, mesh = Mesh(("dp", "pp"), (9, 9), None), Mesh(names, sizes, coordinate)
    assert parallel.places() == {}, "a rank of no group has no place"
    monkeypatch.setattr(group, "is_initialized", say(True))
    assert parallel.places() == expected
    assert (of_others.coordinate, mesh.coordinate) == (None, coordinate)  # both live until here


def test_places_in_the_environment(parallel: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TP_RANK", "1")
    monkeypatch.setenv("TP_SIZE", "4")
    monkeypatch.setenv("VLLM_DP_RANK", "2")
    monkeypatch.setenv("PIPELINE_PARALLEL_RANK", "none")
    assert parallel.places() == places_of(dp=(2, 0), tp=(1, 4))


def test_what_a_library_tells_wins_over_the_environment(parallel: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("DP_RANK", "7")
    stand_in(monkeypatch, "torch.distributed.device_mesh", DeviceMesh=Mesh)
    stand_in(monkeypatch, "torch.distributed", is_initialized=say(True), is_available=say(True))
    mesh = Mesh(("dp",), (4,), (3,))
    assert parallel.places() == places_of(dp=(3, 4))
    assert mesh.coordinate == (3,)


TAKEN_OVER = """
    import os, time, torch
    number = int(os.environ["SLURM_PROCID"])
    net = torch.nn.Linear(8, 8)
    optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
    end = time.time() + (2 if number == 0 else 9)
    if number == 1:
        time.sleep(0.5)
    while time.time() < end:
        net(torch.ones(2, 8)).sum().backward()
        optimizer.step()
        time.sleep(0.05)
"""
SRUN = """
    # srun -n N COMMAND: N tasks side by side, which know each other by these variables alone
    import os, subprocess, sys
    count = int(sys.argv[2])
    slurm = {"SLURM_JOB_ID": "4242", "SLURM_STEP_ID": "0", "SLURM_STEP_NUM_TASKS": str(count)}
    slurm["SLURM_NTASKS"] = str(count)
    tasks = [
        subprocess.Popen(sys.argv[3:], env={**os.environ, **slurm, "SLURM_PROCID": str(n)}) for n in range(count)
    ]
    sys.exit(max(task.wait() for task in tasks))
"""


@needs_torch
@pytest.mark.parametrize("where", ["inside", "outside"])
@measured
def test_tasks_of_an_srun_are_one_run(place: Place, where: str) -> None:
    srun = [sys.executable, place.script(SRUN, "srun.py"), "-n", "3"]
    job = [sys.executable, place.script(NET + together(3) + LOOP), "20"]
    if where == "inside":
        metrics = place.folder / "job.prom"
        done = place.execute([*srun, *place.command(*job, options=("--steps", "2:5", "--openmetrics", str(metrics)))])
        assert 'rank="2"' in metrics.read_text()
    else:
        done = place.execute(place.command(*srun, *job, options=("--steps", "2:5")))
    ended = Job(place.out, done)
    assert (ended.code, len(ended.ours)) == (0, 2), done.stderr
    assert "in 3 processes" in ended.ours[1]
    assert ended.recorded_steps() == [[2, 3, 4]] * 3
    assert sorted(trace.parent.name for trace in ended.traces()) == ["rank0", "rank1", "rank2"]
    assert ended.folder is not None
    assert (ended.folder.name == "slurm-4242.0") == (where == "inside")
    assert len(ended.manifest()["processes"]) == 3
    # One samples for all of the host.
    (samples,) = ended.folder.glob("telemetry/*.samples")
    series = [json.loads(line) for line in samples.with_suffix(".series.jsonl").read_text().splitlines()]
    assert {"rank 0", "rank 1", "rank 2"} <= {one["target"] for one in series if one["name"] == "cpu_time"}
    done = place.plain(str(place.stepscope), "report", str(ended.folder), "--json")
    report = json.loads(done.stdout)
    assert (done.returncode, report["issues"]) == (0, [])
    assert report["answers"]["overview"]["scalars"]["rank_count"]["value"] == 3


@needs_torch
def test_a_task_takes_over_the_telemetry_of_one_that_ended(place: Place) -> None:
    # The second begins later: the one that ends first is the one that samples.
    srun = SRUN.replace("sys.argv[3:], env", "['sh', '-c', f'sleep {n}; exec \"$@\"', 'sh', *sys.argv[3:]], env")
    job = place.command(sys.executable, place.script(TAKEN_OVER), options=("--telemetry", "cpu"))
    ended = Job(place.out, place.execute([sys.executable, place.script(srun, "srun.py"), "-n", "2", *job]))
    assert ended.code == 0 and ended.folder is not None, ended.stderr
    files = sorted(ended.folder.glob("telemetry/*.samples"), key=lambda path: path.stat().st_mtime_ns)
    targets = [path.with_suffix(".series.jsonl").read_text() for path in files]
    assert len(files) == 2 and "rank 0" in targets[0] and "rank 1" in targets[1], targets
    assert "rank 0" not in targets[1]
    found = rows(report(place, str(ended.folder), "--only", "system")["answers"]["system"], "ranks")
    assert [row["rank"] for row in found if row["cores"] is not None] == [0, 1]
