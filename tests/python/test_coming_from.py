"""docs/coming-from.md, typed line by line: the commands, the calls and the files of each row of its tables.

The page is parsed here, and every piece of code in the columns "Here" and "Then" has to be something that is tested:
a command, which runs; Python, which runs; a file, which has to be there afterwards; an option or a name, which has to
belong to what ran. What is none of these fails, and so does a row with nothing in it. Jobs that need a GPU, nsys or
DeepSpeed get the stand-ins of the tests that are about these.
"""

from __future__ import annotations

import contextlib
import gzip
import http.client
import importlib
import inspect
import json
import os
import re
import shlex
import shutil
import signal
import subprocess
import sys
import tempfile
import textwrap
import threading
import time
import warnings
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field, fields
from pathlib import Path
from typing import Any

import pytest
import stand_in_deepspeed
from jobs import code as job_code
from jobs import measured, needs_torch
from test_memory_history import STAND_IN as CUDA_MEMORY
from test_nsys import CUDA as CUDA_RANGES
from test_nsys import NSYS, write_export

import stepscope as package

ROOT = Path(__file__).resolve().parents[2]
PAGE = ROOT / "docs" / "coming-from.md"
TRACES = ROOT / "tests" / "traces"
pytestmark = needs_torch

HEAD = ["There", "Here", "Then"]
NAMES = ["name", "what it stands for"]
CODE = re.compile(r"`([^`]+)`")
COMMAND = re.compile(r"(?:[A-Z][A-Z0-9_]*=\S+ )*(?:stepscope|chakra_[a-z_]+)(?: .+)?")
WITHOUT_CODE = ("none", "nothing to do", "keep it", "no change")

# A training of some steps. What CUDA, nsys and DeepSpeed would do in it comes by variables and arguments.
TRAIN = """
    import os, sys, time, torch
    exec(os.environ.get("STAND_IN", ""))
    torch.manual_seed(0)
    class Net(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.up, self.down = torch.nn.Linear(8, 16), torch.nn.Linear(16, 8)
        def forward(self, x):
            return self.down(torch.relu(self.up(x)))
    net = Net()
    if "first_use_of_cuda" in globals():
        first_use_of_cuda()
    optimizer = torch.optim.SGD(net.parameters(), lr=0.01)
    if "--deepspeed_config" in sys.argv:
        import deepspeed, json
        with open(sys.argv[sys.argv.index("--deepspeed_config") + 1]) as file:
            engine = deepspeed.DeepSpeedEngine(net, optimizer, json.load(file))
    else:
        engine = None
    for number in range(int(os.environ.get("STEPS", "12"))):
        loss = (engine or net)(torch.ones(4, 8)).square().sum()
        if engine:
            engine.backward(loss)
            engine.step()
        else:
            loss.backward()
            optimizer.step()
            optimizer.zero_grad()
        time.sleep(float(os.environ.get("PAUSE", "0.01")))
        if number == 5:
            print("running", flush=True)
    if "run_out" in globals():
        try:
            run_out()
        except torch.OutOfMemoryError:
            print("out of memory")
"""
DEEPSPEED = {
    "enabled": True,
    "profile_step": 1,
    "module_depth": -1,
    "top_modules": 1,
    "detailed": True,
    "recompute_fwd_factor": 0.0,
    "output_file": None,
}
NETWORK = """
topology: [ FullyConnected, Switch ]
npus_count: [ 2, 4 ]
bandwidth: [ 300.0, 25.0 ]
latency: [ 500.0, 5000.0 ]
"""


# The page ---------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Row:
    line: int
    section: str  # its heading of the second level
    there: str
    here: str
    then: str


@dataclass
class Page:
    rows: list[Row] = field(default_factory=list)
    names: list[str] = field(default_factory=list)  # what the lines stand for
    commands: list[str] = field(default_factory=list)  # of the blocks of code
    faults: list[str] = field(default_factory=list)


def cells(text: str) -> list[str]:
    return [cell.strip() for cell in text.strip().removeprefix("|").removesuffix("|").split("|")]


def read_page() -> Page:
    page, section, head, in_block = Page(), "", [""], False
    for number, text in enumerate(PAGE.read_text(encoding="utf-8").splitlines(), 1):
        if text.startswith("```"):
            in_block = not in_block
        elif in_block:
            page.commands.append(text)
        elif text.startswith("## "):
            section = text[3:]
        elif not text.startswith("|"):
            head = []
        elif not head:
            head = cells(text)
            if head not in (HEAD, NAMES):
                page.faults.append(f"{number}: a table with the columns {head}, of which nobody tests the rows")
        elif not re.fullmatch(r"[|: -]+", text):
            found = cells(text)
            if len(found) != len(head):
                page.faults.append(f"{number}: {len(found)} cells")
            elif head == NAMES:
                page.names += CODE.findall(found[0])
                page.names += re.findall(r"\b[A-Z_]{3,}\b", CODE.sub("", found[0]))
            elif head == HEAD:
                page.rows.append(Row(number, section, *found))
    return page


def is_file(text: str) -> bool:
    return re.fullmatch(r"[\w*][\w./*-]*[./][\w./*-]*", text) is not None


# Where the lines are typed ----------------------------------------------------------------------------------------


class Workplace:
    """A folder with all that the lines name, and what came of each command."""

    def __init__(self, stepscope: Path, folder: Path) -> None:
        self.folder = folder
        self.done: dict[str, str] = {}  # command: what is wrong with it, or ""
        self.script = f"train_{os.getpid()}.py"  # nobody else's on this machine
        self.ends = contextlib.ExitStack()
        self.lasting: subprocess.Popen[str] | None = None
        self.untraceable = False  # the kernel lets nobody attach
        self.one_looks_at_it = threading.Lock()
        # The machine's own name of the daemon may be taken; a path of a socket is short.
        self.sockets = self.ends.enter_context(tempfile.TemporaryDirectory(dir="/tmp"))
        tools, python = folder / "path", Path(sys.executable)
        tools.mkdir()
        for name, program in (("stepscope", stepscope.resolve()), ("python", python), ("python3", python)):
            self._program(tools / name, f'#!/bin/sh\nexec "{program}" "$@"\n')
        self._program(tools / "nsys", NSYS.format(python=sys.executable))
        write_export(tools / "export.sqlite")
        ours = ("STEPSCOPE_", "KINETO_", "HAIPROF_", "RANK", "WORLD_SIZE")
        self.environment = {name: text for name, text in os.environ.items() if not name.startswith(ours)}
        self.environment.pop("PYTHONPATH", None)
        self.environment.update(
            OMP_NUM_THREADS="1",
            CUDA_VISIBLE_DEVICES="",
            STEPSCOPE_CACHE="off",
            PATH=f"{tools}:{folder / 'bin'}:{os.environ['PATH']}",
        )
        for name in ("train.py", self.script):
            (folder / name).write_text(job_code(TRAIN))
        (folder / "ds_config.json").write_text(json.dumps({"flops_profiler": DEEPSPEED}))
        (folder / "network.yml").write_text(NETWORK)
        (folder / "stepscope.toml").write_text('out = "stepscope"\n')
        stand_in_deepspeed.write(folder)
        shutil.copy(TRACES / "tiny_rich.json", folder / "trace.json")
        shutil.copytree(TRACES / "two_ranks", folder / "ranks")
        shutil.copy(TRACES / "tiny_snapshot.pickle", folder / "snapshot.pickle")
        with gzip.open(folder / "exported.raw.json.gz", "wt") as out:
            json.dump([[1_000, 1, 4096, 3], [2_000, 1, 512, 5], [3_000, 3, 4096, 3]], out)

    def close(self) -> None:
        self.ends.close()

    @staticmethod
    def _program(path: Path, text: str) -> None:
        path.write_text(text)
        path.chmod(0o755)

    def name_the_run(self) -> None:
        """RUN, and the two files of its rank."""
        (run,) = self.folder.glob("stepscope/job/*")
        (self.folder / "RUN").symlink_to(run)
        execution_trace = min(run.glob("traces/*/*.et.json.gz"))
        shutil.copy(execution_trace, self.folder / "et.json.gz")
        (timeline,) = (path for path in run.glob("traces/*/*.pt.trace.json.gz") if ".stacks." not in path.name)
        shutil.copy(timeline, self.folder / "timeline.json.gz")

    # Commands -----------------------------------------------------------------------------------------------------
    def start(self, command: str, **more: str) -> subprocess.Popen[str]:
        return subprocess.Popen(
            ["bash", "-c", command],
            cwd=self.folder,
            env={**self.environment, **more},
            text=True,
            start_new_session=True,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
        )

    @contextlib.contextmanager
    def job(self, command: str, **more: str) -> Iterator[subprocess.Popen[str]]:
        """A job that has printed that it runs; ended with all that it started, if it has not ended by then."""
        process = self.start(command, STEPS="9000", PAUSE="0.02", **more)
        try:
            assert process.stdout is not None
            if process.stdout.readline() != "running\n":
                raise RuntimeError("a job did not start: " + process.communicate(timeout=10)[1])
            yield process
        finally:
            with contextlib.suppress(ProcessLookupError, subprocess.TimeoutExpired):
                process.terminate()
                process.wait(timeout=10)
            with contextlib.suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)
            process.communicate()

    def run(self, command: str, typed: str = "", **more: str) -> str:
        """What is wrong with it, or "". `typed`: what is typed for it here."""
        process = self.start(typed or command, **more)
        try:
            out, err = process.communicate(timeout=120)
        except subprocess.TimeoutExpired:
            os.killpg(process.pid, signal.SIGKILL)
            process.communicate()
            return "it does not end"
        if "ptrace" in err and process.returncode == 1 and " attach " in command:
            self.untraceable = True  # as in some containers: such rows are left out
            return ""
        allowed = {0, 3} if "--fail-on" in command else {0}
        if process.returncode not in allowed or "Traceback" in err:
            return f"exit code {process.returncode}: {err.strip()[-500:]}"
        return self._empty(command, out)

    def _empty(self, command: str, out: str) -> str:
        """A command that says nothing and writes nothing does nothing."""
        words = shlex.split(command)
        outputs = ("-o", "--html", "--tensorboard", "--output", "--output-file", "--output_filename", "--trace")
        written = [words[at + 1] for at, word in enumerate(words[:-1]) if word in outputs and " run " not in command]
        for name in written:
            pattern = f"{name}*" if "chakra" in words else name
            if name != "-" and not any(path.stat().st_size for path in self.folder.glob(pattern)):
                return f"{name} was not written"
        return "" if out or written or "run" in words or "attach" in words or "monitor" in words else "it says nothing"

    def try_command(self, command: str) -> str:
        if command not in self.done:
            if "PID" in command.split() or " attach " in command or " monitor train.py" in command:
                self.done[command] = self._beside_a_job(command)
            elif " run " in command:
                self.done[command] = self._job_of_its_own(command)
            elif command.startswith("stepscope view "):
                self.done[command] = self._view(command)
            else:
                self.done[command] = self.run(command)
        return self.done[command]

    def try_early(self, command: str) -> None:
        if self.try_command(command) and " run " not in command:
            del self.done[command]

    def _job_of_its_own(self, command: str) -> str:
        more: dict[str, str] = {}
        if " --nsys " in command:
            more["STAND_IN"] = textwrap.dedent(CUDA_RANGES)
        if "memory-history" in command:
            more["STAND_IN"] = CUDA_MEMORY
        if "--time " in command or "HAIPROF_TIME" in command:
            more.update(STEPS="60", PAUSE="0.05")  # three seconds
        if "--trigger" in command:
            return self._triggered(command)
        return self.run(command, **more)

    def _triggered(self, command: str) -> str:
        process = self.start("exec " + command, STEPS="150", PAUSE="0.05")
        assert process.stdout is not None
        process.stdout.readline()
        process.send_signal(signal.SIGUSR2)
        _, err = process.communicate(timeout=120)
        return "" if process.returncode == 0 and "stepscope report" in err else err

    def _beside_a_job(self, command: str) -> str:
        """PID, and train.py, are a job that runs until the end of the test."""
        if "--job " in command:
            folder = Path(shlex.split(command)[shlex.split(command).index("--job") + 1])
            with self.job(f"exec stepscope run --name {folder.name} -- python train.py"):
                return self.run(command)
        with self.one_looks_at_it:
            if self.lasting is None:
                (self.folder / "kineto.conf").write_text("ON_DEMAND_CONFIG_UPDATE_INTERVAL_SECS=1\n")
                kineto = {"KINETO_USE_DAEMON": "1", "KINETO_IPC_SOCKET_DIR": self.sockets}
                self.lasting = self.ends.enter_context(
                    self.job(f"exec python {self.script}", KINETO_CONFIG=str(self.folder / "kineto.conf"), **kineto)
                )
            typed = re.sub(r"\bPID\b", str(self.lasting.pid), command).replace("train.py", self.script)
            return self.run(command, typed, KINETO_IPC_SOCKET_DIR=self.sockets)

    def _view(self, command: str) -> str:
        process = self.start(f"exec {command} --no-browser")
        try:
            assert process.stdout is not None
            address = process.stdout.readline().strip()
            if not address.startswith("http://"):
                return process.communicate(timeout=20)[1]
            host, _, path = address.removeprefix("http://").partition("/")
            connection = http.client.HTTPConnection(host, timeout=30)
            connection.request("GET", "/" + path)
            status = connection.getresponse().status
            connection.close()
            process.send_signal(signal.SIGINT)
            code = process.wait(timeout=20)
            return "" if (status, code) == (200, 0) else f"status {status}, exit code {code}"
        finally:
            if process.poll() is None:
                process.kill()
            process.communicate()


# The pieces of a row ----------------------------------------------------------------------------------------------


class Typist:
    def __init__(self, work: Workplace, page: Page, options: dict[str, str]) -> None:
        self.work, self.page, self.options = work, page, options
        self.names = python_names()
        self.tested = 0
        self.patience_s = 10.0  # with files: a process of its own may still be compressing one

    def row(self, row: Row) -> list[str]:
        here, then = CODE.findall(row.here), CODE.findall(row.then)
        faults = []
        if not here and not row.here.startswith(WITHOUT_CODE):
            faults.append("nothing in the column Here can be tested")
        if row.here.startswith("none") and len(row.here) < 20:
            faults.append("none, without a reason")
        if not then or any(not COMMAND.fullmatch(text) for text in then):
            faults.append("no command in the column Then")
        for text in here + then:
            wrong = self.piece(text, row.section)
            self.tested += 1
            if wrong:
                faults.append(f"`{text}`: {wrong}")
        return faults

    def piece(self, text: str, section: str) -> str:
        if COMMAND.fullmatch(text):
            return self.work.try_command(text)
        if text.startswith("--"):
            return self._option(text, section)
        if is_file(text):
            return self._file(text)
        if re.fullmatch(r"\w+", text):
            return self._word(text)
        return self._python(text)

    def _option(self, text: str, section: str) -> str:
        """Of a command of this section that ran, with these words among its own."""
        option, _, value = text.partition(" ")
        ran = [one for row in self.page.rows if row.section == section for one in CODE.findall(row.here + row.then)]
        for command in ran + self.page.commands:
            words = shlex.split(command) if COMMAND.fullmatch(command) else []
            if option in words:
                following = words[words.index(option) + 1] if value else ""
                if set(value.split(",")) <= set(following.split(",")) or value == following:
                    return self.work.try_command(command)
        return "no command of this part has it"

    def _file(self, name: str) -> str:
        end = time.monotonic() + self.patience_s
        while not any(path.is_dir() or path.stat().st_size > 0 for path in self.work.folder.glob(name)):
            if time.monotonic() > end:
                return "there is no such file"
            time.sleep(0.1)
        return ""

    def _word(self, word: str) -> str:
        """A collector, or a key of the settings of a FLOPS profiler."""
        keys = {one.name for one in fields(importlib.import_module("stepscope.flops").FlopsConfig)}
        listed = re.search(r"--collectors TEXT(.*?)each with", self.options["monitor"], re.DOTALL)
        collectors = re.findall(r"\w+", listed[1]) if listed else []
        return "" if word in keys or word in collectors else "nobody knows what this is"

    def _python(self, text: str) -> str:
        try:
            if text.endswith((".stop_profile()", "memory.step()")):  # what is measured
                self.names["train"]()
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                try:
                    code = compile(text, str(PAGE), "eval")
                except SyntaxError:
                    exec(compile(text, str(PAGE), "exec"), self.names)
                    return ""
                value = eval(code, self.names)
        except Exception as error:
            return f"{type(error).__name__}: {error}"
        unknown = value in (None, "", "n/a") or value != value if "get_" in text else False
        return "gives nothing" if unknown else ""


def python_names() -> dict[str, Any]:
    import torch

    torch.manual_seed(0)
    model = torch.nn.Sequential(torch.nn.Linear(8, 16), torch.nn.ReLU(), torch.nn.Linear(16, 8))
    optimizer = torch.optim.Adam(model.parameters())
    inputs = torch.ones(4, 8)

    generator = torch.nn.Linear(8, 8)
    generator.generate = lambda x: generator(generator(x))

    def train() -> None:
        model(inputs).square().sum().backward()
        optimizer.step()
        optimizer.zero_grad()

    return {
        "torch": torch,
        "stepscope": package,
        "model": model,
        "optimizer": optimizer,
        "inputs": inputs,
        "generator": generator,
        "train": train,
    }


def helps(stepscope: Path, *commands: str) -> dict[str, str]:
    told = {}
    for command in commands:
        done = subprocess.run([str(stepscope), command, "--help"], text=True, capture_output=True, check=True)
        told[command] = done.stdout
    return told


# The tests --------------------------------------------------------------------------------------------------------


@measured
def test_every_line_works(
    stepscope: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    for module in ("pandas", "pyarrow", "matplotlib"):  # Analyzer
        pytest.importorskip(module)
    page = read_page()
    assert len(page.rows) > 150
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("JOB_NAME", "JOB_NAME")
    monkeypatch.setenv("STEPSCOPE_CACHE", "off")
    with contextlib.closing(Workplace(stepscope, tmp_path)) as work:
        faults, tested = type_all(page, work, helps(stepscope, "monitor"))
    with capsys.disabled():
        print(f"{len(page.rows)} rows, {tested} pieces, {len(work.done)} commands", end=" ")
    assert not faults, "\n" + "\n".join(faults)


def type_all(page: Page, work: Workplace, options: dict[str, str]) -> tuple[list[str], int]:
    """What is wrong with the lines, and how many pieces they have."""
    faults = [*page.faults, *filter(None, map(work.try_command, page.commands))]
    if faults:
        return faults, 0
    work.name_the_run()
    typist = Typist(work, page, options)
    for name in page.names:
        here = name.partition("(")[0] in typist.names or (work.folder / name).exists()
        if not here and name not in ("PID", "JOB_NAME"):  # made in the lines themselves
            faults.append(f"{name} stands for nothing")

    pieces = [text for row in page.rows for text in CODE.findall(f"{row.here} {row.then}")]
    jobs = [text for text in pieces if re.match(r"(?:\S+=\S+ )*stepscope (run|attach|monitor) ", text)]
    with ThreadPoolExecutor(3) as several:  # they wait half of the time
        list(several.map(work.try_command, sorted(dict.fromkeys(jobs), key=takes_longest)))
        # What needs nothing of the lines before it; the rest is tried again in its row.
        list(several.map(work.try_early, dict.fromkeys(filter(COMMAND.fullmatch, pieces))))
    for row in page.rows:
        if work.untraceable and re.search(r" attach (?:PID|train)(?!.*daemon)", row.here):
            continue
        faults += [f"docs/coming-from.md:{row.line}: {fault}" for fault in typist.row(row)]
    return faults, typist.tested


def takes_longest(command: str) -> bool:
    """What waits goes first."""
    return not any(word in command for word in ("--trigger", "HAIPROF", "--time", "daemon", "attach"))


def test_names_of_torch_on_the_page_exist() -> None:
    import torch

    for row in read_page().rows:
        for path in re.findall(r"`(?:with )?torch((?:\.\w+)+)", row.there):
            found: Any = torch
            for name in path[1:].split("."):
                with contextlib.suppress(ImportError):
                    importlib.import_module(f"{found.__name__}.{name}") if inspect.ismodule(found) else None
                found = getattr(found, name, None)
                assert found is not None, f"line {row.line}: torch{path}"


def parameters(call: Any) -> set[str]:
    return {name for name in inspect.signature(call).parameters if name not in ("self", "kwargs")}


def methods(kind: type) -> set[str]:
    return {name for name in dir(kind) if not name.startswith("_")}


def test_the_page_is_complete(stepscope: Path) -> None:
    """Of what others have: all that works here by its own name, and all of torch's profiler."""
    import torch

    flops: Any = importlib.import_module("stepscope.flops")
    memory: Any = importlib.import_module("stepscope.memory")
    internevo: Any = importlib.import_module("stepscope.internevo")
    observer, profile = torch.profiler.ExecutionTraceObserver, torch.profiler.profile
    told = helps(stepscope, "run", "chakra_trace_link", "chakra_converter", "chakra_jsonizer", "chakra_visualizer")
    haiprof = (ROOT / "src" / "collect" / "settings_haiprof.cc").read_text()
    wanted = {
        "torch.profiler": set(torch.profiler.__all__)
        | parameters(profile.__init__)
        | parameters(torch.profiler.schedule)
        | parameters(torch.profiler.tensorboard_trace_handler)
        | methods(profile) - {"profiler"}
        | methods(observer),
        "DeepSpeed": (methods(flops.FlopsProfiler) | set(flops.__all__) | parameters(flops.get_model_profile))
        - {"begin", "end_when", "figures", "report", "running", "text", "Figures", "write_report"}
        | {one.name for one in fields(flops.FlopsConfig)},
        "InternEvo": set(internevo.__all__) | methods(memory.SimpleMemoryProfiler) - {"folder"},
        "options": set(re.findall(r"(?m)^  (--[a-z-]+)(?: \S+)?\s+(?:Megatron|InternEvo|As torch)", told["run"])),
        "Chakra": {
            option
            for command, text in told.items()
            if command.startswith("chakra")
            for option in re.findall(r"(?<=[ ,])(--[a-z_-]+)", text.partition("Examples")[0])
        }
        - {"--help"},
        "haiprof": set(re.findall(r"HAIPROF_[A-Z]+(?=\")", haiprof)) | set(re.findall(r'Recorder\{"(\w+)"', haiprof)),
        "HTA": set(re.findall(r"(?m)^\w+$", (ROOT / "src" / "compat" / "hta" / "analyses.list").read_text())),
    }
    text = PAGE.read_text(encoding="utf-8")
    for whose, names in wanted.items():
        assert names, whose
        missing = [name for name in sorted(names) if not re.search(rf"(?<![\w-]){re.escape(name)}(?![\w-])", text)]
        assert not missing, f"of {whose} the page does not have {', '.join(missing)}"


def test_a_line_that_nobody_can_test_fails(tmp_path: Path, stepscope: Path) -> None:
    typist = Typist(Workplace(stepscope, tmp_path), Page(), helps(stepscope, "monitor"))
    typist.patience_s = 0
    for here, said in (
        ("all of it", "nothing in the column Here"),
        ("none", "without a reason"),
        ("`nonsense`", "nobody knows"),
        ("`no/such.file`", "no such file"),
        ("`--no-such-option`", "no command of this part"),
        ("`stepscope report nowhere.json`", "exit code 1"),
        ("`stepscope.nowhere()`", "AttributeError"),
    ):
        (first, *_) = typist.row(Row(1, "", "there", here, "`stepscope schema steps`"))
        assert said in first
    assert typist.row(Row(1, "", "there", "`stepscope schema`", "")) == ["no command in the column Then"]
