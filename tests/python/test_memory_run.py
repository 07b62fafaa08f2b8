"""`stepscope run --memory`, and SimpleMemoryProfiler with its pages: the job as ever, and a folder for each rank."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

from jobs import Job, Place, needs_torch, report, rows
from test_launchers import torchrun

ROOT = Path(__file__).resolve().parents[2]
PAGES = ["params_memory", "grads_memory", "os_memory", "activation_memory", "summary"]
FILES = sorted(["memory.log", "memory_state.json", *(f"{name}_sunburst.html" for name in PAGES)])

TWO_MODELS = """
    import torch, torch.distributed as dist
    from torch.distributed.fsdp import fully_shard
    from torch.nn.parallel import DistributedDataParallel
    dist.init_process_group("gloo")
    torch.manual_seed(0)
    def net():
        return torch.nn.Sequential(torch.nn.Linear(256, 512), torch.nn.ReLU(), torch.nn.Linear(512, 256))
    whole, sharded = DistributedDataParallel(net()), net()
    fully_shard(sharded[0])
    fully_shard(sharded)
    optimizer = torch.optim.Adam([*whole.parameters(), *sharded.parameters()], lr=0.01, foreach=False)
    for step in range(4):
        for micro_batch in range(2):
            loss = sharded(whole(torch.ones(64, 256))).square().sum()
            loss.backward()
        optimizer.step()
        optimizer.zero_grad()
        if dist.get_rank() == 0:
            print(step, loss.item())
    del loss
    dist.barrier()
    dist.destroy_process_group()
"""
WEIGHTS = 256 * 512 * 4
MODEL_BYTES = 2 * WEIGHTS + (512 + 256) * 4


def traces(job: Job) -> list[Path]:
    assert job.folder is not None, job.stderr
    return sorted((job.folder / "memory_trace").iterdir())


def state(folder: Path) -> dict[str, Any]:
    found: dict[str, Any] = json.loads((folder / "memory_state.json").read_text())
    return found


def tree(state: dict[str, Any], category: str) -> dict[str, int]:
    paths = state["nodes"]["path"]
    return {paths[node]: own for node, own, _ in state["peak"]["trees"][category] if own}


def check_page(page: Path, state: dict[str, Any]) -> None:
    """It asks no network (web/test opens one in a browser), and shows the figures of this measurement."""
    text = page.read_text()
    assert "<script src" not in text
    assert "<link" not in text
    data = json.loads(text.partition('id="report-data">')[2].partition("</script>")[0])
    answer = data["answers"]["memory_state"]
    if page.name == "summary_sunburst.html":
        assert answer["scalars"]["peak_bytes"]["value"] == state["peak"]["total_bytes"]
    else:
        found = rows(answer, "largest")
        largest = sum(
            state["largest"][row["category"].replace(" ", "_")]["bytes"] for row in found if row["depth"] == 0
        )
        assert largest == sum(row["own_bytes"] for row in found) > 0


@needs_torch
def test_a_job_that_knows_nothing(place: Place) -> None:
    script = place.script("""
        import torch
        torch.manual_seed(0)
        model = torch.nn.Sequential(torch.nn.Linear(512, 512), torch.nn.ReLU(), torch.nn.Linear(512, 512))
        optimizer = torch.optim.Adam(model.parameters(), lr=0.01)
        for step in range(7):
            loss = model(torch.randn(128, 512)).square().mean()
            loss.backward()
            optimizer.step()
            optimizer.zero_grad()
            print(step, loss.item())
    """)
    plain = place.plain(sys.executable, script)
    job = place.run(sys.executable, script, options=("--memory", "--trace=false"))
    assert (job.code, job.stdout, job.others) == (0, plain.stdout, plain.stderr.splitlines())
    assert all(note["problems"] == [] for note in job.manifest()["processes"])
    assert "memory of 1 rank in" in job.ours[-1]
    [folder] = traces(job)
    assert folder.name == "rank0_dp0_tp0"
    assert sorted(path.name for path in folder.iterdir()) == FILES
    measured = state(folder)
    assert (measured["complete"], measured["steps_done"]) == (True, 5)
    model = 2 * (512 * 512 + 512) * 4
    assert measured["peak"]["bytes"]["parameter"] == measured["peak"]["bytes"]["gradient"] == model
    assert measured["largest"]["optimizer_state"]["bytes"] == 2 * model + 4 * 4
    for name in PAGES:
        check_page(folder / f"{name}_sunburst.html", measured)
    answer = report(place, str(job.folder), "--only", "memory_state")["answers"]["memory_state"]
    assert answer["scalars"]["peak_bytes"]["value"] == measured["peak"]["total_bytes"]
    layer = "layer: param_mem.0.weight, layer_mem: 1.00 MB, total_mem: 1.00 MB"
    assert layer in (folder / "memory.log").read_text()


@needs_torch
def test_without_a_run(place: Place) -> None:
    """A script of InternEvo's kind: no file but those in its folder, no word but its own."""
    script = place.script("""
        import torch
        from stepscope.memory import SimpleMemoryProfiler
        model = torch.nn.LSTM(32, 32, batch_first=True)  # returns tuples
        optimizer = torch.optim.Adam(model.parameters())
        profiler = SimpleMemoryProfiler(model, optimizer, "memory_trace/rank0_dp0_tp0", total_steps=2)
        for step in range(3):
            model(torch.randn(2, 8, 32))[0].mean().backward()
            optimizer.step()
            optimizer.zero_grad()
            profiler.step()
        print(profiler.problems)
    """)
    done = place.execute([sys.executable, script], PYTHONPATH=str(ROOT / "python"))
    assert (done.returncode, done.stdout, done.stderr) == (0, "[]\n", "")
    folder = place.folder / "memory_trace" / "rank0_dp0_tp0"
    assert sorted(path.name for path in folder.iterdir()) == FILES
    assert sorted(path.name for path in place.folder.iterdir()) == ["job.py", "memory_trace"]
    for name in PAGES:
        check_page(folder / f"{name}_sunburst.html", state(folder))


@needs_torch
def test_two_ranks_with_ddp_and_fsdp2(place: Place) -> None:
    script = place.script(TWO_MODELS)
    plain = place.plain(*torchrun(2, script))
    job = place.run(*torchrun(2, script), options=("--memory", "--trace=false", "--memory-steps", "2"))
    assert plain.returncode == 0, plain.stderr
    assert (job.code, job.stdout) == (0, plain.stdout), job.stderr
    assert all(note["problems"] == [] for note in job.manifest()["processes"])
    folders = traces(job)
    assert [folder.name for folder in folders] == ["rank0_dp0_tp0", "rank1_dp1_tp0"]
    for folder in folders:
        assert sorted(path.name for path in folder.iterdir()) == FILES
        measured = state(folder)
        weights = {path: size for path, size in tree(measured, "parameter").items() if path.endswith("0.weight")}
        assert weights == {"DistributedDataParallel.0.weight": WEIGHTS, "FSDPSequential.0.weight": WEIGHTS // 2}
        most = {name: one["bytes"] for name, one in measured["largest"].items()}
        share = MODEL_BYTES + MODEL_BYTES // 2
        assert (most["parameter"], most["gradient"]) == (share, share)
        assert most["optimizer_state"] == 2 * share + 8 * 4
        events = [point["event"] for point in measured["points"] if point["step"] == 1]
        assert events == [*["forward", "forward", "backward"] * 2, "step"]
