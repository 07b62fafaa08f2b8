"""Shared by all Python tests: the folder of real traces, and the command line that was built."""

from __future__ import annotations

import os
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent

# A job that imports torch compiles 1 s of Python, one under torchrun 2 s: once for all of them, and away from what is
# tested. Some machines tell every Python to keep nothing.
os.environ.pop("PYTHONDONTWRITEBYTECODE", None)
sys.dont_write_bytecode = False
sys.pycache_prefix = os.environ["PYTHONPYCACHEPREFIX"] = str(ROOT / "build" / "pycache")


@pytest.fixture(scope="session")
def corpus() -> Path:
    """Real traces of other projects ($STEPSCOPE_CORPUS); a test that needs them is skipped where they are absent."""
    path = Path(os.environ.get("STEPSCOPE_CORPUS", ROOT.parent / "shared" / "data"))
    if not path.is_dir():
        pytest.skip(f"no real traces at {path} (set STEPSCOPE_CORPUS)")
    return path


@pytest.fixture(scope="session")
def stepscope() -> Path:
    """The built command line."""
    path = Path(os.environ.get("STEPSCOPE_CLI", ROOT / "build" / "stepscope"))
    if not path.exists():
        pytest.fail(f"{path} is not built: make build")
    return path
