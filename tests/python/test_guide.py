"""The guides tell the truth: what they say to type runs or is known to the program, and what they quote is printed.

A page's `sh` blocks are one script, its `python` blocks one program; both run with the train.py that first-run.md
shows, and the `text` block below an `sh` block must be in what was printed. Every error of troubleshooting.md is
provoked here or, where that takes another machine, found in the sources. Jobs that only have to fail use a stand-in for
torch.
"""

from __future__ import annotations

import contextlib
import errno
import functools
import importlib.util
import os
import re
import signal
import subprocess
import sys
import textwrap
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path

import pytest
from jobs import needs_torch, together
from test_faults import STAND_IN
from viewer import Viewer

import check_docs

ROOT = Path(__file__).resolve().parents[2]
GUIDE = ROOT / "docs" / "guide"
PAGES = sorted(path.name for path in GUIDE.glob("*.md"))
LONGEST_S = 240
HAS_TORCH = importlib.util.find_spec("torch") is not None
HAS_PANDAS = all(importlib.util.find_spec(name) is not None for name in ("pandas", "pyarrow"))

# Slurm is on no machine of ours: tasks know each other by these variables alone.
SRUN = """
    import os, subprocess, sys
    assert sys.argv[1] == "-n"
    slurm = {"SLURM_JOB_ID": "4242", "SLURM_STEP_ID": "0", "SLURM_NTASKS": sys.argv[2]}
    tasks = [
        subprocess.Popen(sys.argv[3:], env={**os.environ, **slurm, "SLURM_PROCID": str(number)})
        for number in range(int(sys.argv[2]))
    ]
    sys.exit(max(task.wait() for task in tasks))
"""


# Where a page tells a reader to wait, it is until the job has done a step, however busy the machine is.
UNTIL_IT_RUNS = """
sleep() {
    for _ in {1..1200}; do compgen -G "runs/*/*/telemetry/*.ring" >/dev/null && break; command sleep 0.1; done
    command sleep 0.5
}
"""


def blocks_of(page: str) -> list[tuple[str, str]]:
    """(language, text) of each fenced block, also of those within lists."""
    found = re.findall(r"(?ms)^( *)```(\w*)\n(.*?)^\1```", (GUIDE / page).read_text())
    return [(language, textwrap.dedent(text)) for _, language, text in found]


def is_train(block: tuple[str, str]) -> bool:
    return block[0] == "python" and block[1].startswith("# train.py\n")


NOTEBOOK = "notebooks.md"
PAGES_TO_RUN = [page for page in PAGES if page == NOTEBOOK or any(block[0] == "sh" for block in blocks_of(page))]


# A cell within the block of another, as after an interrupted one.
INTERRUPTED = """
try:
    with stepscope.profile(name="cell"), stepscope.profile(name="cell"):
        pass
except RuntimeError as refused:
    print(refused)
"""


class Machine:
    """A folder for each page or provocation, and commands as a reader types them."""

    def __init__(self, stepscope: Path, folder: Path) -> None:
        self.stepscope, self.folder = stepscope, folder
        programs = folder / "bin"
        programs.mkdir()
        (programs / "stepscope").symlink_to(stepscope)
        (programs / "srun").write_text(f"#!{sys.executable}\n{textwrap.dedent(SRUN)}")
        (programs / "srun").chmod(0o755)
        self.train = next(text for language, text in blocks_of("first-run.md") if is_train((language, text)))
        others = ("STEPSCOPE_", "KINETO_", "SLURM_", "PYTHON", "VIRTUAL_ENV")
        kept = {name: value for name, value in os.environ.items() if not name.startswith(others)}
        self.environment = {
            **kept,
            "PATH": f"{programs}:{Path(sys.executable).parent}:{os.environ['PATH']}",
            "PYTHONPATH": str(ROOT / "python"),
            "PYTHONPYCACHEPREFIX": os.environ.get("PYTHONPYCACHEPREFIX", str(folder / "pycache")),
            "XDG_CACHE_HOME": str(folder / "cache"),
            "LIBRARY": str(stepscope.parent / "libstepscope.so"),
            "STEPSCOPE_LIB": str(stepscope.parent / "libstepscope.so"),
            "OMP_NUM_THREADS": "1",
            "LC_ALL": "C.UTF-8",
            "COLUMNS": "200",
            "TRACES": str(ROOT / "tests" / "traces"),
            "PACKAGE": str(ROOT / "python" / "stepscope"),
            "TOOLS": str(ROOT / "tools"),
        }

    def place(self, name: str) -> Path:
        folder = self.folder / name
        folder.mkdir(exist_ok=True)
        begins = textwrap.dedent(together(2)) if name == "slurm.md" else ""
        (folder / "train.py").write_text(self.train.replace("layers = ", begins + "layers = ", 1))
        return folder

    def run(self, name: str, command: list[str], **more: str) -> tuple[int, str]:
        """Exit code, and what it printed on both streams together. What it leaves running is ended."""
        folder = self.place(name)
        with (folder / ".printed").open("w+") as printed:
            process = subprocess.Popen(
                command,
                cwd=folder,
                env={**self.environment, **more},
                start_new_session=True,
                stdin=subprocess.DEVNULL,
                stdout=printed,
                stderr=subprocess.STDOUT,
            )
            try:
                code = process.wait(timeout=LONGEST_S)
            finally:
                with contextlib.suppress(ProcessLookupError):
                    os.killpg(process.pid, signal.SIGKILL)
            printed.seek(0)
            return code, printed.read()

    def shell(self, name: str, script: str, **more: str) -> tuple[int, str]:
        return self.run(name, ["bash", "-euc", script], **more)


class Ran:
    """What pages and provocations printed, each run once, two at a time. Alone, all begin with the first that is asked
    for, the longest first; beside other workers of pytest each runs where it is asked for."""

    def __init__(self, machine: Machine) -> None:
        self.machine = machine
        self.pool = ThreadPoolExecutor(2)
        self.futures: dict[str, Future[tuple[int, str]]] = {}
        self.stand_in = machine.folder / "stand_in"
        for name, text in STAND_IN.items():
            (self.stand_in / name).parent.mkdir(parents=True, exist_ok=True)
            (self.stand_in / name).write_text(text)
        if HAS_TORCH and "PYTEST_XDIST_WORKER" not in os.environ:
            for name in [*sorted(PAGES_TO_RUN, key=lambda page: page != "cluster.md"), *WITH_TORCH, *WITHOUT_TORCH]:
                self.begin(name)

    def __getitem__(self, name: str) -> tuple[int, str]:
        return self.begin(name).result()

    def begin(self, name: str) -> Future[tuple[int, str]]:
        if name not in self.futures:
            self.futures[name] = self.pool.submit(self.run, name)
        return self.futures[name]

    def run(self, name: str) -> tuple[int, str]:
        if name in WITH_TORCH:
            return self.machine.shell(name, WITH_TORCH[name])
        if name in WITHOUT_TORCH:
            path = f"{self.stand_in}:{self.machine.environment['PYTHONPATH']}"
            return self.machine.shell(name, WITHOUT_TORCH[name], PYTHONPATH=path)
        blocks = [block for block in blocks_of(name) if not is_train(block)]
        if name == NOTEBOOK:
            cells = [text for language, text in blocks if language == "python"]
            return self.machine.run(name, [sys.executable, "-c", "\n".join([*cells, INTERRUPTED])])
        return self.machine.shell(
            name, UNTIL_IT_RUNS + "\n".join(text for language, text in blocks if language == "sh")
        )


@pytest.fixture(scope="module")
def machine(stepscope: Path, tmp_path_factory: pytest.TempPathFactory) -> Machine:
    return Machine(stepscope.resolve(), tmp_path_factory.mktemp("guide"))


@pytest.fixture(scope="module")
def ran(machine: Machine) -> Iterator[Ran]:
    found = Ran(machine)
    yield found
    found.pool.shutdown(cancel_futures=True)


# Commands -----------------------------------------------------------------------------------------------------------


@functools.cache
def help_of(program: Path, command: str) -> str:
    return check_docs.help_of(program, command)


@pytest.mark.parametrize("page", [*PAGES, "../../README.md", "../../README.zh-CN.md"])
def test_the_program_knows_what_is_to_be_typed(page: str, stepscope: Path) -> None:
    """Subcommands and options, in blocks that are run and in those for Slurm, containers and CI."""
    typed = re.sub(r"(?ms)^ *```(?:text|python)\n.*?^ *```", "", (GUIDE / page).read_text())
    found = [one for one in check_docs.commands_in(typed) if one[0] != "import"]
    assert found
    for command, options in found:
        told = help_of(stepscope, command)
        assert f"Usage: stepscope {command} " in told, f"{page}: stepscope {command}"
        for option in options:
            assert re.search(rf"(?<![\w-]){option}(?![\w-])", told), f"{page}: stepscope {command} {option}"


def test_the_chinese_readme_says_the_same_commands() -> None:
    def commands(page: str) -> list[str]:
        blocks = re.findall(r"(?ms)^```\w*\n(.*?)^```", (ROOT / page).read_text())
        return [line.split("#")[0].rstrip() for line in "".join(blocks).splitlines()]

    assert commands("README.zh-CN.md") == commands("README.md")


def test_no_command_is_broken_over_lines() -> None:
    """It would be in no check, and could not be copied."""
    for page in PAGES:
        text = re.sub(r"(?ms)^ *```.*?^ *```", "", (GUIDE / page).read_text())
        for line in text.splitlines():
            assert line.count("`") % 2 == 0, f"{page}: {line}"


@needs_torch
@pytest.mark.parametrize("page", [page for page in PAGES_TO_RUN if page != NOTEBOOK])
def test_a_page_runs_and_prints_what_it_shows(page: str, ran: Ran) -> None:
    code, said = ran[page]
    assert code == 0, said
    blocks = blocks_of(page)
    for (before, _), (language, text) in zip(blocks, blocks[1:]):
        if (before, language) == ("sh", "text"):
            for line in text.splitlines():
                assert is_printed(line, said), f"{page} shows: {line}\nprinted was:\n{said}"


@needs_torch
@pytest.mark.skipif(not HAS_PANDAS, reason="pandas or pyarrow is not installed")
def test_the_cells_of_the_notebook_run(ran: Ran) -> None:
    code, said = ran[NOTEBOOK]
    assert code == 0, said
    assert "steps, median" in said
    assert said.splitlines()[-1] in ERRORS


# Errors -------------------------------------------------------------------------------------------------------------

# A process that a report takes for one with torch: it has a file of that name in its memory.
AS_IF_TORCH = """
head -c 4096 /dev/zero > libtorch_cpu.so
cat > job.py <<'END'
import mmap, sys, time
with open("libtorch_cpu.so", "rb") as file:
    kept = mmap.mmap(file.fileno(), 0, prot=mmap.PROT_READ)
print("ready", flush=True)
time.sleep(60)
END
wait_for() { for _ in {1..300}; do grep -qs . "$1" && return; sleep 0.05; done; echo "no $1"; }
python job.py > ready & job=$!
wait_for ready
"""
STEPS = """
cat > steps.py <<'END'
import sys, torch
optimizer = torch.optim.optimizer.Optimizer()
for number in range(int(sys.argv[1])):
    optimizer.step()
raise SystemExit(int(sys.argv[2]))
END
"""
# Script by name. `set +e`: they are to fail.
WITHOUT_TORCH = {
    "commands": """
        set +e
        stepscope run -- sh -c true
        stepscope run -- sh -c 'exit 3'
        touch taken; stepscope run --out taken -- true
        STEPSCOPE_HOOKS=. stepscope run -- true
        stepscope run -- /no/such/program
        stepscope run
        stepscope run --steps 5:5 -- true
        stepscope run --steps 1 --time 2 -- true
        STEPSCOPE_STEP=1 stepscope run -- true
        stepscope run --step 3 -- true
        stepscope reprot
        PATH=$(dirname "$(command -v stepscope)") stepscope run --nsys -- true
        stepscope run --openmetrics no/such/job.prom -- true
        printf 'steps = 1\\nrank = 0\\n' > stepscope.toml; stepscope run -- true
    """,
    "steps": STEPS
    + """
        set +e
        stepscope run --steps 1 -- python steps.py 0 0
        stepscope run --steps 100:103 -- python steps.py 4 0
        stepscope run --seconds 50:51 -- python steps.py 4 0
        stepscope run --ranks 7 -- python steps.py 12 0
        stepscope run --name asked --trigger command -- python steps.py 12 0
        stepscope report stepscope/asked
        stepscope run --steps 100:103 -- python steps.py 3 1
        stepscope attach --job stepscope
        RANK=1 WORLD_SIZE=3 stepscope run --name alone --steps 100:103 -- python steps.py 4 0
        stepscope report stepscope/alone
    """,
    "attach": AS_IF_TORCH
    + """
        set +e
        stepscope attach
        stepscope attach no_such_script.py
        stepscope attach 999999999
        stepscope attach --job .
        sh -c 'sleep 30; true' & stepscope attach $!
        cp job.py two.py
        for number in 1 2; do sh -c 'python two.py > two.$0; true' $number & done
        wait_for two.1; wait_for two.2
        stepscope attach two.py
        stepscope attach $job --method daemon
        stepscope attach $job --timeout 1
        kill -STOP $job; sleep 0.2; stepscope attach $job; kill -CONT $job
        python -c "
import ctypes, sys, time
print(ctypes.CDLL(None).ptrace(0x4206, int(sys.argv[1]), None, None), flush=True)
time.sleep(30)" $job > traced &
        wait_for traced
        stepscope attach $job
    """,
    "opening": """
        set +e
        : > empty.json; mkdir none two
        printf 'version https://git-lfs.github.com/spec/v1\\n' > lfs.json
        printf '<!DOCTYPE html><html>' > page.json
        python -c "import zipfile; zipfile.ZipFile('a.zip', 'w').writestr('x', 'y')"
        mkfifo pipe
        cp "$TRACES/tiny_train.json" t.json
        head -c 3000 t.json > cut.json
        gzip -c t.json | head -c 600 > cut.json.gz
        for path in nothing.json none 'x*.json' empty.json lfs.json page.json a.zip pipe; do
            stepscope report "$path"
        done
        stepscope report t.json -o no/such/report.txt
        stepscope report t.json -o t.json
        stepscope report t.json --only kernel
        stepscope report cut.json --only quality
        stepscope report cut.json.gz --only quality
        mkdir four; for rank in 0 1; do
            sed 's/"world_size": 2/"world_size": 4/' "$TRACES/two_ranks/rank$rank.json" > four/rank$rank.json
        done
        stepscope report four --only quality
        mkdir run && printf '{"schema_version": 1, "stepscope_version": "0.1.0", "processes": []}' > run/run.json
        stepscope report run/run.json
        python -c "
import json
for name, at in ('a', 1.7e15), ('b', 1.8e15):
    event = dict(ph='X', cat='cpu_op', name='aten::mm', pid=7, tid=8, ts=at, dur=50)
    json.dump(dict(traceEvents=[event]), open('two/' + name + '.json', 'w'))"
        stepscope report two --only quality
        for name in Nov01_10-00-00 Nov02_10-00-00; do
            mkdir -p many/$name/traces; cp run/run.json many/$name/; cp t.json many/$name/traces/
        done
        stepscope report many --only quality
        stepscope memory t.json --peak
        python -c "import pickle; pickle.dump({'epoch': 3}, open('checkpoint.pickle', 'wb'))"
        stepscope memory checkpoint.pickle
    """,
    "gates": """
        set +e
        cp "$TRACES/tiny_train.json" t.json
        stepscope diff t.json t.json --fail-on step
        python -c "
import json
def write(name, steps, length):
    events = []
    for at in range(0, steps * 2 * length, 2 * length):
        step = dict(cat='user_annotation', name=f'ProfilerStep#{at // length // 2}', ts=at, dur=length)
        op = dict(cat='cpu_op', name='aten::mm', ts=at, dur=length // 2)
        events += [dict(one, ph='X', pid=7, tid=8) for one in (step, op)]
    json.dump(dict(traceEvents=events), open(name, 'w'))
write('six.json', 6, 1000), write('two.json', 2, 1000), write('slow.json', 6, 3000)"
        stepscope diff six.json two.json --fail-on 'step>3%'
        stepscope diff six.json slow.json --fail-on 'step>3%'
        stepscope diff six.json six.json --fail-on 'kernel:gone>1ms'
        stepscope what-if six.json --scale kernel:gone=0.5
        stepscope advise t.json --fail-on soon
        stepscope query t.json
        endless="with recursive n(i) as (select 1 union all select i + 1 from n) select max(i) from n"
        stepscope query t.json --timeout 50ms "$endless"
    """,
    "python": """
        set +e
        mkdir alone && cp -r "$PACKAGE" alone/stepscope
        unset STEPSCOPE_LIB
        PYTHONPATH=alone python -c "import stepscope; stepscope.open('t.json')"
        PYTHONPATH=alone python -m stepscope report
        STEPSCOPE_LIB=libm.so.6 python -c "import stepscope; stepscope.open('t.json')"
        export STEPSCOPE_LIB=$LIBRARY
        python -S -c "import stepscope; stepscope.Analyzer('t.json')"
        python -c "import stepscope; stepscope.Analyzer('$TRACES/tiny_train.json')"
        PYTHON=no_such_python "$TOOLS/setup.sh" build
    """,
}
WITH_TORCH = {
    "of the job": """
        set +e
        stepscope run -- python -c "
import torch
with torch.profiler.profile(): torch.nn.Parameter(torch.ones(2)).sum().backward()"
    """,
    "killed": """
        set +e
        sed 's/^    if args.pause:/    if step == 13: import os; os.kill(os.getpid(), 9)\\n&/' train.py > dies.py
        stepscope run -- python dies.py
        stepscope report stepscope --only quality
    """,
    "no room": """
        set +e
        (echo 'import resource; resource.setrlimit(resource.RLIMIT_FSIZE, (60_000, 60_000))'; cat train.py) > full.py
        stepscope run -- python full.py
        cat stepscope/*/*/hooks.log
    """,
}
# Takes another machine, user or moment than a test has; the words are in the sources, and mostly in other tests.
FROM_SOURCES = (
    "kernel.yama.ptrace_scope is 1",
    "this container forbids ptrace",
    "belongs to another user",
    "the job runs a profiler of its own",
    "it is recorded already, into",
    "none of the job's ranks is one of --ranks",
    "another daemon already answers",
    "does not show where its functions are",
    "no step ended in",
    "since a forked child cannot read it from the GPU",
    "the window ended after",
    "a range was still open",
    "torch was compiling or in its backward pass",
    "cannot be opened: Permission denied",
    "there is not enough memory for it",
    "several windows were recorded",
    "has no HTML page, because node",
    "no telemetry lies beside this recording",  # without pandas
    "a recording runs already in this process",  # in the notebook
    "there is no sudo",
    "has no apt-get",
    "no ensurepip",
    "could not install torch",
    "web: ",
    # Printed here only without a GPU or nsys, or where processes may be traced.
    "(no GPU here)",
    "torch used no GPU",
    "the process used no GPU",
    "--nsys needs",
    "is already traced by",
    "is stopped",
    "did not come back to Python",
    "python -I keeps the hooks out",
    # In tests that take longer.
    "--memory had nothing to measure",
    "or left by os._exit, and what",
)


def pattern_of(line: str) -> str:
    return ".*".join(re.escape(part) for part in line.split("…"))


def is_printed(line: str, said: str) -> bool:
    return re.search(pattern_of(line), said) is not None


@functools.cache
def literals() -> str:
    """All texts of the product, a line each; \\0 stands where a value is put in."""
    found = []
    for path in [*ROOT.glob("src/**/*.cc"), *ROOT.glob("src/**/*.h"), *ROOT.glob("python/**/*.py")]:
        text = path.read_text()
        joined = re.sub(r'"\s*\n?\s*[rf]*"', "", text) if '"' in text else text
        found += re.findall(r'"((?:[^"\\\n]|\\.)*)"', joined)
    plain = re.sub(r"\{[^{}\n]*\}", "\0", "\n".join(found).replace('\\"', '"'))
    return "\n".join([plain, *(path.read_text() for path in ROOT.glob("tools/*.sh"))])


def is_in_sources(line: str) -> bool:
    """Each stretch of it is in one text of the sources, or in two that are joined, or the system's own: between values,
    and between sentence, place and hint."""
    of_the_system = {os.strerror(number) for number in errno.errorcode}

    def is_there(words: str) -> bool:
        return words in of_the_system or words in literals() or words[:1].lower() + words[1:] in literals()

    for stretch in re.split(r"…|\. |: |; ", line.removeprefix("stepscope: ").rstrip(".")):
        words = stretch.strip(" .:;,'()%").split(" ")
        cuts = range(1, len(words) + 1)
        if not any(is_there(" ".join(words[:cut])) and is_there(" ".join(words[cut:])) for cut in cuts):
            return False
    return True


ERRORS = [
    line for language, text in blocks_of("troubleshooting.md") if language == "text" for line in text.splitlines()
]


def test_every_error_has_its_cause_and_fix() -> None:
    text = (GUIDE / "troubleshooting.md").read_text()
    bare = re.findall(r"(?m)^```text\n(.*)\n```\n+(?:```|#)", text)
    assert len(ERRORS) > 80 and bare == []


def test_every_error_is_printed_or_in_the_sources(ran: Ran, view: Callable[..., Viewer], machine: Machine) -> None:
    begun = [ran.begin(name) for name in (*(WITH_TORCH if HAS_TORCH else ()), *WITHOUT_TORCH)]
    said = "\n".join(future.result()[1] for future in begun) + refusals_of_the_page(view, machine)
    unknown, not_printed = [], []
    for line in ERRORS:
        if is_printed(line, said):
            continue
        if not is_in_sources(line):
            unknown.append(line)
        elif not any(words in line for words in FROM_SOURCES):
            not_printed.append(line)
    assert unknown == [], "in no text of the sources"
    if HAS_TORCH:
        assert not_printed == [], "neither printed nor among those that are only in the sources"


def refusals_of_the_page(view: Callable[..., Viewer], machine: Machine) -> str:
    trace = str(ROOT / "tests/traces/tiny_train.json")
    viewer = view(trace)
    _, _, of_host = viewer.ask(f"/{viewer.token}/api/runs", headers={"Host": "hub.example.com"})
    _, _, of_token = viewer.ask("/0123/api/runs")
    _, taken = machine.run("page", ["stepscope", "view", trace, "--no-browser", "--port", str(viewer.port)])
    return "\n".join(["", of_host.decode(), of_token.decode(), taken])
