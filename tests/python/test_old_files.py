"""What any older stepscope wrote opens (tests/fixtures); what a newer one wrote is met with a sentence, not a crash."""

from __future__ import annotations

import json
import os
import shutil
import struct
import subprocess
from pathlib import Path
from typing import Any

import pytest

import stepscope

FIXTURES = Path(__file__).resolve().parents[1] / "fixtures"
ROOT = FIXTURES.parents[1]
RUNS = sorted(FIXTURES.glob("*/run"))
REPORTS = sorted(FIXTURES.glob("*/report.json"))


def version_of(path: Path) -> str:
    return path.parent.name


def report_of(program: Path, *arguments: str | Path, cache: str | Path = "off") -> subprocess.CompletedProcess[str]:
    environment = {**os.environ, "STEPSCOPE_CACHE": str(cache)}
    command = [program, "report", "--json", *arguments]
    return subprocess.run(command, cwd=ROOT, env=environment, text=True, capture_output=True, check=False)


def test_a_fixture_lies_under_the_version_that_it_states() -> None:
    for files in ([run / "run.json" for run in RUNS], REPORTS):
        stated = [json.loads(path.read_text())["schema_version"] for path in files]
        assert stated == [int(path.relative_to(FIXTURES).parts[0]) for path in files]
        assert 1 in stated


@pytest.mark.parametrize("folder", RUNS, ids=version_of)
def test_an_old_run_folder_opens_as_its_manifest_says(folder: Path) -> None:
    """A manifest of another shape needs a test of its own: what it says is then found elsewhere."""
    (process,) = json.loads((folder / "run.json").read_text())["processes"]
    (window,) = process["windows"]
    run = stepscope.open(folder, cache=False)
    assert [file["path"] for file in run.files] == [str(folder / window["trace"])]
    assert run.files[0]["file_bytes"] == window["bytes"]
    assert run.rank_numbers == [process["rank"]]
    assert run.issues == []
    steps = run.table("answers.steps.steps").to_pylist()
    assert [step["number"] for step in steps] == window["steps"]


def shape(report: dict[str, Any]) -> set[str]:
    """Every member that docs/report-json.md promises; not the names that an analysis chooses."""
    found: set[str] = set()

    def walk(value: Any, path: str) -> None:
        if isinstance(value, list):
            for item in value:
                walk(item, path + "[]")
        elif isinstance(value, dict):
            chosen = path.endswith((".scalars", ".tables", ".series"))
            for name, item in value.items():
                below = f"{path}.{'*' if chosen else name}"
                found.add(below)
                walk(item, ".answers.*" if path == ".answers" else below)  # which answer finds what is its own

    walk(report, "")
    return found


@pytest.mark.parametrize("path", REPORTS, ids=version_of)
def test_a_report_keeps_every_member_while_its_version_stands(path: Path, stepscope: Path) -> None:
    old = json.loads(path.read_text())
    new = json.loads(report_of(stepscope, "tests/traces/broken/cut.json").stdout)
    if old["schema_version"] == new["schema_version"]:
        assert shape(old) - shape(new) == set(), "raise schema_version and keep the last report of the old one"


def test_a_run_folder_from_the_future_opens_and_says_so(tmp_path: Path) -> None:
    folder = shutil.copytree(RUNS[-1], tmp_path / "run")
    (folder / "run.json").write_text('{"schema_version": 99, "processes": {"0": "of another shape"}}')
    run = stepscope.open(folder, cache=False)
    assert run.rank_numbers == [0]
    (issue,) = run.issues
    assert (issue["code"], issue["severity"], issue["file"]) == ("newer_run_folder", "info", str(folder / "run.json"))
    assert "schema_version 99" in issue["sentence"]
    assert issue["advice"]


def test_our_own_files_given_as_traces_are_named(stepscope: Path, tmp_path: Path) -> None:
    """Also those of the future: a newer report is told from a trace by what every version of it has."""
    newer = tmp_path / "report.json"
    newer.write_text(REPORTS[-1].read_text().replace('"schema_version": ', '"schema_version": 9', 1))
    for path, what in (
        (REPORTS[0], "a report that stepscope made"),
        (newer, "a report that stepscope made"),
        (RUNS[0] / "run.json", "the run.json of a stepscope run"),
    ):
        refused = report_of(stepscope, path)
        assert refused.returncode == 1
        assert f"it looks like {what}. Give " in " ".join(refused.stderr.split()), refused.stderr


@pytest.mark.parametrize("version", [0, 2, 4, 99])
def test_a_cache_of_another_version_is_not_used(version: int, stepscope: Path, tmp_path: Path) -> None:
    event = {
        "ph": "X",
        "cat": "cpu_op",
        "name": "aten::mm",
        "pid": 1,
        "tid": 2,
        "dur": 0.5,
        "args": {"pad": "x" * 1000},
    }
    trace = tmp_path / "trace.json"
    trace.write_text(json.dumps([{**event, "ts": ts} for ts in range(17_000)]))  # less text is not kept in the cache

    def read() -> tuple[bool, Any]:
        report = json.loads(report_of(stepscope, trace, cache=tmp_path / "cache").stdout)
        return report["input"]["files"][0]["cached"], report["answers"]

    first = read()
    assert first[0] is False
    assert read() == (True, first[1])
    (entry,) = (tmp_path / "cache").iterdir()
    content = bytearray(entry.read_bytes())
    assert struct.unpack_from("<8sI", content) == (b"stepcach", 3)
    struct.pack_into("<I", content, 8, version)
    entry.write_bytes(content)
    assert read() == first
    assert read() == (True, first[1]), "the entry was not made anew"
