#!/usr/bin/env python3
"""What sampling the machine costs, in CPU time.

    bench/telemetry_cost.py [--rounds N] [--seconds S]

First `stepscope monitor` beside a training, at 10 and at 100 samples a second, against bare reads of its files; then
the same training under `stepscope run` with telemetry and without, in turn.
"""

from __future__ import annotations

import argparse
import os
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from recording_cost import STEPSCOPE, Training

READS = 15  # in a tick, that the bars are of
COLLECTORS = "cpu,memory,io,cgroup,pressure,network"  # what every machine has, but for those that are sampled seldom
THREAD = "stepscope-tele"


def samplers(pid: int) -> list[Path]:
    """The threads that sample."""
    return [task for task in Path(f"/proc/{pid}/task").iterdir() if (task / "comm").read_text().startswith(THREAD)]


def sampler_ns(pid: int) -> int:
    """CPU time of the threads that sample, in ns."""
    return sum(int((task / "schedstat").read_text().split()[0]) for task in samplers(pid))


def sampler_reads(pid: int) -> int:
    """How often they called read or pread."""
    lines = (line.split() for task in samplers(pid) for line in (task / "io").read_text().splitlines())
    return sum(int(words[1]) for words in lines if words[0] == "syscr:")


def sampled_files(pid: int) -> list[str]:
    links = [os.readlink(f"/proc/{pid}/fd/{fd}") for fd in os.listdir(f"/proc/{pid}/fd")]
    return [link for link in links if link.startswith(("/proc/", "/sys/")) and not link.endswith(":")]


def bare_ns(files: list[str], interval_ms: int, seconds: float) -> float:
    """CPU time of one pread of such a file, kept open, at the same rhythm: caches are as cold."""
    opened = [os.open(file, os.O_RDONLY) for file in files]
    spent: list[int] = []
    for _ in range(int(seconds * 1000 / interval_ms)):
        time.sleep(interval_ms / 1000)
        began = time.thread_time_ns()
        for file in opened:
            os.pread(file, 8192, 0)
        spent.append(time.thread_time_ns() - began)
    for file in opened:
        os.close(file)
    return statistics.mean(spent) / len(opened)


def beside(job: int, interval_ms: int, seconds: float, out: str) -> None:
    command = [STEPSCOPE, "monitor", str(job), "--collectors", COLLECTORS, "--interval", f"{interval_ms}ms"]
    command += ["--time", str(seconds + 6), "--out", out]
    with subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL) as monitor:
        time.sleep(3)  # ranks are looked for at the start
        began, first, reads_before = time.monotonic(), sampler_ns(monitor.pid), sampler_reads(monitor.pid)
        time.sleep(seconds)
        spent, passed = sampler_ns(monitor.pid) - first, time.monotonic() - began
        reads = (sampler_reads(monitor.pid) - reads_before) / (passed * 1000 / interval_ms)
        bare = bare_ns(sampled_files(monitor.pid), interval_ms, 2)  # some are the sampler's own
        monitor.terminate()
    core = spent / passed / 1e9
    tick = spent / (passed * 1000 / interval_ms)
    bar = 0.1 if interval_ms >= 100 else 1.0
    print(
        f"  every {interval_ms} ms: {reads:.1f} reads a tick, {100 * core:.3f} % of a core; with {READS} "
        f"{100 * core * READS / reads:.3f} % (wanted <= {bar} %); {tick / 1e3:.0f} us a tick, "
        f"{tick / reads / bare:.2f} times as many bare preads of its files ({bare / 1e3:.1f} us each)"
    )


def training(stop: str) -> None:
    """Steps until the file is there; prints CPU time per step in ns."""
    job = Training()
    job.cpu_ns(20)
    print("running", flush=True)
    steps = []
    while not os.path.exists(stop):
        steps.append(job.cpu_ns(1))
    print(statistics.median(steps), sum(steps), flush=True)


def under_run(telemetry: str, seconds: float, folder: Path) -> tuple[float, float]:
    """CPU per step of the job, and CPU of the sampler over that of the job."""
    stop = folder / "stop"
    stop.unlink(missing_ok=True)
    options = ["--telemetry", telemetry, "--trigger", "command", "--out", str(folder / "runs")]
    command = [STEPSCOPE, "run", *options, "--", sys.executable, __file__, "--job", str(stop)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True) as job:
        assert job.stdout is not None
        assert job.stdout.readline() == "running\n"
        try:
            first = sampler_ns(job.pid)
            time.sleep(seconds)
            spent = sampler_ns(job.pid) - first
        finally:
            stop.touch()
        step, whole = (float(word) for word in job.stdout.readline().split())
    return step, spent / whole


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--seconds", type=float, default=10)
    parser.add_argument("--job", help=argparse.SUPPRESS)
    args = parser.parse_args()
    if args.job:
        training(args.job)
        return 0
    print(f"{os.cpu_count()} cores, load {os.getloadavg()[0]:.1f}; CPU time")
    with tempfile.TemporaryDirectory(prefix="stepscope-bench-") as name:
        folder = Path(name)
        stop = folder / "stop"
        print("a sampler beside a training")
        command = [sys.executable, __file__, "--job", str(stop)]
        with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as job:
            assert job.stdout is not None
            job.stdout.readline()
            try:
                for interval_ms in (100, 10):
                    beside(job.pid, interval_ms, args.seconds, str(folder / "runs"))
            finally:
                stop.touch()
                job.communicate()
        pairs = []
        shares = []
        for number in range(args.rounds):
            steps = {}
            for telemetry in ("default", "off") if number % 2 else ("off", "default"):
                steps[telemetry], share = under_run(telemetry, args.seconds / 2, folder)
                if telemetry == "default":
                    shares.append(share)
            pairs.append(steps["default"] / steps["off"])
        print("the job under `stepscope run`")
        print(f"  CPU of the sampler over that of the job: {100 * statistics.median(shares):.3f} % (wanted < 0.5 %)")
        print(
            f"  CPU per step with telemetry over without: {statistics.median(pairs):.4f} "
            f"[{min(pairs):.4f} {max(pairs):.4f}] over {args.rounds} rounds"
        )
    return 0


if __name__ == "__main__":
    sys.exit(main())
