"""`stepscope run --nsys` with stand-ins for nsys and for CUDA: the command line, what the hooks tell nsys, the report.

The stand-in of nsys keeps what it was called with, runs the job and exports a small database. That of CUDA is put into
the job's own torch, since a torch that is built for the CPU has neither NVTX nor cudaProfilerStart. It has ITT, which
torch observes its ops for in the same way as for NVTX: a collector of that kind sees the ranges as nsys would.
"""

from __future__ import annotations

import json
import shutil
import sqlite3
import subprocess
import sys
import textwrap
from pathlib import Path
from typing import Any

import pytest
from jobs import TRAIN, Job, Place, needs_torch

NSYS = """\
#!{python} -I
import json, os, shutil, subprocess, sys
here = os.path.dirname(os.path.abspath(__file__))
words = sys.argv[1:]
if words[0] == "export":
    shutil.copyfile(os.path.join(here, "export.sqlite"), words[words.index("-o") + 1])
    sys.exit(0)
first = next(i for i, word in enumerate(words) if i > 0 and not word.startswith("-"))
with open(os.path.join(here, "called.json"), "w") as out:
    json.dump([words[:first], words[first:]], out)
done = subprocess.run(words[first:])
if not os.environ.get("NO_REPORT"):
    report = next(word for word in words if word.startswith("--output=")).partition("=")[2].replace("%%", "%")
    with open(report + ".nsys-rep", "w") as out:
        out.write("NVIDIA Tegra Profiler Report 1.\\n")
sys.exit(done.returncode)
"""

# A torch that seems to have a GPU; says on stdout what would reach nsys.
CUDA = """
    import sys, torch
    class Emit:
        def __init__(self, record_shapes): self.shapes = record_shapes
        def __enter__(self): print("emit_nvtx", self.shapes)
        def __exit__(self, *why): print("emit_nvtx ends")
    class Runtime:
        cudaProfilerStart = staticmethod(lambda: print("start"))
        cudaProfilerStop = staticmethod(lambda: print("stop"))
    class Range:
        def __init__(self, name): self.name = name
        def __enter__(self): print(self.name)
        def __exit__(self, *why): pass
    torch.cuda.is_initialized = lambda: True
    torch.cuda.synchronize = lambda: None
    torch.cuda.get_device_name = lambda: "stand-in"
    torch.cuda.cudart = lambda: Runtime
    torch.autograd.profiler.emit_nvtx = Emit
    torch.autograd.profiler.record_function = Range
    torch._C._profiler._RecordFunctionFast = Range
    def no_profiler(*args, **kwargs): raise AssertionError("torch.profiler was started")
    torch.profiler._KinetoProfile.start_trace = no_profiler
"""

# A collector of ITT's ranges: one line for each begin and end, into the file that RANGES names.
ITT = """
    #include <stdio.h>
    #include <stdlib.h>
    #include <string.h>
    struct id { unsigned long long parts[3]; };
    struct handle { const char *name; void *wide; int extra; void *more; struct handle *next; };
    struct domain { volatile int flags; const char *name; void *wide; int extra; void *more; struct domain *next; };
    const char *__itt_api_version(void) { return "3.0"; }
    struct domain *__itt_domain_create(const char *name) {
      struct domain *made = calloc(1, sizeof *made);
      made->flags = 1;
      made->name = strdup(name);
      return made;
    }
    struct handle *__itt_string_handle_create(const char *name) {
      struct handle *made = calloc(1, sizeof *made);
      made->name = strdup(name);
      return made;
    }
    static void say(const char *line) {
      FILE *out = fopen(getenv("RANGES"), "a");
      fprintf(out, "%s\\n", line);
      fclose(out);
    }
    void __itt_task_begin(const struct domain *d, struct id a, struct id b, struct handle *h) { say(h->name); }
    void __itt_task_end(const struct domain *d) { say("end"); }
"""


def ranges() -> list[tuple[int, int, str]]:
    """Two steps of a model of one layer, as emit_nvtx names its ranges."""
    found = []
    for step in (10, 11):
        at = (step - 10) * 100_000
        found.append((at, at + 90_000, f"ProfilerStep#{step}, op_id = {step}"))
        found.append((at + 1_000, at + 40_000, "stepscope.module: layers.0 (Linear), op_id = 5"))
        found.append((at + 2_000, at + 30_000, "aten::linear, seq = 3, op_id = 6, sizes = [[4, 8], [8, 8], [8]]"))
    return found


def write_export(path: Path) -> None:
    thread = 1 << 48 | 7 << 24 | 7
    with sqlite3.connect(path) as database:
        database.executescript(
            "CREATE TABLE StringIds (id INTEGER PRIMARY KEY, value TEXT);"
            "INSERT INTO StringIds VALUES (1, 'gemm'), (2, 'cudaLaunchKernel_v7000');"
            "CREATE TABLE META_DATA_EXPORT (name TEXT, value TEXT);"
            "INSERT INTO META_DATA_EXPORT VALUES ('EXPORT_SCHEMA_VERSION', '3.17');"
            "CREATE TABLE CUPTI_ACTIVITY_KIND_KERNEL (start INT, end INT, deviceId INT, contextId INT, streamId INT,"
            " correlationId INT, globalPid INT, demangledName INT);"
            "CREATE TABLE CUPTI_ACTIVITY_KIND_RUNTIME (start INT, end INT, eventClass INT, globalTid INT,"
            " correlationId INT, nameId INT);"
            "CREATE TABLE NVTX_EVENTS (start INT, end INT, eventType INT, text TEXT, globalTid INT, domainId INT);"
        )
        for number, (start, end, name) in enumerate(ranges()):
            database.execute("INSERT INTO NVTX_EVENTS VALUES (?, ?, 59, ?, ?, 0)", (start, end, name, thread))
            if not name.startswith("aten"):
                continue
            call = (start + 1_000, start + 2_000, 0, thread, number, 2)
            database.execute("INSERT INTO CUPTI_ACTIVITY_KIND_RUNTIME VALUES (?, ?, ?, ?, ?, ?)", call)
            kernel = (start + 5_000, start + 15_000, 0, 1, 7, number, 1 << 48 | 7 << 24, 1)
            database.execute("INSERT INTO CUPTI_ACTIVITY_KIND_KERNEL VALUES (?, ?, ?, ?, ?, ?, ?, ?)", kernel)


class Nsys:
    """The stand-in, first in PATH."""

    def __init__(self, place: Place) -> None:
        self.place, self.folder = place, place.folder / "bin"
        self.folder.mkdir()
        (self.folder / "nsys").write_text(NSYS.format(python=sys.executable))
        (self.folder / "nsys").chmod(0o755)
        write_export(self.folder / "export.sqlite")
        place.environment["PATH"] = f"{self.folder}:{place.environment['PATH']}"

    def called(self) -> tuple[list[str], list[str]]:
        own, job = json.loads((self.folder / "called.json").read_text())
        return own, job

    def run(self, *command: str, options: tuple[str, ...] = (), **more: str) -> Job:
        return self.place.run(*command, options=("--nsys", *options), **more)


@pytest.fixture
def nsys(place: Place) -> Nsys:
    return Nsys(place)


def report(place: Place, folder: Path, *only: str) -> dict[str, Any]:
    done = subprocess.run(
        [str(place.stepscope), "report", "--json", "--only", ",".join(only), str(folder)],
        capture_output=True,
        text=True,
        timeout=60,
        env=place.environment,
    )
    assert done.returncode == 0, done.stderr
    found: dict[str, Any] = json.loads(done.stdout)
    return found


def train(place: Place, *more: str) -> str:
    return place.script(CUDA + "".join(more) + TRAIN)


# Without nsys, and before the job starts --------------------------------------------------------------------------


@pytest.mark.skipif(Path("/opt/nvidia").exists(), reason="an nsys may be installed")
def test_without_nsys_a_sentence_names_the_alternative(place: Place) -> None:
    (place.folder / "empty").mkdir()
    job = place.run("/bin/echo", "ran", options=("--nsys",), PATH=str(place.folder / "empty"))
    assert (job.code, job.stdout, len(job.ours)) == (2, "", 1)
    assert "there is no nsys" in job.ours[0]
    assert "Leave out --nsys: torch.profiler" in job.ours[0]
    assert not place.out.exists()


@pytest.mark.parametrize(
    ("options", "said"),
    [
        (("--nsys", "--budget", "1%"), "do not go together"),
        (("--nsys-options", "-s cpu"), "Add --nsys"),
        (("--nsys", "--nsys-options", "-o other"), "the report's place is in the run folder"),
        (("--nsys", "--nsys-options", "-e 'A=b"), "a quote is not closed"),
    ],
)
def test_what_does_not_fit_is_refused(nsys: Nsys, options: tuple[str, ...], said: str) -> None:
    job = nsys.place.run("echo", "ran", options=options)
    assert (job.code, job.stdout) == (2, "")
    assert said in job.ours[0]


# The command line -------------------------------------------------------------------------------------------------


def test_command_line(nsys: Nsys) -> None:
    job = nsys.run("echo", "a b", "--", options=("--steps", "10:15"))
    assert (job.code, job.stdout) == (0, "a b --\n")
    own, command = nsys.called()
    assert command == ["echo", "a b", "--"]
    assert job.folder is not None
    assert own == [
        "profile",
        "--trace=nvtx,cuda",
        "--sample=none",
        "--cpuctxsw=none",
        "--capture-range=cudaProfilerApi",
        "--capture-range-end=stop",
        "--wait=primary",
        "--show-output=true",
        f"--output={job.folder}/nsys/report",
    ]
    assert "steps 10-14 with nsys" in job.ours[0]


@pytest.mark.parametrize(
    ("options", "end"),
    [
        ((), "stop"),
        (("--seconds", "0:2"), "stop"),
        (("--steps", "10:15,40:45"), "repeat:2"),
        (("--schedule", "wait=1,warmup=0,active=2,repeat=3"), "repeat:3"),
        (("--schedule", "wait=1,warmup=0,active=2"), "repeat"),
        (("--trigger", "command"), "repeat"),
    ],
)
def test_as_many_capture_ranges_as_windows(nsys: Nsys, options: tuple[str, ...], end: str) -> None:
    assert nsys.run("true", options=options).code == 0
    assert f"--capture-range-end={end}" in nsys.called()[0]


def test_further_options_win(nsys: Nsys) -> None:
    given = "--gpu-metrics-devices=all --env-var='A=b c' -scpu --trace=cuda"
    assert nsys.run("true", options=("--nsys-options", given)).code == 0
    own = nsys.called()[0]
    assert own[-4:] == ["--gpu-metrics-devices=all", "--env-var=A=b c", "-scpu", "--trace=cuda"]
    assert not {"--sample=none", "--trace=nvtx,cuda"} & set(own)


def test_from_variable_and_file(nsys: Nsys) -> None:
    (nsys.place.folder / "stepscope.toml").write_text('nsys-options = "--stats=true"\n')
    assert nsys.place.run("true", STEPSCOPE_NSYS="1").code == 0
    assert "--stats=true" in nsys.called()[0]


def test_output_and_exit_code_are_the_job_s(nsys: Nsys) -> None:
    program = "import sys; print(sys.stdin.read()); print('err', file=sys.stderr); sys.exit(3)"
    done = subprocess.run(
        nsys.place.command(sys.executable, "-c", program, options=("--nsys",)),
        input="hello",
        cwd=nsys.place.folder,
        env=nsys.place.environment,
        capture_output=True,
        text=True,
        timeout=60,
    )
    assert (done.returncode, done.stdout) == (3, "hello\n")
    assert "err" in done.stderr.splitlines()


def test_no_report_is_said(nsys: Nsys) -> None:
    job = nsys.run(sys.executable, "-c", "pass", NO_REPORT="1")
    assert "nothing was recorded" in job.ours[-1]
    assert "nsys left no report" in job.ours[-1]


# What the hooks tell nsys -----------------------------------------------------------------------------------------


@needs_torch
def test_ranges_and_capture_range_of_the_chosen_steps(nsys: Nsys) -> None:
    script = train(nsys.place)
    job = nsys.run(sys.executable, script, "8", options=("--steps", "3:5"))
    assert job.code == 0, job.stderr
    lines = [line for line in job.stdout.splitlines() if not line[0].isdigit()]
    modules = [
        f"stepscope.module: {name}" for name in ("Sequential (Sequential)", "0 (Linear)", "1 (ReLU)", "2 (Linear)")
    ]
    step = ["forward", *modules, "backward"]
    lines = [line for line in lines if not line.startswith("Optimizer.")]
    steps = ["ProfilerStep#3", *step, "ProfilerStep#4", *step]
    assert lines == ["emit_nvtx True", "start", *steps, "emit_nvtx ends", "stop"]
    (process,) = job.manifest()["processes"]
    (window,) = process["windows"]
    assert (window["recorder"], window["steps"], window["complete"]) == ("nsys", [3, 4], True)
    assert [module["path"] for module in window["modules"]] == ["Sequential", "0", "1", "2"]
    assert not process["problems"]
    assert not job.traces()
    assert "recorded steps 3-4 of 8" in job.ours[-1]


@needs_torch
@pytest.mark.skipif(shutil.which("cc") is None, reason="there is no C compiler")
def test_ops_steps_and_modules_nest(nsys: Nsys) -> None:
    """With torch's own observers at work."""
    folder = nsys.place.folder
    (folder / "itt.c").write_text(textwrap.dedent(ITT))
    subprocess.run(["cc", "-shared", "-fPIC", "-o", "libitt.so", "itt.c"], cwd=folder, check=True, timeout=60)
    real = """
        torch.autograd.profiler.record_function, torch._C._profiler._RecordFunctionFast = own_ranges
        def emit(record_shapes):
            return torch.autograd.profiler.emit_itt(record_shapes=record_shapes)
        torch.autograd.profiler.emit_nvtx = emit
    """
    before = (
        "import torch\nown_ranges = torch.autograd.profiler.record_function, torch._C._profiler._RecordFunctionFast\n"
    )
    script = nsys.place.script(before + textwrap.dedent(CUDA) + textwrap.dedent(real) + textwrap.dedent(TRAIN))
    more = {"INTEL_LIBITTNOTIFY64": str(folder / "libitt.so"), "INTEL_ITTNOTIFY_GROUPS": "all"}
    job = nsys.run(sys.executable, script, "8", options=("--steps", "3:5"), RANGES=str(folder / "ranges"), **more)
    assert job.code == 0, job.stderr
    stacks: list[tuple[str, ...]] = []  # of each range, itself last
    open_ranges: list[str] = []
    for line in (folder / "ranges").read_text().splitlines():
        if line == "end":
            open_ranges.pop()
        else:
            open_ranges.append(line)
            stacks.append(tuple(open_ranges))
    assert not open_ranges
    assert [stack[0] for stack in stacks if len(stack) == 1] == ["ProfilerStep#3", "ProfilerStep#4"]
    linear = "stepscope.module: 0 (Linear)"
    assert sum(linear in stack and stack[-2:] == ("aten::linear", "aten::addmm") for stack in stacks) == 2
    assert any(stack[-1] == "AddmmBackward0" and stack[1] == "backward" for stack in stacks)
    assert any("Optimizer.step#SGD.step" in stack and stack[-1].startswith("aten::") for stack in stacks)


@needs_torch
def test_several_windows_and_the_end_of_the_job(nsys: Nsys) -> None:
    job = nsys.run(sys.executable, train(nsys.place), "8", options=("--steps", "1:2,4:5,7:20", "--no-shapes"))
    told = [line for line in job.stdout.splitlines() if line.split("#")[0] in {"start", "stop", "ProfilerStep"}]
    first, second = ["start", "ProfilerStep#1", "stop"], ["start", "ProfilerStep#4", "stop"]
    assert told == [*first, *second, "start", "ProfilerStep#7", "ProfilerStep#8", "stop"]
    assert "emit_nvtx False" in job.stdout


@needs_torch
def test_from_when_the_gpu_is_used(nsys: Nsys) -> None:
    late = "    used = []\n    torch.cuda.is_initialized = lambda: bool(used)\n"
    script = train(nsys.place, late)
    text = Path(script).read_text().replace("print(step, loss.item())", "used.append(step)")
    Path(script).write_text(text)
    job = nsys.run(sys.executable, script, "5", options=("--steps", "0:3"))
    told = [line for line in job.stdout.splitlines() if line.split("#")[0] in {"start", "stop", "ProfilerStep"}]
    assert told == ["start", "ProfilerStep#2", "stop"]


@needs_torch
def test_the_last_process_that_records_stops(nsys: Nsys) -> None:
    """The first stop of any process would end the report of all."""
    script = nsys.place.script(
        textwrap.dedent(CUDA)
        + textwrap.dedent("""
            import os, sys, time
            first = os.environ["RANK"] == "0"
            def wait_for(path):
                while not os.path.exists(path):
                    time.sleep(0.01)
            model = torch.nn.Linear(2, 2)
            optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
            for step in range(4):
                if step == 2:  # both record
                    open(f"recording{os.environ['RANK']}", "w").close()
                    wait_for("recording1" if first else "recording0")
                if step == 2 and not first:
                    wait_for("ended0")
                model(torch.ones(2)).sum().backward()
                optimizer.step()
            open(f"ended{os.environ['RANK']}", "w").close()
        """)
    )
    both = f"""
        RANK=0 WORLD_SIZE=2 "{sys.executable}" "{script}" >rank0 &
        RANK=1 WORLD_SIZE=2 "{sys.executable}" "{script}" >rank1 &
        wait
    """
    job = nsys.run("sh", "-c", both, options=("--steps", "2:3"))
    assert job.code == 0, job.stderr
    said = [(nsys.place.folder / f"rank{rank}").read_text().splitlines() for rank in (0, 1)]
    assert [("start" in lines, "stop" in lines) for lines in said] == [(True, False), (True, True)]
    assert [f"stepscope.rank: {rank} of 2" in lines for rank, lines in enumerate(said)] == [True, True]
    assert "in 2 processes" in job.ours[-1]


@needs_torch
def test_a_torch_without_cuda_says_so_once(nsys: Nsys) -> None:
    plain = nsys.place.plain(sys.executable, nsys.place.script(TRAIN), "20")
    job = nsys.run(sys.executable, nsys.place.script(TRAIN), "20", NO_REPORT="1", CUDA_VISIBLE_DEVICES="")
    assert (job.code, job.stdout, job.others) == (0, plain.stdout, plain.stderr.splitlines())
    (problem,) = job.manifest()["processes"][0]["problems"]
    assert "nsys" in problem
    assert problem in job.ours[-1]


def test_what_nsys_has_not_is_said(nsys: Nsys) -> None:
    job = nsys.run("true", options=("--with", "shapes,memory,stack"))
    assert "with nsys, which records no memory,stack" in job.ours[0]
    assert "with=shapes nsys=on" in job.manifest()["capture"]


# The report -------------------------------------------------------------------------------------------------------


@needs_torch
def test_the_report_opens(nsys: Nsys) -> None:
    job = nsys.run(sys.executable, train(nsys.place), "16")
    assert job.folder is not None
    assert sorted(path.name for path in (job.folder / "nsys").iterdir()) == ["report.nsys-rep", "report.sqlite"]
    assert "Next: stepscope report" in job.ours[-1]
    found = json.dumps(report(nsys.place, job.folder, "steps", "kernels", "operators"))
    assert "gemm" in found
    assert "aten::linear" in found
    assert "layers.0" in json.dumps(report(nsys.place, job.folder, "annotations"))


def test_of_several_windows_one_is_opened(nsys: Nsys) -> None:
    """They are of the same processes, and would look like further ranks."""
    folder = nsys.place.folder / "run" / "nsys"
    folder.mkdir(parents=True)
    (folder.parent / "run.json").write_text('{"schema_version": 1}')
    for number in (1, 2):
        write_export(folder / f"report.{number}.sqlite")
        (folder / f"report.{number}.nsys-rep").write_text("NVIDIA Tegra Profiler Report 1.\n")
    found = report(nsys.place, folder.parent, "quality")
    assert len(found["input"]["files"]) == 1
    assert "nsys recorded 2 windows" in json.dumps(found)
