"""Writes THIRD_PARTY_NOTICES from what the build really links or bundles, or checks that it is up to date.

    tools/notices.py [--check] BUILD

What counts: the headers that the compiler read (Ninja's dependency log) and the libraries named in the link commands
of the products, so far as they lie outside the repository and are no part of the C and C++ run time; and the npm
packages that the page's bundle holds (web/third_party.json, which the bundler's own list makes). Licence texts come
from the Debian packages of those files (/usr/share/doc/PACKAGE/copyright) and from the npm packages.
"""

from __future__ import annotations

import argparse
import json
import re
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
NOTICES = ROOT / "THIRD_PARTY_NOTICES"
# The C library, the kernel's headers and what the compiler brings are the platform, not third parties.
PLATFORM = re.compile(r"^(libc6|linux-libc-dev|libgcc|libcrypt|g\+\+|gcc)")
PRODUCTS = ("stepscope", "libstepscope.so")


def ninja(build: Path, *tool: str) -> str:
    return subprocess.run(["ninja", "-C", build, "-t", *tool], text=True, capture_output=True, check=True).stdout


def read_headers(build: Path) -> set[str]:
    """Every file that compiling the products read, as the compiler itself reported it (tests are no product)."""
    found: set[str] = set()
    product = False
    for line in ninja(build, "deps").splitlines():
        if not line.startswith(" "):
            product = bool(re.match(r"CMakeFiles/stepscope(_core|_shared)?\.dir/", line))
        elif product and line.startswith("    /"):
            found.add(line.strip())
    return found


def linked_libraries(build: Path) -> set[str]:
    """Library files in the link commands of the products."""
    commands = [ninja(build, "commands", product) for product in PRODUCTS if (build / product).exists()]
    return set(re.findall(r"/\S+?\.(?:a|so)(?:\.[\d.]+)?(?=\s|$)", "\n".join(commands)))


def packages_of(files: set[str]) -> set[str]:
    """Source-package documents of files: the Debian binary packages that own them."""
    outside = sorted({str(Path(name).resolve()) for name in files} - {name for name in files if str(ROOT) in name})
    if not outside:
        return set()
    told = subprocess.run(["dpkg", "-S", *outside], text=True, capture_output=True, check=False).stdout
    owners = {line.split(":")[0] for line in told.splitlines() if not line.startswith("diversion")}
    return {owner for owner in owners if not PLATFORM.match(owner)}


def source_of(package: str) -> tuple[str, str, str]:
    """(source name, upstream version, homepage) of a Debian package."""
    query = "${source:Package}\\t${source:Upstream-Version}\\t${Homepage}"
    told = subprocess.run(["dpkg-query", "-W", f"-f={query}\\n", package], text=True, capture_output=True, check=True)
    name, version, homepage = told.stdout.splitlines()[0].split("\t")
    return name, version, homepage


def debian_entries(build: Path) -> list[tuple[str, str]]:
    """(heading, licence text) of each linked source, once."""
    entries: dict[str, tuple[str, str]] = {}
    for package in sorted(packages_of(read_headers(build) | linked_libraries(build))):
        name, version, homepage = source_of(package)
        name = re.sub(r"^gcc-\d+$", "gcc", name)  # its run-time libraries; the number is the distribution's choice
        text = Path("/usr/share/doc", package, "copyright").read_text(errors="replace")
        entries.setdefault(name, (f"{name} {version} ({homepage})", text.strip()))
    return [entries[name] for name in sorted(entries)]


def npm_entries() -> list[tuple[str, str]]:
    path = ROOT / "web" / "third_party.json"
    if not path.exists():
        return []
    return [
        (f"{item['name']} {item['version']} (npm, {item['license']})", item["text"].strip())
        for item in json.loads(path.read_text())
    ]


def render(entries: list[tuple[str, str]]) -> str:
    rule = "=" * 100
    head = (
        "stepscope is under the Apache License 2.0 (LICENSE). What it links or bundles, and under which terms.\n"
        "Made by tools/notices.py (make notices) from the build itself; not edited by hand.\n\n"
    )
    listed = "".join(f"  {heading}\n" for heading, _ in entries)
    return head + listed + "".join(f"\n{rule}\n{heading}\n{rule}\n\n{text}\n" for heading, text in entries)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("build", type=Path)
    parser.add_argument("--check", action="store_true", help="only say what is missing or too much")
    options = parser.parse_args()
    if not (options.build / "stepscope").exists():
        # A build that stopped half way would make a list that looks whole and is not.
        print(f"{options.build} holds no stepscope: finish the build first (make build)")
        return 1
    entries = [*debian_entries(options.build), *npm_entries()]
    if not options.check:
        NOTICES.write_text(render(entries))
        print(f"wrote {NOTICES.name}: {len(entries)} entries")
        return 0
    # Versions differ between distributions; the set of names must not.
    text = NOTICES.read_text() if NOTICES.exists() else ""
    listed = set(re.findall(r"(?m)^  (\S+) \S+ \(", text))
    linked = {heading.split(" ")[0] for heading, _ in entries}
    for name in sorted(linked - listed):
        print(f"THIRD_PARTY_NOTICES does not hold {name}, which is linked or bundled: make notices")
    for name in sorted(listed - linked):
        print(f"THIRD_PARTY_NOTICES holds {name}, which is neither linked nor bundled: make notices")
    return 1 if linked != listed else 0


if __name__ == "__main__":
    sys.exit(main())
