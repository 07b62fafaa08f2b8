"""Checks the documents: every relative link leads to a file or heading that is there, every `make TARGET` exists."""

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


def main() -> int:
    targets = set(re.findall(r"(?m)^([a-z-]+):", (ROOT / "Makefile").read_text()))
    listed = subprocess.run(
        ["git", "ls-files", "-co", "--exclude-standard", "*.md"], cwd=ROOT, text=True, capture_output=True, check=True
    )
    pages = [ROOT / name for name in sorted(listed.stdout.split()) if (ROOT / name).exists()]
    faults = [fault for page in pages for fault in faults_of(page, ROOT, targets)]
    print("\n".join(faults), end="\n" if faults else "")
    return 1 if faults else 0


if __name__ == "__main__":
    sys.exit(main())
