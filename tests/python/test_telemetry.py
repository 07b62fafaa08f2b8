"""What the machine does beside a job: sampled by run, attach and monitor, told by `report --only system`."""

from __future__ import annotations

import json
import os
import re
import shlex
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest
from jobs import TWO_RANKS, Place, measured, needs_torch, report, rows
from prometheus_client.openmetrics.parser import text_string_to_metric_families
from test_attach import LOOP, attach, running

BUSY_FORWARD = """
    import sys, time, torch
    torch.manual_seed(0)
    torch.set_num_threads(1)
    class Net(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.layer = torch.nn.Linear(8, 8)
        def forward(self, x):
            end = time.perf_counter() + 0.2
            while time.perf_counter() < end:
                pass
            return self.layer(x)
    net = Net()
    optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
    for number in range(25):
        net(torch.ones(4, 8)).sum().backward()
        time.sleep(0.2)
        optimizer.step()
"""


def system(place: Place, folder: Path | str | None) -> dict[str, Any]:
    found: dict[str, Any] = report(place, str(folder), "--only", "system")["answers"]["system"]
    return found


def check_converted(place: Place, folder: str) -> None:
    """Of a rank that was busy for half of its time, in both formats, beside its own operators."""
    question = """select value from counters where name = 'cpu_time' and key = 'cores' and
                  time_ns between (select min(start_ns) from slices) and (select max(start_ns) from slices)"""
    for form, name in (("perfetto", "all.pftrace"), ("chrome", "all.json.gz")):
        path = str(place.folder / name)
        done = place.plain(str(place.stepscope), "convert", folder, "--to", form, "-o", path)
        assert done.returncode == 0 and "telemetry" not in done.stderr, done.stderr
        done = place.plain(str(place.stepscope), "query", path, question, "--csv")
        cores = [float(line) for line in done.stdout.splitlines()[1:]]
        assert len(cores) > 5 and 0.1 < sum(cores) / len(cores) < 2, done.stdout
        machine = "select count(*) from counters where name = 'cpu_user' and key = 'cores'"
        done = place.plain(str(place.stepscope), "query", path, machine, "--csv")
        assert int(done.stdout.splitlines()[1]) > 1


@needs_torch
@measured
def test_a_job_is_sampled_and_cut_by_phase_and_step(place: Place) -> None:
    job = place.run(sys.executable, place.script(BUSY_FORWARD))
    assert job.code == 0
    found = system(place, job.folder)
    (rank,) = rows(found, "ranks")
    assert rank["rank"] == 0
    phases = {row["phase"]: row for row in rows(found, "phases")}
    # A busy machine may keep it from its core, and what it does then it waits.
    busy, other = (phases[name]["main_thread"] + phases[name]["main_thread_wait"] for name in ("forward", "other"))
    assert busy > 0.7 and other < 0.4, phases
    assert phases["forward"]["share"] > 0.3
    steps = rows(found, "steps")
    assert len(steps) == 25
    assert sum(row["cores"] is not None for row in steps) >= 15
    assert {"cpu", "memory", "io"} <= {row["collector"] for row in rows(found, "series")}
    check_converted(place, str(job.folder))


@needs_torch
@measured
def test_each_rank_is_sampled_for_itself(place: Place) -> None:
    torchrun = ["torchrun", "--nproc-per-node", "2", place.script(TWO_RANKS)]
    job = place.run(sys.executable, "-m", "torch.distributed.run", *torchrun[1:])
    assert job.code == 0, job.stderr
    found = [row for row in rows(system(place, job.folder), "ranks") if row["cores"] is not None]
    assert [row["rank"] for row in found] == [0, 1]
    lines = place.plain(str(place.stepscope), "live", str(job.folder), "--once").stdout.splitlines()
    head = next(number for number, line in enumerate(lines) if "cores" in line and "memory" in line)
    assert [line.split()[0] for line in lines[head + 1 : head + 3]] == ["0", "1"] and "MiB" in lines[head + 2]
    assert all(row["rss_bytes"] > 50e6 for row in found)


@needs_torch
def test_telemetry_can_be_left_out_or_chosen(place: Place) -> None:
    script = place.script("import torch\nprint('done')\n")
    job = place.run(sys.executable, script, options=("--telemetry", "off"))
    assert job.folder is not None and not list(job.folder.glob("telemetry/*.samples"))
    job = place.run(
        sys.executable, place.script(BUSY_FORWARD.replace("range(25)", "range(2)")), options=("--trace=false",)
    )
    assert job.folder is not None and not list(job.folder.rglob("*.gz"))
    assert "kept the steps and phases of 2 steps" in job.ours[-1] and "nothing" not in job.ours[-1]
    done = place.plain(str(place.stepscope), "run", "--telemetry", "cpuu", "--", sys.executable, script)
    assert done.returncode == 2 and "cpuu" in done.stderr and "memory" in done.stderr
    done = place.plain(str(place.stepscope), "run", "--telemetry", "cpu:0ms", "--", sys.executable, script)
    assert done.returncode == 2 and "500ms" in done.stderr


@needs_torch
@measured
def test_a_job_that_was_attached_to_is_sampled_meanwhile(place: Place) -> None:
    with running(place, [sys.executable, place.script(LOOP), "1000"]) as job:
        folder, _ = attach(place, str(job.pid), "--time", "2")
    found = system(place, folder)
    assert any(row["target"] == "rank 0" and row["name"] == "cpu_time" for row in rows(found, "series"))


@measured
def test_monitor_of_a_process_and_of_the_machine(place: Place) -> None:
    with subprocess.Popen([sys.executable, "-c", "while True: pass"]) as busy:
        try:
            out = str(place.out)
            done = place.plain(str(place.stepscope), "monitor", str(busy.pid), "--time", "1", "--out", out)
            assert done.returncode == 0, done.stderr
            assert f"pid {busy.pid}" in done.stdout and "cores" in done.stdout
        finally:
            busy.kill()
    (samples,) = place.out.rglob("*.samples")
    found = system(place, samples.parent.parent)
    assert f"pid {busy.pid}" in {row["target"] for row in rows(found, "series")}
    alone = place.folder / "alone"
    done = place.plain(str(place.stepscope), "monitor", "--time", "1500ms", "--out", str(alone))
    assert done.returncode == 0 and "for 1.5 s" in done.stderr, done.stderr
    (samples,) = alone.rglob("*.samples")
    folder = samples.parent.parent
    assert {row["target"] for row in rows(system(place, folder), "series")} >= {"host"}
    check_zeros(place, done.stdout)
    check_without_traces(place, folder)
    assert place.plain(str(place.stepscope), "monitor", "no-such-job").returncode == 1
    for bad in ("5x", "0", "1e9h"):
        done = place.plain(str(place.stepscope), "monitor", "--time", bad, "--out", str(alone))
        assert done.returncode == 2 and "500ms" in done.stderr


def check_zeros(place: Place, summary: str) -> None:
    """As many series stayed 0 as the command that is named shows."""
    (line,) = (line for line in summary.splitlines() if "series stayed 0: stepscope query" in line)
    command = shlex.split(line.split(": ", 1)[1])[1:]
    done = place.plain(str(place.stepscope), *command, "--csv")
    assert len(done.stdout.splitlines()) - 1 == int(line.split()[0]) > 0, done


def check_without_traces(place: Place, folder: Path) -> None:
    """What leads on from a folder that holds telemetry alone."""
    first = place.plain(str(place.stepscope), "report", str(folder))
    assert "--only system" in first.stdout and "--only steps" not in first.stdout
    done = place.plain(str(place.stepscope), "convert", str(folder), "--to", "folded", "-o", str(place.folder / "out"))
    assert done.returncode == 1 and "--only system" in done.stderr and "perfetto" in done.stderr
    path = str(place.folder / "machine.pftrace")
    assert place.plain(str(place.stepscope), "convert", str(folder), "--to", "perfetto", "-o", path).returncode == 0
    done = place.plain(
        str(place.stepscope), "query", path, "select count(*) from counters where key = 'cores'", "--csv"
    )
    assert int(done.stdout.splitlines()[1]) > 0
    shown = place.plain(
        str(place.stepscope), "query", str(folder), "select time_ns from samples", "--limit", "3"
    ).stdout
    assert re.fullmatch(r" *time UTC\n(\d\d:\d\d:\d\d\.\d{3,6}\n){3}", shown), shown


@needs_torch
@measured
def test_samples_stay_when_the_sampler_is_killed(place: Place) -> None:
    command = [str(place.stepscope), "run", "--out", str(place.out), "--", sys.executable, place.script(LOOP), "100"]
    with running(place, command) as job:
        time.sleep(1)
        os.kill(job.pid, 9)  # stepscope; the job goes on
        time.sleep(0.2)
    (samples,) = place.out.rglob("*.samples")
    found = system(place, samples.parent.parent)
    assert max(row["samples"] for row in rows(found, "series")) >= 5


def test_doctor_lists_the_collectors(place: Place) -> None:
    found = json.loads(place.plain(str(place.stepscope), "doctor", "--json").stdout)["telemetry"]
    by_name = {one["name"]: one for one in found}
    assert by_name["cpu"]["absent"] is None
    for one in found:
        assert (one["absent"] is None) == (one["fix"] is None), one
    if not Path("/sys/class/infiniband").exists():
        assert "adapter" in by_name["infiniband"]["absent"]


@pytest.mark.parametrize("text", ["", "STEPSAMP", "STEPSAMP" + "\0" * 5000, "x" * 9000])
def test_a_damaged_file_of_samples_is_told(place: Place, text: str) -> None:
    folder = place.folder / "run" / "telemetry"
    folder.mkdir(parents=True)
    (folder / "a_1.samples").write_text(text)
    done = place.plain(str(place.stepscope), "report", str(place.folder / "run"), "--no-cache")
    assert done.returncode == 1, done.stdout
    assert "a_1.samples" in done.stderr or "no trace was found" in done.stderr


def exposed(path: Path) -> dict[str, list[dict[str, str]]]:
    """The labels of all samples by name, as another one's parser reads them."""
    found: dict[str, list[dict[str, str]]] = {}
    for family in text_string_to_metric_families(path.read_text()):  # type: ignore[no-untyped-call]
        for sample in family.samples:
            found.setdefault(sample.name, []).append(sample.labels)
    return found


@needs_torch
@measured
def test_the_newest_values_stand_in_an_openmetrics_file(place: Place) -> None:
    path = place.folder / "job.prom"
    job = place.run(sys.executable, place.script(BUSY_FORWARD), STEPSCOPE_OPENMETRICS=str(path))
    assert job.code == 0 and "OpenMetrics" not in job.stderr, job.stderr
    found = exposed(path)
    (rank,) = found["stepscope_cpu_time_seconds_total"]
    assert (rank["rank"], rank["job"]) == ("0", "job") and rank["host"]
    assert found["stepscope_steps_total"] == found["stepscope_memory_rss_bytes"] == [rank]
    assert found["stepscope_step_seconds"] == [rank]
    phases = {labels["phase"] for labels in found["stepscope_phase_ratio"]}
    assert phases == {"other", "dataloader", "forward", "backward", "optimizer"}
    assert "stepscope_host_cpu_user_seconds_total" in found
    assert not path.with_suffix(".prom.tmp").exists()


def test_an_openmetrics_file_that_cannot_be_written_is_told_at_the_end(place: Place) -> None:
    path = place.folder / "nowhere" / "job.prom"
    job = place.run(sys.executable, "-c", "pass", options=("--openmetrics", str(path)))
    assert job.code == 0
    assert any("no OpenMetrics" in problem for problem in job.manifest()["problems"])
    assert "no OpenMetrics" in job.ours[-1]


@measured
def test_monitor_writes_openmetrics(place: Place) -> None:
    path = place.folder / "machine.prom"
    command = ("monitor", "--time", "1", "--out", str(place.out), "--openmetrics", str(path))
    done = place.plain(str(place.stepscope), *command)
    assert done.returncode == 0, done.stderr
    assert exposed(path)["stepscope_host_cpu_user_seconds_total"][0]["job"] == "monitor"
