"""stepscope diff on runs that are recorded here and now: what was added is found, by name, through the gate."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from jobs import measured

pytest.importorskip("torch")

# A step whose extra work is many times the rest of it: no machine is so busy that this could be noise.
TRAIN = """
import sys, torch
torch.set_num_threads(1)
model, extra = torch.nn.Linear(64, 64), int(sys.argv[1])
optimizer = torch.optim.SGD(model.parameters(), lr=1e-4)
data, big = torch.randn(32, 64), torch.randn(320, 320)
for _ in range(20):
    optimizer.zero_grad()
    model(data).square().mean().backward()
    for _ in range(extra):
        torch.linalg.matrix_power(big, 3)
    optimizer.step()
"""


def record(stepscope: Path, folder: Path, name: str, extra: int) -> Path:
    script = folder / "train.py"
    script.write_text(TRAIN)
    command = [str(stepscope), "run", "--out", str(folder / name), "--steps", "4:16", "--"]
    environment = {k: v for k, v in os.environ.items() if not k.startswith("STEPSCOPE_")}
    done = subprocess.run(
        [*command, sys.executable, str(script), str(extra)], env=environment, capture_output=True, text=True, check=True
    )
    assert "recorded" in done.stderr
    return next((folder / name).glob("train/*"))


def diff(stepscope: Path, a: Path, b: Path) -> tuple[int, dict[str, Any]]:
    command = [str(stepscope), "diff", str(a), str(b), "--fail-on", "step>50%", "--json", "--no-cache"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    return done.returncode, json.loads(done.stdout)["answers"]["diff"]


@measured
def test_of_two_fresh_runs_what_was_added_is_found(stepscope: Path, tmp_path: Path) -> None:
    before = record(stepscope, tmp_path, "before", 0)
    after = record(stepscope, tmp_path, "after", 24)
    code, found = diff(stepscope, before, after)
    assert code == 3
    assert found["scalars"]["step_significant"]["value"] is True
    assert found["scalars"]["attributed_share"]["value"] >= 0.9
    operators = found["tables"]["operators"]
    names = [column["name"] for column in operators["columns"]]
    found_rows = [dict(zip(names, row)) for row in operators["rows"]]
    added = [row for row in found_rows if row["match"].startswith("only in ") and row["count_b"] > 0]
    assert "aten::linalg_matrix_power" in {row["name"] or row["name_b"] for row in added}
    code, _ = diff(stepscope, after, before)
    assert code == 0  # faster is no failure
    code, found = diff(stepscope, before, before)
    assert code == 0
    assert found["scalars"]["rows_changed"]["value"] == 0
