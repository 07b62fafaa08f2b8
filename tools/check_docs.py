"""Checks the documents: links lead to files and headings that are there, and what readers are told to type exists.

That is every `make TARGET`, and, where the command line is built, every `stepscope COMMAND --option` of it;
docs/tables.md is what the program says of its tables (--write makes it so).
"""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
LINK = re.compile(r"!?\[[^\]]*\]\(([^)\s]+)\)")


def anchors(text: str) -> set[str]:
    """The heading anchors of a page, as GitHub makes them."""
    headings = re.findall(r"(?m)^#+ (.*)$", text)
    return {re.sub(r"[^\w\- ]", "", heading.strip().lower()).replace(" ", "-") for heading in headings}


def faults_of(path: Path, root: Path, targets: set[str]) -> list[str]:
    text = path.read_text()
    where = path.relative_to(root)
    faults = []
    for link in LINK.findall(text):
        if re.match(r"[a-z]+:", link):
            continue
        name, _, anchor = link.partition("#")
        target = path.parent / name if name else path
        if not target.exists():
            faults.append(f"{where}: links to {link}, which does not exist")
        elif anchor and target.suffix == ".md" and anchor not in anchors(target.read_text()):
            faults.append(f"{where}: links to {link}, but there is no such heading")
    for called in re.findall(r"(?m)(?:`|^\s*(?:\$ )?)make ([a-z]+)\b", text):
        if called not in targets:
            faults.append(f"{where}: says make {called}, but the Makefile has no such target")
    return faults


def commands_in(text: str) -> list[tuple[str, list[str]]]:
    """(subcommand, its options) of each `stepscope …` in code; what follows a bare -- is someone else's."""
    code = re.findall(r"(?ms)^```\w*\n(.*?)^```", text) + re.findall(r"`([^`\n]+)`", text)
    found = []
    for line in "\n".join(code).splitlines():
        if line.startswith("stepscope: "):  # what it says, and nobody types
            continue
        typed = re.search(r"(?<!from)(?:^|[\s/])stepscope ([a-z][a-z_-]*)\b(.*)", line.split("#")[0])
        if typed:
            found.append((typed[1], re.findall(r"(?<=\s)--[a-z][a-z_-]*", re.split(r"\s--(?:\s|$)", typed[2])[0])))
    return found


def help_of(program: Path, command: str) -> str:
    done = subprocess.run([str(program), command, "--help"], text=True, capture_output=True, check=False)
    return done.stdout if done.returncode == 0 else ""


def command_faults(path: Path, root: Path) -> list[str]:
    program = root / "build" / "stepscope"
    if not program.exists():
        return []
    faults = []
    for command, options in commands_in(path.read_text()):
        told = help_of(program, command)
        if not told:
            faults.append(f"{path.relative_to(root)}: says stepscope {command}, which is no command")
        for option in options:
            if told and not re.search(rf"(?<![\w-]){option}(?![\w-])", told):
                faults.append(f"{path.relative_to(root)}: says stepscope {command} {option}, which is no option of it")
    return faults


# Recordings that together have nearly every table of the answers: a rank of two, what profilers record on request,
# rounds of a serving engine, an execution trace.
SAMPLES = [f"tests/traces/{name}.json" for name in ("two_ranks/rank0", "tiny_rich", "tiny_serving", "tiny_graph")]


def tables_page() -> str | None:
    """docs/tables.md as the built program makes it; None without one."""
    program = ROOT / "build" / "stepscope"
    if not program.exists():
        return None
    told = subprocess.run(
        [str(program), "schema", "--markdown", "--no-cache", "--of", *SAMPLES],
        cwd=ROOT,
        text=True,
        capture_output=True,
        check=True,
    )
    return told.stdout


def tables_faults(write: bool) -> list[str]:
    page = ROOT / "docs" / "tables.md"
    told = tables_page()
    if told is None or (page.exists() and page.read_text() == told):
        return []
    if write:
        page.write_text(told)
        return []
    return ["docs/tables.md is not what the program says of its tables: make docs"]


def main() -> int:
    written = tables_faults("--write" in sys.argv[1:])
    targets = set(re.findall(r"(?m)^([a-z-]+):", (ROOT / "Makefile").read_text()))
    listed = subprocess.run(
        ["git", "ls-files", "-co", "--exclude-standard", "*.md"], cwd=ROOT, text=True, capture_output=True, check=True
    )
    pages = [ROOT / name for name in sorted(listed.stdout.split()) if (ROOT / name).exists()]
    faults = [fault for page in pages for fault in faults_of(page, ROOT, targets)]
    # Plans speak of what is not there yet.
    faults += [fault for page in pages if "plan" not in page.parts for fault in command_faults(page, ROOT)]
    faults += written
    print("\n".join(faults), end="\n" if faults else "")
    return 1 if faults else 0


if __name__ == "__main__":
    sys.exit(main())
