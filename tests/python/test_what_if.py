"""`stepscope what-if` on fresh runs and on traces made by hand: predictions, prices of findings, predicted traces."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from conftest import kernel, op
from jobs import Place, measured, needs_torch, read, report, rows

WriteTrace = Callable[..., Path]

# Rank 1 comes 80 ms later to the first bucket of each step. Two threads take the buckets, so that the second of two may
# end before the first does.
LATE_RANK = """
    import time, torch, torch.distributed as dist
    dist.init_process_group("gloo")
    torch.set_num_threads(1)
    net = torch.nn.Sequential(*[torch.nn.Linear(300, 300) for _ in range(6)])
    net = torch.nn.parallel.DistributedDataParallel(net, bucket_cap_mb=0.3)
    optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
    for number in range(30):
        loss = net(torch.ones(2, 300)).sum()
        if dist.get_rank() == 1:
            time.sleep(0.08)
        loss.backward()
        optimizer.step()
        optimizer.zero_grad()
    dist.destroy_process_group()
"""
SORTS = """
    import torch
    torch.set_num_threads(1)
    net = torch.nn.Linear(64, 64)
    optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
    for number in range(30):
        loss = net(torch.ones(2, 64)).sort().values.sum()
        loss.backward()
        optimizer.step()
        optimizer.zero_grad()
"""


def what_if(place: Place, *arguments: str) -> dict[str, Any]:
    done = place.plain(str(place.stepscope), "what-if", *arguments, "--json", "--no-cache")
    assert done.returncode in (0, 4), done.stderr
    found: dict[str, Any] = json.loads(done.stdout)["answers"]["what_if"]
    return found


def scalar(answer: dict[str, Any], name: str) -> Any:
    return answer["scalars"][name]["value"]


@needs_torch
@measured
def test_an_operator_less_is_as_much_less(place: Place) -> None:
    job = place.run(sys.executable, place.script(SORTS))
    assert job.folder is not None, job.stderr
    answer = what_if(place, str(job.folder), "--remove", "op:aten::sort")
    # On one thread everything moves up by what is gone: its time, and at most the Python between two such calls.
    change = rows(answer, "changes")[0]
    (trace,) = job.traces()
    events = read(trace)["traceEvents"]
    steps = [event for event in events if event.get("name", "").startswith("ProfilerStep#")]
    assert change["calls"] == len(steps)
    slower = scalar(answer, "step_ns") - change["host_ns"] / len(steps)
    assert scalar(answer, "predicted_high_ns") == pytest.approx(slower, rel=0.001)
    assert scalar(answer, "predicted_low_ns") <= scalar(answer, "predicted_high_ns")
    assert scalar(answer, "binds") == "the main thread of rank 0"

    predicted = place.folder / "predicted.json.gz"
    what_if(place, str(job.folder), "--remove", "op:aten::sort", "--trace", str(predicted))
    found = report(place, str(predicted), "--only", "steps", "--only", "operators")
    sorts = [row for row in rows(found["answers"]["operators"], "by_name") if row["name"] == "aten::sort"]
    assert sum(row["host_total_ns"] for row in sorts) == 0
    # The trace has the steps that were predicted, so it needs no prediction.
    again = what_if(place, str(predicted))
    assert scalar(again, "step_ns") == pytest.approx(scalar(answer, "predicted_high_ns"), rel=0.01)


@needs_torch
@measured
def test_a_late_rank_has_its_price(place: Place) -> None:
    job = place.run(sys.executable, "-m", "torch.distributed.run", "--nproc-per-node", "2", place.script(LATE_RANK))
    assert job.folder is not None, job.stderr
    found = report(place, str(job.folder))
    (straggler,) = [f for f in found["answers"]["ranks"]["findings"] if f["id"] == "straggler"]
    assert straggler["where"]["rank"] == 1
    gain = straggler["gain"]
    assert gain["how"] == "stepscope what-if PATH --level-rank 1"
    # Of some ms that a step would take, 80 are the wait for rank 1.
    assert gain["speedup_low"] > 1.5 and gain["binds"]
    by_hand = what_if(place, str(job.folder), "--level-rank", "1")
    assert scalar(by_hand, "speedup_low") == pytest.approx(gain["speedup_low"])
    evidence = {row["evidence"] for row in rows(by_hand, "evidence")}
    assert {"collective", "worker", "program order"} <= evidence
    # Both read the clock of this host, and every all-reduce has its partner.
    ranks = found["answers"]["ranks"]
    assert [row["clock"] for row in rows(ranks, "clocks")] == ["reference", "same host"]
    (bucket,) = [row for row in rows(by_hand, "communication") if row["kind"] == "all-reduce"]
    assert bucket["met"] is True and bucket["calls"] % 2 == 0

    network = place.folder / "network.yml"
    network.write_text("topology: [Switch, Ring]\nnpus_count: [2, 8]\nbandwidth: [10, 1]\nlatency: [0, 0]\n")
    ring = what_if(place, str(job.folder), "--ranks", "16")
    slow = what_if(place, str(job.folder), "--ranks", "16", "--topology", str(network))
    assert scalar(slow, "predicted_low_ns") > scalar(ring, "predicted_low_ns") > 0


def test_prices_stand_in_the_report(place: Place) -> None:
    trace = Path(__file__).parents[1] / "traces" / "tiny_train.json"
    found = report(place, str(trace))
    findings = {f["id"]: f for answer in found["answers"].values() for f in answer["findings"]}
    loader = findings["dataloader_wait"]
    assert loader["gain"]["speedup_low"] > 1.05 and not loader["gain_reason"]
    assert loader["gain"]["how"] == "stepscope what-if PATH --dataloader 0"
    # The host binds, so hiding communication gives nothing, and that is said.
    exposed = findings["exposed_communication"]
    assert exposed["gain"] is None and "still be bound by the main thread" in exposed["gain_reason"]
    assert "speedup_of_all_low" not in found["answers"]["overview"]["scalars"]


def test_the_prices_of_all_findings_together(place: Place, write_trace: WriteTrace) -> None:
    events = []
    for number in range(4):
        at = 1000 * number
        step = {"ph": "X", "cat": "user_annotation", "name": f"ProfilerStep#{number}", "pid": 7, "tid": 8}
        events.append({**step, "ts": at, "dur": 1000})
        load = {**step, "name": "enumerate(DataLoader)#_SingleProcessDataLoaderIter.__next__"}
        events.append({**load, "ts": at + 10, "dur": 300})
        events.append(kernel("gemm", at + 400, 100, 10 * number + 1))
        wait = {"ph": "X", "cat": "cuda_runtime", "name": "cudaDeviceSynchronize", "pid": 7, "tid": 8}
        events.append({**wait, "ts": at + 420, "dur": 80, "args": {"correlation": 10 * number + 2}})
        events.append(op("aten::item", at + 600, 390))
    found = report(place, str(write_trace(events=events)))
    gains = [f["gain"] for answer in found["answers"].values() for f in answer["findings"] if f["gain"]]
    overview = found["answers"]["overview"]["scalars"]
    assert len(gains) > 1
    together = overview["speedup_of_all_high"]["value"]
    assert together > max(gain["speedup_high"] for gain in gains)


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["--scale", "kernel:gemm"], "is not TARGET=VALUE"),
        (["--scale", "kernel:gemm=fast"], "is no number"),
        (["--scale", "kernel:nothing=0.5"], "nothing in the recording is 'kernel:nothing'"),
        (["--remove", "kernl:gemm"], "did you mean 'kernel'"),
        (["--move", "op:aten::mm=5"], "is no duration"),
        (["--dataloader", "-1"], "a factor below 0"),
        (["--bandwidth", "1e-300"], "a bandwidth that is not"),
        (["--scale", "kernel:gemm=1e15"], "above 1,000,000"),
        (["--move", "kernel:gemm=1e10s"], "more than a day"),
        (["--scale", "kernel:gemm=0.5", "--trace", "x.txt"], ".pftrace"),
        (["--ranks", "1"], "from 2 to 1,000,000"),
        (["--topology", "no.yml"], "Add --ranks 64"),
        (["--ranks", "8", "--topology", "no.yml"], "no.yml"),
        (["--level-rank", "3"], "there is no rank 3"),
        (["--level-rank", "0"], "one rank was opened"),
    ],
)
def test_what_cannot_be_meant_is_refused(
    place: Place, write_trace: WriteTrace, arguments: list[str], said: str
) -> None:
    done = place.plain(str(place.stepscope), "what-if", str(write_trace()), *arguments)
    assert done.returncode in (1, 2) and said in done.stderr, done.stderr
    assert not done.stdout


def test_the_recording_is_not_overwritten(place: Place, write_trace: WriteTrace) -> None:
    trace = write_trace()
    before = trace.read_bytes()
    done = place.plain(str(place.stepscope), "what-if", str(trace), "--scale", "kernel:gemm=0.5", "--trace", str(trace))
    assert done.returncode != 0 and trace.read_bytes() == before


def test_clocks_that_disagree_and_work_before_its_launch(place: Place, write_trace: WriteTrace) -> None:
    events = [op("aten::mm", 0, 50), kernel("early", 20, 10, 1), kernel("late", 60, 10, 2)]
    for launch_and_work in events[1:]:
        launch_and_work["both"][0]["ts"] += 8  # the launch is said to come after the work that it launched
    answer = what_if(place, str(write_trace(events=events)), "--scale", "kernel:early=0.5")
    assert scalar(answer, "against_time") == 2
    assert scalar(answer, "predicted_high_ns") <= scalar(answer, "step_ns")
