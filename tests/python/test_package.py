"""The package as users get it: light to import, in every Python, and its console script is the real program."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

import stepscope

ROOT = Path(__file__).resolve().parents[2]
PACKAGE = ROOT / "python"
WriteTrace = Callable[..., Path]
OLDEST = (3, 9)

READ = """
import sys
sys.path.insert(0, sys.argv[1])
import stepscope
run = stepscope.open(sys.argv[2], cache=False)
rows = run.table("slices").to_pylist()
capsule = run.table("slices").__arrow_c_stream__()
assert type(capsule).__name__ == "PyCapsule", capsule
names = [row["name"] for row in rows]
assert "aten::mm" in names and len(rows) == 7, names
try:
    stepscope.open(sys.argv[2] + ".none", cache=False)
except stepscope.StepscopeError as error:
    assert error.kind == "not_found", error
print(len(rows), sum(row["dur_ns"] for row in rows))
"""


def pythons() -> list[Path]:
    """Every CPython found: this one, pyenv's, the system's."""
    found = [Path(sys.executable)]
    pyenv = Path(os.environ.get("PYENV_ROOT", Path.home() / ".pyenv"))
    found += sorted(pyenv.glob("versions/*/bin/python"))
    for folder in (Path("/usr/bin"), Path("/usr/local/bin"), Path("/opt/python/bin")):
        found += sorted(path for path in folder.glob("python3.*") if re.fullmatch(r"python3\.\d+t?", path.name))
    return found


def version(python: Path) -> tuple[int, int] | None:
    asked = "import sys; print(sys.implementation.name, *sys.version_info[:2])"
    said = subprocess.run([python, "-c", asked], capture_output=True, text=True, check=False)
    words = said.stdout.split()
    if said.returncode != 0 or len(words) != 3 or words[0] != "cpython":
        return None
    return int(words[1]), int(words[2])


def clean_environment() -> dict[str, str]:
    return {name: value for name, value in os.environ.items() if not name.startswith("PYTHON")}


def test_one_library_serves_every_python_found(write_trace: WriteTrace, capsys: pytest.CaptureFixture[str]) -> None:
    path = write_trace()
    ran: dict[tuple[int, int], str] = {}
    for python in pythons():
        which = version(python)
        if which is None or which < OLDEST or which in ran:
            continue
        command = [str(python), "-c", READ, str(PACKAGE), str(path)]
        said = subprocess.run(command, capture_output=True, text=True, env=clean_environment(), check=False)
        assert said.returncode == 0, f"{python}: {said.stderr}"
        ran[which] = said.stdout
    with capsys.disabled():
        print("\nstepscope loaded in Python", ", ".join(f"{major}.{minor}" for major, minor in sorted(ran)))
    assert sys.version_info[:2] in ran
    assert len(set(ran.values())) == 1


def test_the_import_is_light() -> None:
    code = (
        "import sys, time; sys.path.insert(0, sys.argv[1]); began = time.process_time(); import stepscope; "
        "took = time.process_time() - began; "
        "heavy = {'torch', 'numpy', 'pandas', 'polars', 'pyarrow', 'duckdb', 'ctypes', 'typing'} & set(sys.modules); "
        "print(took, *sorted(heavy))"
    )
    # -S -I: what site packages of this environment import is not ours
    command = [sys.executable, "-I", "-S", "-c", code, str(PACKAGE)]
    runs = [subprocess.run(command, capture_output=True, text=True, check=True).stdout.split() for _ in range(5)]
    assert all(len(words) == 1 for words in runs), runs
    assert min(float(words[0]) for words in runs) < 0.050


def test_the_version_is_that_of_the_project() -> None:
    said = re.search(r"project\(stepscope VERSION ([0-9.]+)", (ROOT / "CMakeLists.txt").read_text())
    assert said is not None
    assert said.group(1) == stepscope.__version__


def test_a_missing_library_is_said_with_the_remedy(tmp_path: Path) -> None:
    code = "import sys; sys.path.insert(0, sys.argv[1]); import stepscope; stepscope.open('x')"
    environment = {**clean_environment(), "STEPSCOPE_LIB": str(tmp_path / "libstepscope.so")}
    command = [sys.executable, "-c", code, str(PACKAGE)]
    said = subprocess.run(command, capture_output=True, text=True, env=environment, check=False)
    assert "StepscopeError" in said.stderr
    assert "make build" in said.stderr


def test_the_library_shows_its_c_abi_and_nothing_else() -> None:
    from stepscope._native import library

    said = subprocess.run(
        ["nm", "-D", "--defined-only", str(library().path)], capture_output=True, text=True, check=True
    )
    names = [line.split()[-1] for line in said.stdout.splitlines()]
    header = (ROOT / "include" / "stepscope" / "stepscope.h").read_text()
    declared = re.findall(r"^STEPSCOPE_API [^(]*?(stepscope_\w+)\(", header, re.MULTILINE)
    assert sorted(names) == sorted(declared)


def test_the_console_script_is_the_program(stepscope_program: Path) -> None:
    environment = {**clean_environment(), "PYTHONPATH": str(PACKAGE), "STEPSCOPE_CLI": str(stepscope_program)}
    command = [sys.executable, "-m", "stepscope", "--help"]
    ours = subprocess.run(command, capture_output=True, text=True, env=environment, check=False)
    real = subprocess.run([stepscope_program, "--help"], capture_output=True, text=True, env=environment, check=False)
    assert (ours.returncode, ours.stdout) == (real.returncode, real.stdout)
    assert "stepscope" in ours.stdout


@pytest.fixture
def stepscope_program() -> Path:
    path = Path(os.environ.get("STEPSCOPE_CLI", ROOT / "build" / "stepscope"))
    if not path.exists():
        pytest.fail(f"{path} is not built: make build")
    return path
