"""Checks that every include, web import and Python import goes the way docs/architecture.md allows.

The rules are the fenced blocks `layers` and `web-layers` of that document, one room per line:

    ROOM[!] [SHARED_HEADER…]: ALLOWED_ROOM…

A room may only allow rooms of lines above it, so the rules cannot hold a circle. `!` marks a registry room, whose files
include each other only through the shared headers and within the subfolder (or header) of their own name. Each fault is
one line: file:line, the room it is in, what it reaches for, and why that is refused.
"""

from __future__ import annotations

import ast
import re
import sys
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

RULE = re.compile(r"^(?P<room>[a-z_]+)(?P<registry>!?)(?P<shared>[^:]*):(?P<allowed>.*)$")
INCLUDE = re.compile(r'^\s*#\s*include\s+"([^"]+)"')
IMPORT = re.compile(r"""(?:\bfrom|\bimport|\bimport\()\s*["'](\.[^"']*)["']""")


@dataclass
class Room:
    name: str
    registry: bool
    shared: list[str] = field(default_factory=list)
    allowed: list[str] = field(default_factory=list)


def read_rules(text: str, block: str) -> tuple[dict[str, Room], list[str]]:
    """The rooms of one fenced block, and what is wrong with the rules themselves."""
    found = re.search(rf"^```{block}\n(.*?)^```", text, re.MULTILINE | re.DOTALL)
    if not found:
        return {}, [f"docs/architecture.md: there is no block ```{block}"]
    rooms: dict[str, Room] = {}
    faults = []
    for line in filter(None, found[1].splitlines()):
        rule = RULE.match(line)
        if not rule or rule["room"] in rooms:
            faults.append(f"docs/architecture.md: not a rule, or a second one for its room: {line}")
            continue
        allowed = rule["allowed"].split()
        for name in allowed:
            if name not in rooms:
                faults.append(f"docs/architecture.md: {rule['room']} allows {name}, which no line above it lists")
        rooms[rule["room"]] = Room(rule["room"], bool(rule["registry"]), rule["shared"].split(), allowed)
    return rooms, faults


def same_entry(file: Path, target: Path) -> bool:
    """Do both belong to one entry of a registry room: name.cc, name.h and all under name/ (paths within the room)?"""
    return file.parts[0].split(".")[0] == target.parts[0].split(".")[0]


def judge(rooms: dict[str, Room], file: Path, target: Path) -> str | None:
    """Why a file may not reach for a target, both paths from the folder of rooms; None where it may."""
    room = rooms[file.parts[0]]
    if target.parts[0] not in rooms:
        return "which is no room: write the path from the folder of rooms"
    if target.parts[0] != room.name:
        return None if target.parts[0] in room.allowed else f"but {room.name} may not use {target.parts[0]}"
    if not room.registry:
        return None
    inside = Path(*target.parts[1:])
    if str(inside) in room.shared or same_entry(Path(*file.parts[1:]), inside):
        return None
    return f"but files of the registry room {room.name} do not use each other: what two share moves down a layer"


def check_cpp(root: Path, rooms: dict[str, Room]) -> Iterator[str]:
    source = root / "src"
    for path in sorted([*source.rglob("*.h"), *source.rglob("*.cc")]):
        file = path.relative_to(source)
        if path.name.endswith(("_test.cc", "_fixture.h")):
            continue
        if file.parts[0] not in rooms:
            yield f"src/{file}:1: {file.parts[0]} is no room of docs/architecture.md"
            continue
        for number, line in enumerate(path.read_text(errors="replace").splitlines(), 1):
            include = INCLUDE.match(line)
            # The public headers (include/stepscope) stand on nothing and are free for all.
            if not include or include[1].startswith("stepscope/"):
                continue
            why = judge(rooms, file, Path(include[1]))
            if why:
                yield f"src/{file}:{number}: {file.parts[0]} includes {include[1]}, {why}"


def check_lists(root: Path) -> Iterator[str]:
    for path in sorted((root / "src").glob("*/*.list")):
        names = [line for line in path.read_text().splitlines() if re.match("[a-z]", line)]
        where = path.relative_to(root)
        for number, name in enumerate(names, 1):
            if not (path.parent / f"{name}.cc").exists():
                yield f"{where}:{number}: lists {name}, but {where.parent}/{name}.cc does not exist"
            if name in names[: number - 1]:
                yield f"{where}:{number}: lists {name} twice"
        for source in sorted(path.parent.glob("*.cc")):
            if f"_{suffix_of(path)}() {{" in source.read_text(errors="replace") and source.stem not in names:
                yield f"{where}:1: does not list {source.stem}, though {where.parent}/{source.name} defines an entry"


def suffix_of(path: Path) -> str:
    """readers.list → reader, analyses.list → analysis: the suffix of the functions that a list names."""
    return re.sub("ses$", "sis", path.stem) if path.stem.endswith("ses") else path.stem.rstrip("s")


def check_web(root: Path, rooms: dict[str, Room]) -> Iterator[str]:
    source = (root / "web" / "src").resolve()
    for path in sorted([*source.rglob("*.ts"), *source.rglob("*.tsx")]):
        file = path.relative_to(source)
        if ".test." in path.name or path.name.endswith(".d.ts"):
            continue
        # Files beside the folders start the page: they belong to its top layer.
        inside = file if len(file.parts) > 1 else Path("app") / file
        if inside.parts[0] not in rooms:
            yield f"web/src/{file}:1: {inside.parts[0]} is no layer of docs/architecture.md"
            continue
        for number, line in enumerate(path.read_text(errors="replace").splitlines(), 1):
            for imported in IMPORT.findall(line):
                target = (path.parent / imported).resolve()
                if not target.is_relative_to(source):
                    continue
                reached = target.relative_to(source)
                if len(reached.parts) == 1:
                    reached = Path("app") / reached
                # panels/index.ts is the list of all panels, as a .list file is in C++.
                why = None if inside.name == "index.ts" else judge(rooms, inside, reached)
                if why:
                    yield f"web/src/{file}:{number}: {inside.parts[0]} imports {imported}, {why}"


def imports_at_load(tree: ast.Module) -> Iterator[tuple[int, str]]:
    """(line, top package) of what loading a module imports: functions and `if TYPE_CHECKING:` are left out."""
    waiting: list[ast.stmt] = list(tree.body)
    while waiting:
        node = waiting.pop(0)
        if isinstance(node, ast.Import):
            for alias in node.names:
                yield node.lineno, alias.name.split(".")[0]
        elif isinstance(node, ast.ImportFrom) and node.level == 0 and node.module:
            yield node.lineno, node.module.split(".")[0]
        elif isinstance(node, ast.If) and "TYPE_CHECKING" in ast.dump(node.test):
            waiting.extend(node.orelse)
        elif not isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)):
            for name in ("body", "orelse", "finalbody"):
                waiting.extend(child for child in getattr(node, name, []) if isinstance(child, ast.stmt))


# Modules that are there for one library, and derive from its classes.
MADE_FOR = {"huggingface.py": {"transformers"}, "lightning.py": {"lightning", "pytorch_lightning"}}


def check_python(root: Path) -> Iterator[str]:
    standard = getattr(sys, "stdlib_module_names", None)
    if standard is None:  # Python 3.9 does not know its own library; CI's Python does
        return
    own = {*standard, "stepscope"}
    # The hooks are loaded from a folder of their own, by the names that stand in it.
    own |= {path.stem for path in (root / "python/stepscope/hooks").glob("*")}
    for path in sorted((root / "python").rglob("*.py")):
        for line, package in imports_at_load(ast.parse(path.read_text())):
            if package not in own | MADE_FOR.get(path.name, set()):
                where = path.relative_to(root)
                yield f"{where}:{line}: imports {package} when loaded: import it inside the function that uses it"


def check(root: Path) -> list[str]:
    """Every fault of the tree under `root`, one line each; empty when all is well."""
    text = (root / "docs" / "architecture.md").read_text()
    rooms, faults = read_rules(text, "layers")
    web_rooms, web_faults = read_rules(text, "web-layers")
    faults += web_faults
    if faults:
        return faults
    return [*check_cpp(root, rooms), *check_lists(root), *check_web(root, web_rooms), *check_python(root)]


def main() -> int:
    faults = check(Path(sys.argv[1]) if len(sys.argv) > 1 else Path(__file__).resolve().parent.parent)
    print("\n".join(faults), end="\n" if faults else "")
    return 1 if faults else 0


if __name__ == "__main__":
    sys.exit(main())
