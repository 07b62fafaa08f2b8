"""The console script `stepscope`: becomes the real program."""

from __future__ import annotations

import os
import sys
from pathlib import Path

from stepscope._errors import StepscopeError


def find_program() -> Path:
    """The built command line: $STEPSCOPE_CLI, in a wheel's or dist folder's bin, in the build tree."""
    chosen = os.environ.get("STEPSCOPE_CLI")
    if chosen:
        return Path(chosen)
    package = Path(__file__).resolve().parent
    root = package.parent.parent
    folders = [package / "bin", package.parent / "bin", root / "bin", root, root / "build"]
    for path in (folder / "stepscope" for folder in folders):
        if path.is_file() and os.access(path, os.X_OK):
            return path
    raise StepscopeError(
        "the program stepscope was not found",
        "not_found",
        hint="Build it with `make build`, or set STEPSCOPE_CLI to its path",
    )


def main() -> int:
    try:
        program = find_program()
        os.execv(program, [str(program), *sys.argv[1:]])
    except (StepscopeError, OSError) as problem:
        print(f"stepscope: {problem}", file=sys.stderr)
        return 1
