"""`stepscope doctor`: what it finds must be what is there, and every finding that is not fine names its fix."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any


def doctor(stepscope: Path, *options: str, **more: str) -> tuple[int, dict[str, dict[str, Any]], dict[str, Any]]:
    done = subprocess.run(
        [str(stepscope), "doctor", "--json", *options],
        env={**os.environ, **more},
        capture_output=True,
        text=True,
        timeout=240,
    )
    answer = json.loads(done.stdout)
    assert answer["schema_version"] == 1
    return done.returncode, {check["name"]: check for check in answer["checks"]}, answer


def test_every_problem_names_its_fix(stepscope: Path, tmp_path: Path) -> None:
    code, checks, answer = doctor(stepscope, "--python", sys.executable, "--out", str(tmp_path / "new"))
    assert checks["python"]["status"] == "ok"
    assert sys.version.split()[0] in checks["python"]["found"]
    assert checks["hooks"]["status"] == "ok"
    assert checks["run folder"]["status"] == "ok"
    assert not (tmp_path / "new").exists(), "looking changes nothing"
    assert all((check["fix"] is None) == (check["status"] == "ok") for check in checks.values())
    assert code == (0 if answer["ready"] else 1)


def test_what_a_job_needs_decides(stepscope: Path, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    code, checks, answer = doctor(
        stepscope, "--python", "/no/such/python", "--out", str(tmp_path / "file"), STEPSCOPE_HOOKS=str(tmp_path)
    )
    assert (code, answer["ready"]) == (1, False)
    for name in ("python", "hooks", "run folder"):
        assert checks[name]["status"] == "failure", name
        assert checks[name]["needed"]
