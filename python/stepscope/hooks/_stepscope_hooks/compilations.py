"""What torch.compile compiled in this process, and why again: torch's own list, asked for when a note is written.

torch keeps the newest 64 entries, one for each forward and each backward pass, with the guard that failed. Nothing runs
while it compiles, and torch's compiler is never loaded for this.
"""

from __future__ import annotations

import os
import re
import sys

from . import program_code

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    # Start (Unix µs), µs, which piece of code, how often that had been compiled before, the guard that failed ("": of a
    # backward pass, or torch does not say), and file, line and function of the program that it is about ("", 0, "").
    Compilation = tuple[int, int, str, int, str, str, int, str]

MOST_CHARACTERS = 300  # of a guard
_IDS = re.compile(r"^(?:\d+/\d+: )+")
_MEMBER = re.compile(r"\._(?:modules|parameters|buffers)\['(\w+)'\]")  # as torch keeps what a program writes as .name
_FRAME = re.compile(r'File "([^"]+)", line (\d+), in (\S+)')

# Of the program, as asked for before: when Python ends it has forgotten where the main one lies.
_own: dict[str, str] = {}


def told() -> list[Compilation]:
    """Oldest first; empty: none, or this torch does not say."""
    utils = sys.modules.get("torch._dynamo.utils")
    listed = getattr(utils, "get_compilation_metrics", None)
    entries = [] if listed is None else list(listed())
    if not entries:
        return []
    _own.update(program_code.own_files())
    found = [_compilation(one) for one in entries]
    return [one for one in found if one is not None]


def _compilation(entry: Any) -> Compilation | None:
    start, took = getattr(entry, "start_time_us", None), getattr(entry, "duration_us", None)
    frame, _, attempt = str(getattr(entry, "compile_id", "")).rpartition("/")
    if start is None or took is None or not attempt.isdigit():
        return None
    reason = str(getattr(entry, "recompile_reason", None) or "")
    guard = _IDS.sub("", reason.split("\n", 1)[0].split("  #", 1)[0]).strip()
    guard = _MEMBER.sub(r".\1", guard)[:MOST_CHARACTERS]
    file, line, function = _place(entry, reason)
    return int(start), int(took), frame, int(attempt), guard, file, line, function


def _place(entry: Any, reason: str) -> tuple[str, int, str]:
    """Where the program asks for what the guard is about, else the function that is compiled."""
    compiled = (getattr(entry, name, None) for name in ("co_filename", "co_firstlineno", "co_name"))
    for file, line, function in (*reversed(_FRAME.findall(reason)), tuple(compiled)):
        if not file or str(file).startswith("<"):
            continue
        own = _own.get(os.path.abspath(str(file)))
        if own is not None:
            return program_code.shown(own), int(line or 0), str(function or "")
    return "", 0, ""
