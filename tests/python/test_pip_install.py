"""`pip install .` and `pip install -e .` in a new environment: the command and the package find what was built."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
TRACE = ROOT / "tests" / "traces" / "tiny_train.json"


def clean_environment() -> dict[str, str]:
    ours = ("PYTHONPATH", "STEPSCOPE_LIB", "STEPSCOPE_CLI", "VIRTUAL_ENV")
    kept = {name: value for name, value in os.environ.items() if name not in ours}
    return {**kept, "STEPSCOPE_CACHE": "off", "PIP_DISABLE_PIP_VERSION_CHECK": "1"}


def ran(*command: str | Path, folder: Path, code: int = 0) -> str:
    done = subprocess.run(command, cwd=folder, env=clean_environment(), text=True, capture_output=True, check=False)
    if "No matching distribution found for hatchling" in done.stderr:
        pytest.skip("pip has no package index here to take hatchling from")
    assert done.returncode == code, done.stderr
    return done.stdout if code == 0 else done.stderr


@pytest.fixture(scope="module")
def programs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The bin folder of a new environment."""
    folder = tmp_path_factory.mktemp("environment")
    ran(sys.executable, "-m", "venv", "env", folder=folder)
    return folder / "env" / "bin"


@pytest.mark.parametrize("editable", [False, True], ids=["installed", "editable"])
def test_the_command_and_the_package_find_what_was_built(
    editable: bool, programs: Path, stepscope: Path, tmp_path: Path
) -> None:
    ran(programs / "pip", "install", "-q", *(["-e"] if editable else []), ROOT, folder=tmp_path)
    home = ROOT if editable else programs.parent
    assert ran(programs / "stepscope", "--version", folder=tmp_path) == ran(stepscope, "--version", folder=tmp_path)
    read = (
        f"import stepscope; print(stepscope.__file__, len(stepscope.open({str(TRACE)!r}).table('slices').to_pylist()))"
    )
    package, slices = ran(programs / "python", "-c", read, folder=tmp_path).split()
    assert Path(package).is_relative_to(home)
    assert int(slices) == TRACE.read_text().count('"X"')
    place = "import os; print(os.environ['PYTHONPATH'].split(os.pathsep)[0])"
    hooks = ran(programs / "stepscope", "run", "--", programs / "python", "-c", place, folder=tmp_path)
    assert Path(hooks.strip()).is_relative_to(home)


def test_without_a_build_the_remedy_is_said(programs: Path, tmp_path: Path) -> None:
    checkout = tmp_path / "checkout"
    shutil.copytree(ROOT / "python", checkout / "python")
    for name in (
        "pyproject.toml",
        "CMakeLists.txt",
        "README.md",
        "LICENSE",
        "THIRD_PARTY_NOTICES",
        "tools/wheel_hook.py",
    ):
        (checkout / name).parent.mkdir(exist_ok=True)
        shutil.copy(ROOT / name, checkout / name)
    said = ran(programs / "pip", "install", "-q", checkout, folder=tmp_path, code=1)
    assert "stepscope and libstepscope.so not found" in said
    assert "run `make build` first" in said
