"""Golden text tests: a command, and every byte that it prints.

Each `*.golden` file here is one test; there is no index. It reads:

    # what the test is about, one line or more
    $ stepscope report tests/traces/tiny_train.json
    # environment: COLUMNS=60 NO_COLOR=1        (optional)
    exit 0
    --- stdout
    …
    --- stderr
    …

The command runs in the repository's root through the shell, without a cache. The commit in the output is written as
COMMIT. To write the expected part again after a wanted change, then read the difference:

    python3 tests/golden/test_golden.py --regenerate [NAME…]
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
from dataclasses import dataclass, field
from pathlib import Path

import pytest

HERE = Path(__file__).resolve().parent
ROOT = HERE.parent.parent
PLAIN = {"LC_ALL": "C.UTF-8", "COLUMNS": "80", "STEPSCOPE_CACHE": "off"}


@dataclass
class Golden:
    what: list[str] = field(default_factory=list)
    command: str = ""
    environment: dict[str, str] = field(default_factory=dict)
    expected: str = ""


def read(path: Path) -> Golden:
    golden = Golden()
    lines = path.read_text().splitlines(keepends=True)
    for number, line in enumerate(lines):
        if line.startswith("# environment: "):
            golden.environment = dict(pair.split("=", 1) for pair in line.split()[2:])
        elif line.startswith("# "):
            golden.what.append(line)
        elif line.startswith("$ "):
            golden.command = line[2:].strip()
        else:
            golden.expected = "".join(lines[number:])
            break
    assert golden.what and golden.command, f"{path.name}: wants '# what' and '$ command' first"
    return golden


def text_of(golden: Golden) -> str:
    environment = "".join(f" {name}={value}" for name, value in golden.environment.items())
    head = "".join(golden.what) + f"$ {golden.command}\n"
    return head + (f"# environment:{environment}\n" if environment else "")


def run(golden: Golden, stepscope: Path) -> str:
    keep = {
        name: os.environ[name] for name in ("HOME", "TMPDIR", "ASAN_OPTIONS", "UBSAN_OPTIONS") if name in os.environ
    }
    path = f"{stepscope.parent}:{os.environ['PATH']}"
    done = subprocess.run(
        ["bash", "-c", golden.command],
        cwd=ROOT,
        env={**keep, "PATH": path, **PLAIN, **golden.environment},
        stdin=subprocess.DEVNULL,
        capture_output=True,
        timeout=120,
        check=False,
    )
    output = f"exit {done.returncode}\n--- stdout\n{done.stdout.decode()}--- stderr\n{done.stderr.decode()}"
    output = re.sub(
        r'^commit \S+|(?<="commit": )"[^"]+"',
        lambda m: "commit COMMIT" if m[0][0] == "c" else '"COMMIT"',
        output,
        flags=re.M,
    )
    return output.replace(str(ROOT), "ROOT")


@pytest.mark.parametrize("path", sorted(HERE.glob("*.golden")), ids=lambda path: path.stem)
def test_golden(path: Path, stepscope: Path) -> None:
    golden = read(path)
    assert run(golden, stepscope) == golden.expected


def regenerate(names: list[str]) -> None:
    stepscope = Path(os.environ.get("STEPSCOPE_CLI", ROOT / "build" / "stepscope"))
    for path in sorted(HERE.glob("*.golden")):
        if names and path.stem not in names:
            continue
        golden = read(path)
        output = run(golden, stepscope)
        if output != golden.expected:
            path.write_text(text_of(golden) + output)
            print(f"wrote {path.name}")


if __name__ == "__main__":
    if sys.argv[1:2] != ["--regenerate"]:
        sys.exit(f"usage: {sys.argv[0]} --regenerate [NAME…]")
    regenerate(sys.argv[2:])
