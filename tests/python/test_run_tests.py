"""The runner of `make test` must count what each suite says of itself, and never take silence for success."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

import run_tests
from run_tests import Counts

DOCTEST = """[doctest] test cases:  12 |  10 passed | 2 failed | 1 skipped
[doctest] assertions: 299 | 297 passed | 2 failed |
"""
NODE = "ℹ tests 5\nℹ suites 1\nℹ pass 3\nℹ fail 1\nℹ cancelled 0\nℹ skipped 1\nℹ todo 0\nℹ duration_ms 52\n"


def test_doctest_counts_cases_not_assertions() -> None:
    assert run_tests.count_doctest(DOCTEST) == Counts(10, 2, 1)


def test_doctest_of_two_runs_that_share_the_cases() -> None:
    one = "[doctest] test cases:   7 |   6 passed | 1 failed | 13 skipped\n"
    other = "[doctest] test cases:  12 |  12 passed | 0 failed | 8 skipped\n"
    assert run_tests.count_doctest(one + other) == Counts(18, 1, 1)


def test_node_counts_both_reporters() -> None:
    assert run_tests.count_node(NODE) == Counts(3, 1, 1)
    assert run_tests.count_node(NODE.replace("ℹ", "#")) == Counts(3, 1, 1)


def test_pytest_counts_its_last_line() -> None:
    text = "3 failed in the text\n1 failed, 20 passed, 2 skipped, 1 error in 0.28s\n"
    assert run_tests.count_pytest(text) == Counts(20, 2, 2)
    assert run_tests.count_pytest("====== 16 passed in 62.1s (0:01:02) ======\n") == Counts(16, 0, 0)


def suite_of(*words: str) -> run_tests.Suite:
    return run_tests.Suite("x", [["printf", "%s\\n", *words]], run_tests.count_doctest)


def test_a_suite_without_tests_is_a_failure() -> None:
    suite = suite_of("nothing here")
    run_tests.run_suite(suite, sys.stdout)
    assert suite.counts == Counts(0, 1, 0)


def test_a_suite_that_breaks_before_its_tests_is_a_failure() -> None:
    suite = run_tests.Suite("x", [["false"], ["printf", DOCTEST]], run_tests.count_doctest)
    run_tests.run_suite(suite, sys.stdout)
    assert suite.counts == Counts(0, 1, 0)


def test_a_suite_whose_preparation_fails_is_a_failure() -> None:
    suite = run_tests.Suite("x", [["printf", DOCTEST]], run_tests.count_doctest)
    suite.preparing = subprocess.Popen(["false"])
    run_tests.run_suite(suite, sys.stdout)
    assert suite.counts == Counts(0, 1, 0)


def test_a_suite_that_passes_but_ends_badly_is_a_failure() -> None:
    text = "[doctest] test cases:  12 |  12 passed | 0 failed | 0 skipped"
    suite = run_tests.Suite("x", [["sh", "-c", f"echo '{text}'; exit 134"]], run_tests.count_doctest)
    run_tests.run_suite(suite, sys.stdout)
    assert suite.counts == Counts(12, 1, 0)


def test_what_runs_beside_the_first_is_told_in_its_turn(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    met = tmp_path / "met"
    wait = f"for i in $(seq 500); do [ -e {met} ] && break; sleep 0.01; done; [ -e {met} ] && echo first"
    first = run_tests.Suite("one", [["sh", "-c", wait]], run_tests.count_doctest)
    second = run_tests.Suite("two", [["sh", "-c", f"touch {met}; echo second"]], run_tests.count_doctest, beside=True)
    run_tests.run_all([first, second])
    said = capsys.readouterr().out
    assert re.findall(r"(?m)^(?:== )?(one|two|first|second)$", said) == ["one", "first", "two", "second"]


def test_a_suite_that_cannot_start_is_a_failure_and_the_others_run(tmp_path: Path) -> None:
    absent = run_tests.Suite("no", [[str(tmp_path / "absent")]], run_tests.count_doctest, beside=True)
    there = run_tests.Suite("yes", [["printf", DOCTEST]], run_tests.count_doctest)
    run_tests.run_all([absent, there])
    assert (absent.counts, there.counts) == (Counts(0, 1, 0), Counts(10, 2, 1))
