"""`report --compat tensorboard` against the TensorBoard plugin's own numbers (tensorboard_overview.json)."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path
from typing import Any

import pytest

RECORDED: dict[str, Any] = json.loads((Path(__file__).parent / "tensorboard_overview.json").read_text())["traces"]


def overview(program: Path, trace: Path) -> dict[str, list[dict[str, Any]]]:
    command = [str(program), "report", str(trace), "--json", "--no-cache", "--compat", "tensorboard"]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    tables = json.loads(done.stdout)["answers"]["overview"]["tables"]
    return {
        name: [dict(zip([column["name"] for column in table["columns"]], row)) for row in table["rows"]]
        for name, table in tables.items()
    }


@pytest.mark.parametrize("name", RECORDED)
def test_the_overview_page(name: str, stepscope: Path, corpus: Path) -> None:
    recorded = RECORDED[name]
    ours = overview(stepscope, corpus / recorded["trace"])
    assert len(ours["steps"]) == len(recorded["steps"])
    compared = 0
    for table in ("steps", "overlap"):
        for row, wanted in zip(ours[table], recorded[table]):
            for column, value in wanted.items():
                assert row[column] == (value if column == "step" else pytest.approx(value, abs=1e-4)), (table, column)
                compared += 1
    assert [str(row["gpu"]) for row in ours["gpus"]] == list(recorded["gpus"])
    for row, wanted in zip(ours["gpus"], recorded["gpus"].values()):
        wanted = {**wanted, "tensor_cores": recorded["tc_used_ratio"]}
        for column, value in wanted.items():
            assert row[column] == pytest.approx(value, rel=1e-6), column
            compared += 1
    assert compared >= 18
