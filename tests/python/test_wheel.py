"""`make wheel`: one wheel for every Python, tagged by what it needs; installed, upgraded and taken out again."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
TRACE = ROOT / "tests" / "traces" / "tiny_train.json"
OWN = ("PYTHONPATH", "STEPSCOPE_LIB", "STEPSCOPE_CLI", "VIRTUAL_ENV", "STEPSCOPE_DIST")


def ran(*command: str | Path, folder: Path) -> str:
    environment = {name: value for name, value in os.environ.items() if name not in OWN}
    environment.update(STEPSCOPE_CACHE="off", PIP_DISABLE_PIP_VERSION_CHECK="1", PY=sys.executable)
    done = subprocess.run(command, cwd=folder, env=environment, text=True, capture_output=True, check=False)
    if "No matching distribution found for hatchling" in done.stderr:
        pytest.skip("pip has no package index here to take hatchling from")
    assert done.returncode == 0, done.stderr
    return done.stdout


@pytest.fixture(scope="module")
def wheels(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    """Of this version, and of one before it."""
    if not (ROOT / "build" / "stepscope").exists():
        pytest.fail("build/stepscope is not built: make build")
    made = tmp_path_factory.mktemp("made")
    ran("tools/make_dist.sh", "build", made, folder=ROOT)
    older = tmp_path_factory.mktemp("older")
    checkout = older / "checkout"
    shutil.copytree(ROOT / "python", checkout / "python", ignore=shutil.ignore_patterns("__pycache__"))
    for name in ("pyproject.toml", "CMakeLists.txt", "README.md", "LICENSE", "THIRD_PARTY_NOTICES"):
        shutil.copy(ROOT / name, checkout / name)
    (checkout / "tools").mkdir()
    shutil.copy(ROOT / "tools" / "wheel_hook.py", checkout / "tools")
    text = (checkout / "CMakeLists.txt").read_text()
    (checkout / "CMakeLists.txt").write_text(re.sub(r"(stepscope VERSION )[0-9.]+", r"\g<1>0.0.1", text))
    (checkout / "python" / "stepscope" / "gone_since.py").write_text("")
    shutil.copytree(next(made.glob("stepscope-*-linux-*/")), older / "out" / "stepscope-0.0.1-linux-any", symlinks=True)
    ran("tools/make_wheel.sh", made, folder=ROOT)
    ran("tools/make_wheel.sh", older / "out", checkout, folder=ROOT)
    return next(made.glob("*.whl")), next((older / "out").glob("*.whl"))


def test_the_tag_says_what_is_needed(wheels: tuple[Path, Path]) -> None:
    with zipfile.ZipFile(wheels[0]) as wheel:
        names = wheel.namelist()
        programs = [name for name in names if "/lib/" in name or name.endswith("bin/stepscope")]
        wheel.extractall(wheels[0].parent / "unpacked")
        metadata = next(wheel.read(name).decode() for name in names if name.endswith(".dist-info/METADATA"))
    symbols = subprocess.run(
        ["objdump", "-T", *(wheels[0].parent / "unpacked" / name for name in programs)],
        text=True, capture_output=True, check=True,
    ).stdout  # fmt: skip
    newest = max(tuple(map(int, found)) for found in re.findall(r"GLIBC_(\d+)\.(\d+)", symbols))
    assert wheels[0].name.endswith(f"-py3-none-manylinux_{newest[0]}_{newest[1]}_{os.uname().machine}.whl")
    required = [line for line in metadata.splitlines() if line.startswith("Requires-Dist")]
    assert all("extra == " in line for line in required), required
    assert wheels[0].stat().st_size <= 40 * 2**20


def test_installed_upgraded_and_taken_out_again(wheels: tuple[Path, Path], tmp_path: Path) -> None:
    ran(sys.executable, "-m", "venv", "env", folder=tmp_path)
    programs = tmp_path / "env" / "bin"
    before = {path for path in (tmp_path / "env").rglob("*") if "__pycache__" not in path.parts}
    install = (programs / "pip", "install", "-q", "--no-index")
    ran(*install, wheels[1], folder=tmp_path)
    (package,) = (tmp_path / "env").glob("lib/python*/site-packages/stepscope")
    assert (package / "gone_since.py").exists()
    ran(*install, "--upgrade", wheels[0], folder=tmp_path)
    assert not (package / "gone_since.py").exists()
    version = re.search(r"VERSION ([0-9.]+)", (ROOT / "CMakeLists.txt").read_text().partition("project(")[2])
    assert version and version[1] in ran(programs / "pip", "list", folder=tmp_path)
    assert "overview" in ran(programs / "stepscope", "report", TRACE, "--json", folder=tmp_path)
    read = f"import stepscope; print(len(stepscope.open({str(TRACE)!r}).table('slices').to_pylist()))"
    assert int(ran(programs / "python", "-c", read, folder=tmp_path)) == TRACE.read_text().count('"X"')
    place = "import os; print(os.environ['PYTHONPATH'].split(os.pathsep)[0])"
    hooks = ran(programs / "stepscope", "run", "--", programs / "python", "-c", place, folder=tmp_path)
    assert Path(hooks.strip()).is_relative_to(package)
    ran(programs / "pip", "uninstall", "-q", "-y", "stepscope", folder=tmp_path)
    assert {path for path in (tmp_path / "env").rglob("*") if "__pycache__" not in path.parts} == before
