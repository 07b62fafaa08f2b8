"""The documents' check sees dead links, headings, targets and options; this repository's documents are clean."""

from __future__ import annotations

from pathlib import Path

import check_docs


def test_faults_are_named(tmp_path: Path) -> None:
    page = tmp_path / "a.md"
    (tmp_path / "b.md").write_text("# The Run folder\n")
    page.write_text(
        "[x](b.md#the-run-folder) [y](b.md#gone) [z](c.md) [w](https://example.org)\n`make tea` `make test`\n"
    )
    assert check_docs.faults_of(page, tmp_path, {"test"}) == [
        "a.md: links to b.md#gone, but there is no such heading",
        "a.md: links to c.md, which does not exist",
        "a.md: says make tea, but the Makefile has no such target",
    ]


def test_commands_are_found_in_code_only() -> None:
    text = (
        "stepscope talk --no\n```\nbuild/stepscope run --out x -- t.py --lr 1  # stepscope no\n```\n`stepscope doctor`"
        "\n```\nstepscope: x is no trace that stepscope knows\n```\n`from stepscope import Analyzer`"
    )
    assert check_docs.commands_in(text) == [("run", ["--out"]), ("doctor", [])]


def test_an_unknown_command_or_option_is_a_fault(tmp_path: Path) -> None:
    program = tmp_path / "build" / "stepscope"
    program.parent.mkdir()
    program.write_text('#!/bin/sh\n[ "$1" = report ] && echo "  --json  One object"\n')
    program.chmod(0o755)
    page = tmp_path / "a.md"
    page.write_text("`stepscope report --json` `stepscope report --jso` `stepscope brew`")
    assert check_docs.command_faults(page, tmp_path) == [
        "a.md: says stepscope report --jso, which is no option of it",
        "a.md: says stepscope brew, which is no command",
    ]
