"""What taking an all-reduce out of a step is worth on two gloo ranks: predicted from the trace, then measured.

    python bench/what_if_gloo.py [--steps 40]

The slow step sums 4 MB more over the ranks, in a range of its own, and waits for it. Its traces alone are given to
stepscope what-if; then slow and fixed steps are run in turn and their wall times compared (two processes that wait for
each other use no CPU while they do).
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent


def rank(folder: Path, steps: int) -> None:
    import torch
    import torch.distributed as dist
    from torch.profiler import ProfilerActivity, profile, record_function, schedule

    dist.init_process_group("gloo")
    torch.set_num_threads(1)
    torch.manual_seed(0)
    model = torch.nn.parallel.DistributedDataParallel(
        torch.nn.Sequential(*[torch.nn.Linear(384, 384) for _ in range(4)])
    )
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    batch, metrics = torch.randn(256, 384), torch.ones(1 << 20)

    def step(slow: bool) -> None:
        optimizer.zero_grad()
        loss = model(batch).square().mean()
        if slow:
            with record_function("sum_metrics"):
                dist.all_reduce(metrics)
        loss.backward()
        optimizer.step()

    for _ in range(10):
        step(True)
    plan = schedule(wait=0, warmup=2, active=steps, repeat=1)
    with profile(activities=[ProfilerActivity.CPU], schedule=plan) as prof:
        for _ in range(steps + 2):
            step(True)
            prof.step()
    prof.export_chrome_trace(str(folder / f"rank{dist.get_rank()}.json"))
    dist.barrier()
    while not (folder / "predicted").exists():  # the fixed form runs after the prediction was written down
        time.sleep(0.05)
    times: dict[bool, list[float]] = {True: [], False: []}
    for number in range(2 * steps):
        dist.barrier()
        begun = time.perf_counter()
        step(number % 2 == 0)
        times[number % 2 == 0].append(time.perf_counter() - begun)
    if dist.get_rank() == 0:
        ratio = statistics.median(times[True]) / statistics.median(times[False])
        (folder / "measured").write_text(str(ratio))
    dist.destroy_process_group()


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--steps", type=int, default=40)
    parser.add_argument("--folder", type=Path)
    chosen = parser.parse_args()
    if chosen.folder:
        rank(chosen.folder, chosen.steps)
        return 0
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        launch = [sys.executable, "-m", "torch.distributed.run", "--nproc-per-node", "2", __file__]
        launch += ["--steps", str(chosen.steps), "--folder", name]
        with subprocess.Popen(launch, env={**os.environ, "OMP_NUM_THREADS": "1"}, stderr=subprocess.DEVNULL) as job:
            while not all((folder / f"rank{number}.json").exists() for number in range(2)):
                if job.poll() is not None:
                    return 1
                time.sleep(0.2)
            time.sleep(1)  # the files are written
            command = [str(ROOT / "build" / "stepscope"), "what-if", *map(str, sorted(folder.glob("rank*.json")))]
            command += ["--remove", "host:sum_metrics", "--json"]
            answer = json.loads(subprocess.run(command, check=True, capture_output=True, text=True).stdout)
            scalars = answer["answers"]["what_if"]["scalars"]
            low, high = (scalars[key]["value"] for key in ("speedup_low", "speedup_high"))
            (folder / "predicted").write_text(f"{low} {high}")
        measured = float((folder / "measured").read_text())
    error = abs((low + high) / 2 / measured - 1)
    unexplained = scalars["unexplained_share"]["value"]
    print(
        f"predicted {low:.3f} to {high:.3f}, measured {measured:.3f}, error {error:.1%}; unexplained {unexplained:.1%}"
    )
    return 0


if __name__ == "__main__":
    sys.exit(main())
