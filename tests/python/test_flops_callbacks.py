"""One step of a training reported as DeepSpeed does it: a loop of one's own, ranks, the trainers of transformers and
Lightning, the real ones."""

from __future__ import annotations

import importlib.util
import json
import re
import sys
from pathlib import Path

import pytest
from jobs import Place, needs_torch
from test_callbacks import HUGGINGFACE, LIGHTNING, PYTHON, needs

TORCHRUN = ["-m", "torch.distributed.run", "--rdzv-backend", "c10d", "--rdzv-endpoint", "127.0.0.1:0"]
NET = """
    import sys, torch
    torch.manual_seed(0)
    net = torch.nn.Sequential(torch.nn.Linear(8, 16), torch.nn.ReLU(), torch.nn.Linear(16, 8))
"""
MACS = 4 * (8 * 16 + 16 * 8)
pytestmark = needs_torch


def run(place: Place, text: str, *arguments: str, ranks: int = 1) -> str:
    more = [] if ranks == 1 else [*TORCHRUN, "--local-addr", "127.0.0.1", "--nproc-per-node", str(ranks)]
    done = place.execute([sys.executable, *more, place.script(text), *arguments], PYTHONPATH=PYTHON)
    assert done.returncode == 0, done.stderr
    assert "stepscope" not in done.stderr, done.stderr
    return done.stdout


def value(text: str, label: str) -> str:
    found = [line[72:].strip() for line in text.split("\n") if line.startswith(label)]
    assert len(found) == 1, (label, text)
    return found[0]


def seconds(text: str) -> float:
    number, unit = text.split(" ")
    return float(number) * {"us": 1e-6, "ms": 1e-3, "s": 1.0}[unit]


def is_whole(text: str) -> None:
    """All lines that an engine's report has, and latencies that add up."""
    parts = [seconds(value(text, f"{name} latency: ")) for name in ("fwd", "bwd", "step")]
    assert all(part > 0 for part in parts)
    assert seconds(value(text, "iter latency: ")) == pytest.approx(sum(parts), rel=0.02)
    assert "n/a" not in text
    assert "bwd FLOPS per GPU = measured bwd flops per GPU / bwd latency: " in text


def test_a_loop_of_one_s_own(place: Place) -> None:
    out = run(
        place,
        NET
        + """
    from stepscope.flops import StepReport
    optimizer = torch.optim.SGD(net.parameters(), lr=0.01)
    report = StepReport(net, profile_step=3, batch_size=4)
    for step in range(6):
        for _ in range(2):
            net(torch.ones(4, 8)).sum().backward()
        optimizer.step()
        optimizer.zero_grad()
        report.step()
        print("step", step)
    """,
    )
    is_whole(out)
    assert out.index("step 2") < out.index("Profile Summary at step 3:") < out.index("step 3\n")
    assert value(out, "fwd MACs per GPU") == "2.05 KMACs" and 2 * MACS == 2048
    rate = float(value(out, "samples/second"))
    assert rate == pytest.approx(2 * 4 / seconds(value(out, "iter latency: ")), rel=0.02)
    assert len(re.findall("DeepSpeed Flops Profiler", out)) == 1


def test_a_step_that_never_came_is_told(place: Place) -> None:
    text = (
        NET
        + """
    from stepscope.flops import StepReport
    report = StepReport(net, profile_step=20)
    report.step()
    raise SystemExit(3)
    """
    )
    done = place.execute([sys.executable, place.script(text)], PYTHONPATH=PYTHON)
    assert done.returncode == 3
    assert "stepscope.flops reports nothing: the training ended without step 20" in done.stderr


def test_the_first_step_and_a_configuration(place: Place) -> None:
    block = {
        "enabled": True,
        "profile_step": 0,
        "detailed": False,
        "output_file": "reports/flops.txt",
        "top_modules": 2,
    }
    (place.folder / "ds_config.json").write_text(json.dumps({"flops_profiler": block}))
    text = (
        NET
        + """
    from stepscope.flops import StepReport
    report = StepReport(net, sys.argv[1])
    for step in range(3):
        net(torch.ones(4, 8)).sum().backward()
        report.step()
    """
    )
    assert run(place, text, "ds_config.json") == ""
    written = (place.folder / "reports" / "flops.txt").read_text()
    assert "Profile Summary at step 0:" in written and "Top 2 modules" in written and "Detailed" not in written
    assert value(written, "step latency: ") == "n/a s" and value(written, "batch size per GPU: ") == "n/a"
    (place.folder / "ds_config.json").write_text(json.dumps({"flops_profiler": {"profile_step": 1}}))
    assert run(place, text, "ds_config.json") == "", "it is not enabled"


def test_ranks_of_a_mesh_and_the_first_one_prints(place: Place) -> None:
    out = run(
        place,
        NET
        + """
    import torch.distributed as dist
    from torch.distributed.device_mesh import init_device_mesh
    from stepscope.flops import StepReport
    dist.init_process_group("gloo")
    mesh = init_device_mesh("cpu", (2, 2), mesh_dim_names=("dp", "tp"))
    model = torch.nn.parallel.DistributedDataParallel(net, process_group=mesh.get_group("dp"))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    report = StepReport(model, profile_step=1, batch_size=4)
    for step in range(3):
        model(torch.ones(4, 8)).sum().backward()
        optimizer.step()
        report.step()
    dist.barrier()
    dist.destroy_process_group()
    """,
        ranks=4,
    )
    is_whole(out)
    sizes = [value(out, f"{name} size: ") for name in ("world", "data parallel", "model parallel")]
    assert sizes == ["4", "2", "2"]
    assert (value(out, "params per GPU"), value(out, "params of model")) == ("280", "560")
    assert (value(out, "fwd flops per GPU: "), value(out, "fwd flops of model")) == ("2.05 K", "4.1 K")
    assert "\nDistributedDataParallel(\n  280 = 100% Params, 1.02 KMACs = 100% MACs" in out
    assert "\n  (module): Sequential(\n    280 = 100% Params, 1.02 KMACs = 100% MACs" in out


def test_sharded_by_fsdp(place: Place) -> None:
    out = run(
        place,
        NET
        + """
    import time, torch.distributed as dist
    from torch.distributed.fsdp import fully_shard
    from stepscope.flops import FlopsProfiler
    dist.init_process_group("gloo")
    fully_shard(net[0])
    fully_shard(net)
    profiler = FlopsProfiler(net)
    for step in range(3):
        if step == 2:
            profiler.start_profile()
        net(torch.ones(4, 8)).sum().backward()
    found = profiler.get_total_macs(), profiler.get_total_backward_flops(), profiler.get_total_params()
    if dist.get_rank() == 0:
        print(*found)
    profiler.end_profile()
    dist.barrier()
    time.sleep(1)  # torch 2.13 aborts where a gloo thread lets go of a tensor as Python ends
    """,
        ranks=2,
    )
    assert out == f"{MACS} {2 * 4 * (8 * 16 + 2 * 16 * 8)} 280\n"


@needs("transformers")
@needs("accelerate")
def test_trainer_of_transformers(place: Place) -> None:
    text = HUGGINGFACE.replace(
        "StepscopeCallback(steps=sys.argv[1], name=", "FlopsCallback(profile_step=2, output_file="
    )
    text = text.replace("StepscopeCallback", "FlopsCallback").replace("print(callback.folder)", "")
    assert "Flops" not in run(place, text)
    written = (place.folder / "finetune").read_text()
    is_whole(written)
    assert "Profile Summary at step 2:" in written and value(written, "batch size per GPU") == "2"
    # 2 micro-batches of 2 rows of 8 tokens: q, k, v and the output, three of the MLP, the head; scores and values.
    tokens, hidden = 2 * 2 * 8, 16
    macs = tokens * (7 * hidden * hidden + hidden * 32) + 2 * 4 * 8 * 8 * hidden
    assert value(written, "fwd MACs per GPU") == f"{macs / 1000:.2f} KMACs"
    rate = float(value(written, "samples/second"))
    assert rate == pytest.approx(4 / seconds(value(written, "iter latency: ")), rel=0.02)


@needs("lightning")
def test_trainer_of_lightning(place: Place) -> None:
    text = LIGHTNING.replace("StepscopeCallback(steps=sys.argv[1], name=", "FlopsCallback(profile_step=2, output_file=")
    text = text.replace("StepscopeCallback", "FlopsCallback").replace("print(callback.folder)", "pass")
    assert run(place, text, "-", "1") == ""
    written = (place.folder / "finetune").read_text()
    is_whole(written)
    assert "Profile Summary at step 2:" in written and value(written, "batch size per GPU") == "2"
    assert value(written, "fwd MACs per GPU") == "32 MACs", "2 micro-batches of 2 rows through 8 weights"
    rate = float(value(written, "samples/second"))
    assert rate == pytest.approx(4 / seconds(value(written, "iter latency: ")), rel=0.02)
    assert run(place, text, "-", "2") == "", "rank 0 of two writes"
    assert value((place.folder / "finetune").read_text(), "world size: ") == "2"


def test_the_report_is_kept_in_the_run_folder(place: Place) -> None:
    script = place.script(
        NET
        + """
    from stepscope.flops import StepReport
    optimizer = torch.optim.SGD(net.parameters(), lr=0.01)
    report = StepReport(net, profile_step=3)
    for step in range(12):
        net(torch.ones(4, 8)).sum().backward()
        optimizer.step()
        report.step()
    """
    )
    job = place.run(sys.executable, script, options=("--steps", "6:10"), PYTHONPATH=PYTHON)
    assert job.code == 0 and job.others == []
    assert job.folder is not None
    assert (job.folder / "flops" / "rank-0_step-3.txt").read_text() == job.stdout
    assert job.recorded_steps() == [[6, 7, 8, 9]]


def test_what_goes_wrong_is_a_warning(place: Place) -> None:
    text = (
        NET
        + """
    import stepscope, warnings
    from stepscope.flops import StepReport
    with stepscope.profile("own"), warnings.catch_warnings(record=True) as said:
        warnings.simplefilter("always")
        report = StepReport(net, profile_step=1)
        for step in range(3):
            net(torch.ones(4, 8)).sum().backward()
            report.step()
        late = StepReport(net, profile_step=99)
        late.end()
    print([str(one.message) for one in said if "stepscope" in str(one.message)])
    """
    )
    told = run(place, text)
    assert "stepscope.flops reports nothing: a torch profiler runs already" in told
    assert "stepscope.flops reports nothing: the training ended without step 99" in told


def test_mistakes_are_told_before_the_training() -> None:
    from stepscope import flops

    with pytest.raises(ValueError, match="flops_profiler has no 'profile_stp'; did you mean profile_step"):
        flops.StepReport(None, profile_stp=3)
    if importlib.util.find_spec("transformers") is not None:
        from stepscope.huggingface import FlopsCallback

        with pytest.raises(ValueError, match="wants a whole number"):
            FlopsCallback(profile_step="3")


def test_the_package_loads_no_torch(place: Place) -> None:
    text = "import sys, stepscope.flops; print({'torch', 'deepspeed', 'numpy'} & set(sys.modules))"
    done = place.execute([sys.executable, "-c", text], PYTHONPATH=str(Path(PYTHON)))
    assert done.stdout == "set()\n", done.stderr
