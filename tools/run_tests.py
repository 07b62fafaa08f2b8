"""Runs all suites of `make test`, one after the other, and adds up what they counted.

One that mostly waits, for a browser, runs beside the first, which mostly compiles; its output comes in its turn.

Every suite runs even when one before it failed. The last line is "N passed, N failed, N skipped" over all of them; the
exit status is 0 only when nothing failed and every suite that belongs to this checkout found at least one test.
Nothing here is timed: a suite's seconds are printed for people, never judged.
"""

from __future__ import annotations

import argparse
import io
import re
import subprocess
import sys
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path
from typing import TextIO

ROOT = Path(__file__).resolve().parent.parent
SUMMARY = ROOT / "build" / "test-summary.txt"


@dataclass
class Counts:
    passed: int = 0
    failed: int = 0
    skipped: int = 0
    rerun: int = 0  # runs of measured tests that failed and were followed by another


@dataclass
class Suite:
    name: str
    commands: list[list[str]]
    count: Callable[[str], Counts]
    may_be_empty: bool = False
    beside: bool = False  # it begins with the first one
    preparation: list[str] = field(default_factory=list)  # runs beside the suites before this one
    preparing: subprocess.Popen[bytes] | None = None
    counts: Counts = field(default_factory=Counts)


def number(pattern: str, text: str) -> int:
    """Sum of all numbers that `pattern` captures."""
    return sum(int(found) for found in re.findall(pattern, text, re.MULTILINE))


def count_doctest(text: str) -> Counts:
    """Of one run or of several that share the test cases out: what one leaves to another it counts as skipped."""
    runs = [row for row in text.splitlines() if "test cases:" in row]
    passed, failed = (sum(number(rf"(\d+) {word}", row) for row in runs) for word in ("passed", "failed"))
    known = max((number(r"test cases:\s+(\d+)", row) + number(r"(\d+) skipped", row) for row in runs), default=0)
    return Counts(passed, failed, known - passed - failed)


def count_node(text: str) -> Counts:
    """The summary of node's own test runner, whichever reporter wrote it ("# pass 3" or "ℹ pass 3").

    It does not count a suite that was skipped as a whole; its line says so.
    """
    counts = Counts(*(number(rf"^\S\s{word} (\d+)$", text) for word in ("pass", "fail", "skipped")))
    counts.skipped = max(counts.skipped, len(re.findall(r"(?m)# SKIP\b", text)))
    return counts


def count_pytest(text: str) -> Counts:
    last = next((row for row in reversed(text.splitlines()) if re.search(r"\d+ \w+.* in [\d.]+s", row)), "")
    bad = number(r"(\d+) failed", last) + number(r"(\d+) errors?", last)
    return Counts(
        number(r"(\d+) (?:passed|xfailed)", last), bad, number(r"(\d+) skipped", last), number(r"(\d+) rerun", last)
    )


def suites(jobs: str) -> list[Suite]:
    build = ["tools/cmake_build.sh", "dev", "build-dev", jobs]
    workers = str(int(jobs) + 2)  # they wait for jobs that they started, a third of the time
    pytest = [sys.executable, "-m", "pytest", "-q", "-rsR", "-n", workers, "-m", "not soak"]
    install = ["bash", "-c", "tools/venv.sh torch && tools/venv.sh tests"]
    return [
        Suite("C++ (ASan, UBSan)", [[*build, "stepscope_tests"], ["tools/doctest.sh", "build-dev"]], count_doctest),
        Suite("web", [["tools/web.sh", "test"]], count_node, may_be_empty=True, beside=True),
        Suite("Python", [[*pytest, "tests"]], count_pytest, preparation=install),
    ]


def run(command: list[str], to: TextIO) -> tuple[int, str]:
    """Runs a command in the repository, its output written as it comes; returns the exit status and that output."""
    lines = []
    try:
        process = subprocess.Popen(
            command, cwd=ROOT, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, errors="replace"
        )
    except OSError as error:
        print(error, file=to)
        return 127, ""
    with process:
        assert process.stdout is not None
        for line in process.stdout:
            to.write(line)
            to.flush()
            lines.append(line)
    return process.returncode, "".join(lines)


def run_suite(suite: Suite, to: TextIO) -> None:
    started = time.monotonic()
    print(f"== {suite.name}", file=to, flush=True)
    status, text = suite.preparing.wait() if suite.preparing else 0, ""
    for command in suite.commands:
        if status != 0:
            break
        status, text = run(command, to)
    suite.counts = suite.count(text)
    seen = suite.counts.passed + suite.counts.failed
    if suite.counts.failed == 0 and (status != 0 or (seen == 0 and not suite.may_be_empty)):
        print(f"{suite.name}: ended with {status} after {seen} tests; counted as one failure", file=to)
        suite.counts.failed = 1
    print(f"-- {suite.name}: {time.monotonic() - started:.0f} s\n", file=to, flush=True)


def run_all(all_suites: list[Suite]) -> None:
    with ThreadPoolExecutor() as threads:
        beside = {
            suite.name: (threads.submit(run_suite, suite, said := io.StringIO()), said)
            for suite in all_suites
            if suite.beside
        }
        for suite in all_suites:
            if suite.beside:
                running, said = beside[suite.name]
                running.result()
                sys.stdout.write(said.getvalue())
            else:
                run_suite(suite, sys.stdout)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--jobs", default="1", help="how many compilers at once")
    everything = suites(parser.parse_args().jobs)
    for suite in everything:
        if suite.preparation:
            suite.preparing = subprocess.Popen(suite.preparation, cwd=ROOT)
    run_all(everything)
    for suite in everything:
        counts = suite.counts
        again = f" {counts.rerun:4} run anew" if counts.rerun else ""
        print(f"{suite.name:20} {counts.passed:6} passed {counts.failed:4} failed {counts.skipped:4} skipped{again}")
    passed, failed, skipped = (
        sum(getattr(s.counts, what) for s in everything) for what in ("passed", "failed", "skipped")
    )
    closing = f"{passed} passed, {failed} failed, {skipped} skipped"
    SUMMARY.parent.mkdir(exist_ok=True)
    SUMMARY.write_text(closing + "\n")
    print(closing, flush=True)
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
