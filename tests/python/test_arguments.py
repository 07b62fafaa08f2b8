"""Real traces, each with the argument for what to change first on it: tests/advice/arguments/NAME.md.

An argument says in a few sentences what the trace shows and why its first finding is the first. The block `check` below
holds what is claimed, a line each, and is compared with what the program answers now:

    trace: PATH …              files of the corpus, opened together; of an archive, all traces in it
    also: PATH …               others of which all of it holds as well
    first: ID [or ID …]        the first finding; "nothing": none is worth changing
    where: PART = TEXT         a part of its place
    evidence: TEXT = VALUE     of it
    gain: LOWx to HIGHx        of it; "none"
    then: ID                   the finding after it, and
    then-gain: LOWx to HIGHx   its gain
    then-evidence: TEXT = VALUE   of it
    absent: ID                 no finding of that kind is worth changing
    answer: ANSWER.NAME = VALUE                       a number of a report
    table: ANSWER.TABLE[COLUMN = TEXT; …].NAME = VALUE   a cell of a report, of the first such row
    ratio: CELL / CELL = VALUE                        of two such cells
    what-if: OPTIONS => NAME = VALUE                  what becomes of the step with a change

Values are compared to the digits that are written. Every figure with a unit in the sentences stands in the block too.
"""

from __future__ import annotations

import json
import re
import subprocess
import tarfile
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import pytest

ARGUMENTS = Path(__file__).resolve().parent.parent / "advice" / "arguments"
WORTH_CHANGING = 1.03

UNITS = {
    "": 1.0,
    "x": 1.0,
    "%": 0.01,
    "ns": 1.0,
    "µs": 1e3,
    "ms": 1e6,
    "s": 1e9,
    "B": 1.0,
    "kB": 1e3,
    "MB": 1e6,
    "GB": 1e9,
    "GB/s": 1.0,
}
FIGURE = re.compile(r"(?<![\w.,])(\d[\d,]*(?:\.\d+)?)(?: ?(x|%|[nµm]?s|[kMG]?B(?:/s)?)(?![\w/]))")


@dataclass(frozen=True)
class Argument:
    name: str
    prose: str
    claims: tuple[tuple[str, str], ...]

    def all(self, kind: str) -> list[str]:
        return [text for key, text in self.claims if key == kind]


def read_argument(path: Path) -> Argument:
    text = path.read_text()
    block = re.search(r"(?ms)^```check\n(.*?)^```\n?", text)
    assert block is not None, f"{path} has no block ```check"
    claims = []
    for line in block[1].splitlines():
        if line.strip():
            key, colon, value = line.partition(":")
            assert colon, f"{path}: {line}"
            claims.append((key.strip(), value.strip()))
    return Argument(path.stem, text.replace(block[0], ""), tuple(claims))


def wrong(claimed: str, actual: Any) -> str | None:
    """Why a written value is not the actual one, to its digits; None: it is."""
    number = re.fullmatch(r"([\d,]+(?:\.(\d+))?) ?(\S*)", claimed)
    if number is None or actual is None or isinstance(actual, str):
        return None if claimed == ("unknown" if actual is None else str(actual)) else f"it is {actual!r}"
    assert number[3] in UNITS, f"an unknown unit: {claimed}"
    digits = len(number[2] or "")
    written, found = float(number[1].replace(",", "")), float(actual) / UNITS[number[3]]
    if abs(written - found) <= 0.5 * 10**-digits * (1 + 1e-9):
        return None
    return f"it is {found:.{digits + 1}f} {number[3]}"


def split_claim(text: str) -> tuple[str, str]:
    name, equals, value = text.rpartition(" = ")
    assert equals, text
    return name, value


def figures(text: str) -> set[str]:
    return {f"{number} {unit}".strip() for number, unit in FIGURE.findall(text)}


def worth(finding: dict[str, Any]) -> float:
    gain = finding["gain"]
    return (gain["speedup_low"] + gain["speedup_high"]) / 2 if gain else 1.0


class Trace:
    """What the program says of some files."""

    def __init__(self, stepscope: Path, paths: tuple[str, ...]) -> None:
        self.stepscope, self.paths = stepscope, paths

    def ask(self, *arguments: str) -> dict[str, Any]:
        command = [str(self.stepscope), arguments[0], *self.paths, *arguments[1:], "--json", "--no-cache"]
        done = subprocess.run(command, capture_output=True, text=True, timeout=240, check=False)
        assert done.returncode in (0, 4), done.stderr
        said: dict[str, Any] = json.loads(done.stdout)
        return said

    @cache  # noqa: B019  # as long as its test
    def findings(self) -> list[dict[str, Any]]:
        found: list[dict[str, Any]] = self.ask("advise")["findings"]
        return found

    @cache  # noqa: B019
    def changed(self, options: str) -> dict[str, Any]:
        found: dict[str, Any] = self.ask("what-if", *options.split())["answers"]["what_if"]["scalars"]
        return found

    @cache  # noqa: B019
    def answer(self, name: str) -> dict[str, Any]:
        found: dict[str, Any] = self.ask("report", "--only", name)["answers"][name]
        return found

    def cell(self, text: str) -> Any:
        """ANSWER.TABLE[COLUMN = TEXT; …].NAME"""
        parts = re.fullmatch(r"(\w+)\.(\w+)\[(.*)\]\.(\w+)", text)
        assert parts is not None, text
        table = self.answer(parts[1])["tables"][parts[2]]
        columns = [column["name"] for column in table["columns"]]
        wanted = [split_claim(one.strip()) for one in parts[3].split(";")]
        for row in table["rows"]:
            if all(wrong(value, row[columns.index(name.strip())]) is None for name, value in wanted):
                return row[columns.index(parts[4])]
        raise AssertionError(f"no such row: {text}")


def faults_of_gain(text: str, gain: dict[str, Any] | None) -> list[str]:
    if text == "none" or gain is None:
        return [] if (text == "none") == (gain is None) else [f"gain: it is {gain}"]
    faults = []
    low, _, high = text.partition(" to ")
    for value, key in ((low, "speedup_low"), (high, "speedup_high")):
        if (fault := wrong(value, gain[key])) is not None:
            faults.append(f"gain: {value}: {fault}")
    return faults


def faults_of_evidence(kind: str, argument: Argument, finding: dict[str, Any]) -> list[str]:
    faults = []
    for text in argument.all(kind):
        name, value = split_claim(text)
        found = [one["value"] for one in finding["evidence"] if one["text"] == name]
        fault = wrong(value, found[0]) if found else "there is none"
        if fault is not None:
            faults.append(f"{kind}: {text}: {fault}")
    return faults


def faults_of_first(argument: Argument, findings: list[dict[str, Any]]) -> list[str]:
    """What is claimed of the first finding and is not so."""
    faults: list[str] = []
    first = findings[0] if findings else None
    (claimed,) = argument.all("first")
    if claimed == "nothing":
        return [f"first: it is {first['id']}, {worth(first):.2f}x"] if first and worth(first) >= WORTH_CHANGING else []
    if first is None or first["id"] not in claimed.split(" or "):
        return [f"first: it is {first['id'] if first else 'nothing'}, not {claimed}"]
    for text in argument.all("where"):
        part, value = split_claim(text)
        if (fault := wrong(value, first["where"][part])) is not None:
            faults.append(f"where: {text}: {fault}")
    faults += faults_of_evidence("evidence", argument, first)
    for text in argument.all("gain"):
        faults += faults_of_gain(text, first["gain"])
    return faults


def actual_of(kind: str, name: str, trace: Trace) -> Any:
    if kind == "answer":
        answer, _, scalar = name.partition(".")
        return trace.answer(answer)["scalars"][scalar]["value"]
    if kind == "ratio":
        part, whole = (trace.cell(cell) for cell in name.split(" / "))
        return part / whole
    if kind == "what-if":
        options, _, scalar = name.partition(" => ")
        return trace.changed(options)[scalar]["value"]
    return trace.cell(name)


def faults_of(argument: Argument, trace: Trace) -> list[str]:
    findings = trace.findings()
    faults = faults_of_first(argument, findings)
    for claimed in argument.all("then"):
        if len(findings) < 2 or findings[1]["id"] != claimed:
            faults.append(f"then: it is {findings[1]['id'] if len(findings) > 1 else 'nothing'}, not {claimed}")
    for text in argument.all("then-gain"):
        faults += faults_of_gain(text, findings[1]["gain"] if len(findings) > 1 else None)
    faults += faults_of_evidence("then-evidence", argument, findings[1] if len(findings) > 1 else {"evidence": []})
    for claimed in argument.all("absent"):
        if any(one["id"] == claimed and worth(one) >= WORTH_CHANGING for one in findings):
            faults.append(f"absent: {claimed} is there")
    for kind, text in argument.claims:
        if kind not in ("answer", "table", "ratio", "what-if"):
            continue
        name, value = split_claim(text)
        if (fault := wrong(value, actual_of(kind, name, trace))) is not None:
            faults.append(f"{kind}: {text}: {fault}")
    return faults


def test_values_are_compared_to_the_digits_that_are_written() -> None:
    assert wrong("95.9 %", 0.9587) is None
    assert wrong("95.9 %", 0.9580) == "it is 95.80 %"
    assert wrong("1,632", 1632) is None
    assert wrong("4.2 ms", 4_249_000) is None
    assert wrong("HtoD", "HtoD") is None and wrong("HtoD", "DtoH") is not None
    assert wrong("unknown", None) is None and wrong("0", None) is not None
    assert figures("it fills 95.9 % of 1.5 s, 27.7 GB/s on 2 GPUs, 1.2x as fast") == {
        "95.9 %",
        "1.5 s",
        "27.7 GB/s",
        "1.2 x",
    }


def traces_of(argument: Argument) -> list[list[str]]:
    """Names in the corpus that belong together: first its own, then those of which it holds as well."""
    return [text.split() for kind in ("trace", "also") for text in argument.all(kind)]


def unpacked(file: Path, into: Path) -> list[str]:
    if not file.name.endswith(".tar.gz"):
        return [str(file)]
    with tarfile.open(file) as archive:
        archive.extractall(into, filter="data")
    return sorted(str(one) for one in into.rglob("*.json"))


@pytest.mark.parametrize("path", sorted(ARGUMENTS.glob("*.md")), ids=lambda path: path.stem)
def test_the_argument_holds(path: Path, corpus: Path, stepscope: Path, tmp_path: Path) -> None:
    argument = read_argument(path)
    traces = traces_of(argument)
    assert traces, "it is about no trace"
    missing = [name for names in traces for name in names if not (corpus / name).exists()]
    if missing:
        pytest.skip(f"not in the corpus: {missing[0]}")
    claims = " ".join(text for _, text in argument.claims)
    unproven = figures(argument.prose) - figures(claims)
    assert not unproven, f"figures that no claim holds: {sorted(unproven)}"
    for names in traces:
        files = [file for name in names for file in unpacked(corpus / name, tmp_path / name)]
        faults = faults_of(argument, Trace(stepscope, tuple(files)))
        assert not faults, f"{names[0]}:\n" + "\n".join(faults)


def test_each_timeline_of_the_corpus_has_its_argument(corpus: Path, stepscope: Path) -> None:
    if not corpus.exists():
        pytest.skip("no corpus: set STEPSCOPE_CORPUS")
    argued = {name for path in ARGUMENTS.glob("*.md") for names in traces_of(read_argument(path)) for name in names}
    for file in sorted(file for file in corpus.rglob("*") if file.name.endswith((".json", ".json.gz", ".sqlite"))):
        name = str(file.relative_to(corpus))
        if name in argued:
            continue
        # The rest are execution traces, memory timelines and the like: they have no steps to judge.
        said = Trace(stepscope, (str(file),)).ask("advise")
        assert not said["findings"], f"{name} has findings and no argument"
