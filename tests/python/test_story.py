"""The story of a forward that does its work on the wrong side: told by the report, and its repair by the diff.

examples/story.py in both forms, recorded as anyone would. It takes one thread here, so that the figures do not depend
on how many cores there are; and both forms run at once, so that what else the machine does slows both alike.
"""

from __future__ import annotations

import json
import re
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest
from jobs import Job, Place, measured, needs_torch, report, rows

STORY = Path(__file__).resolve().parents[2] / "examples" / "story.py"
STEPS = {"before": 72, "after": 144}  # one takes twice as long as the other: they end together


def record(place: Place, form: str) -> Job:
    last = STEPS[form] * 9 // 10
    command = [sys.executable, str(STORY), form, "--steps", str(STEPS[form])]
    return place.run(*command, options=("--name", form, "--steps", f"5:{last}"), CUDA_VISIBLE_DEVICES="")


def places(place: Place) -> list[Place]:
    found = [Place(place.stepscope, place.folder / form) for form in ("before", "after")]
    for one in found:
        one.folder.mkdir()
    return found


def losses(job: Job) -> dict[int, float]:
    return {int(step): float(loss) for step, loss in re.findall(r"step +(\d+)  loss ([\d.]+)", job.stdout)}


def answer(place: Place, job: Job, name: str) -> dict[str, Any]:
    found: dict[str, Any] = report(place, str(job.folder), "--only", name)["answers"][name]
    return found


def diff(place: Place, before: Job, after: Job) -> dict[str, Any]:
    done = place.plain(str(place.stepscope), "diff", str(before.folder), str(after.folder), "--json", "--no-cache")
    assert done.returncode == 0, done.stderr
    found: dict[str, Any] = json.loads(done.stdout)["answers"]["diff"]
    return found


def the_phase_is_told(system: dict[str, Any]) -> None:
    forward = next(row for row in rows(system, "phases") if row["phase"] == "forward")
    assert forward["share"] > 0.6
    assert forward["cores"] < forward["main_thread"] + 0.3, "nothing beside the main thread"
    findings = {finding["id"]: finding for finding in system["findings"]}
    # Where others take its core from it, that is what is to be told.
    if forward["main_thread"] >= 0.85:
        assert findings["one_core_phase"]["where"]["phase"] == "forward"
        assert "in forward" in findings["one_core_phase"]["sentence"]
    else:
        assert findings["no_core"]["evidence"][0]["value"] >= 0.1


def the_functions_are_told(stacks: dict[str, Any]) -> None:
    """Their names and lines in the program, and that they are most of the forward."""
    own = [row for row in rows(stacks, "functions") if row["file"] and row["file"].endswith("story.py")]
    forward = max(row["total_ns"] for row in own if row["function"] == "forward")
    lines = STORY.read_text().splitlines()
    inside = 0
    for name in ("words", "rarest"):
        (function,) = (row for row in own if row["function"] == name)
        assert f"def {name}(" in lines[function["line"] - 1]
        inside += function["total_ns"]
    assert 0.6 * forward < inside <= forward


def the_repair_is_told(found: dict[str, Any]) -> None:
    scalars = {name: scalar["value"] for name, scalar in found["scalars"].items()}
    assert scalars["steps_a"] >= 40 and scalars["steps_b"] >= 40
    # A machine whose load changes meanwhile makes steps of one run differ as much as the runs do, and may hold up the
    # one that takes longer far more than the other.
    quiet = scalars["step_noise"] < 0.3
    assert (0.35 if quiet else 0) < scalars["step_b_ns"] / scalars["step_a_ns"] < 0.65
    forward = next(row for row in rows(found, "phases") if row["name"] == "forward")
    assert 0.2 < 1 + forward["change"] < 0.5
    told = {finding["id"]: finding for finding in found["findings"]}
    assert set(told) == {"finding_gone", "step_faster"} or not quiet
    # What advise names of the first run is what the second one did away with.
    acted_on = told["finding_gone"]
    assert acted_on["sentence"].startswith("python_in_step of the first run is gone")
    assert (acted_on["where"]["file"], acted_on["where"]["function"]) in {("story.py", "words"), ("story.py", "rarest")}
    # What the time went to, and what came in its place.
    gone = min(rows(found, "waterfall"), key=lambda row: row["delta_ns"] if row["level"] == "part" else 0)
    assert (gone["class"], gone["name"]) == ("python", "rarest")
    added = [row for row in rows(found, "operators") if row["match"].startswith("only in ") and row["count_b"] > 0]
    assert "aten::sort" in {row["name"] for row in added}


@needs_torch
@measured
def test_a_forward_on_the_wrong_side_is_told_and_so_is_its_repair(place: Place) -> None:
    homes = places(place)
    with ThreadPoolExecutor() as both:
        before, after = both.map(record, homes, ("before", "after"))
    assert (before.code, after.code) == (0, 0), before.stderr + after.stderr
    learned, same = losses(before), losses(after)
    steps = learned.keys() & same.keys()
    assert len(steps) >= 4 and learned[max(steps)] < 0.9 * learned[0]
    assert [same[step] for step in steps] == pytest.approx([learned[step] for step in steps], rel=1e-3)
    the_phase_is_told(answer(homes[0], before, "system"))
    the_functions_are_told(answer(homes[0], before, "stacks"))
    the_repair_is_told(diff(place, before, after))
