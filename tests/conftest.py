"""Shared by all Python tests: the folder of real traces, and the command line that was built."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent


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
