"""Every C++ file by itself: does it include what it uses?

Builds compile files in batches over a precompiled standard library, which is fast and hides a missing include. To parse
each file alone takes minutes; so this looks, in seconds, at the names that stand in a file: those of the standard
library, and our types that one header alone declares.

    check_includes.py
"""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
SOURCES = ROOT / "src"

# Names of the standard library, and the headers of which one brings them.
NAMES: dict[str, tuple[str, ...]] = {
    r"vector": ("vector",),
    r"string|to_string|stoi": ("string",),
    r"string_view": ("string_view", "string"),
    r"array": ("array",),
    r"map|multimap": ("map",),
    r"set|multiset": ("set",),
    r"unordered_map": ("unordered_map",),
    r"unordered_set": ("unordered_set",),
    r"deque": ("deque",),
    r"optional|nullopt": ("optional",),
    r"variant|monostate|get_if|visit": ("variant",),
    r"function": ("functional",),
    r"span": ("span",),
    r"unique_ptr|shared_ptr|make_unique|make_shared|weak_ptr": ("memory",),
    r"sort|stable_sort|partial_sort|nth_element|find_if|any_of|all_of|none_of|lower_bound|upper_bound|max_element"
    r"|min_element|transform|count_if|remove_if|reverse|is_sorted|unique": ("algorithm",),
    r"from_chars|to_chars": ("charconv",),
    r"ifstream|ofstream|fstream": ("fstream",),
    r"ostringstream|istringstream|stringstream": ("sstream",),
    r"filesystem": ("filesystem",),
    r"thread|this_thread": ("thread",),
    r"mutex|lock_guard|unique_lock": ("mutex", "condition_variable"),
    r"atomic": ("atomic",),
    r"chrono": ("chrono",),
    r"numeric_limits": ("limits",),
    r"tuple|tie": ("tuple", "map"),
    r"accumulate|iota": ("numeric",),
    r"isfinite|isnan|llround|lround|floor|ceil|sqrt": ("cmath",),
    r"bitset": ("bitset",),
    r"regex": ("regex",),
}
PATTERNS = [(re.compile(rf"\bstd::({names})\b"), headers) for names, headers in NAMES.items()]
INCLUDE = re.compile(r'^\s*#\s*include\s+(?:<([^>]+)>|"([^"]+)")', re.MULTILINE)
TEXTS = re.compile(r'//[^\n]*|R"(\w*)\((?s:.*?)\)\1"|"(?:\\.|[^"\\\n])*"')


def sources() -> list[Path]:
    listed = subprocess.run(
        ["git", "ls-files", "-co", "--exclude-standard", "src/*.cc", "src/*.h"],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=True,
    ).stdout.split()
    return [ROOT / name for name in listed if (ROOT / name).is_file()]


class Includes:
    """What a file gets by its own includes and those of our headers: names of the system's headers, paths of ours."""

    def __init__(self) -> None:
        self.known: dict[Path, tuple[set[str], set[Path]]] = {}

    def of(self, path: Path) -> set[str]:
        return self._of(path)[0]

    def files(self, path: Path) -> set[Path]:
        return self._of(path)[1]

    def _of(self, path: Path) -> tuple[set[str], set[Path]]:
        if path not in self.known:
            self.known[path] = (set(), set())  # a circle ends here
            system_found: set[str] = set()
            own_found: set[Path] = set()
            for system, own in INCLUDE.findall(path.read_text(encoding="utf-8")):
                if system:
                    system_found.add(system)
                elif (header := SOURCES / own).is_file():
                    below = self._of(header)
                    system_found |= below[0]
                    own_found |= below[1] | {header}
            self.known[path] = (system_found, own_found)
        return self.known[path]


def missing_of_standard() -> list[str]:
    includes, wrong = Includes(), []
    for path in sources():
        code = TEXTS.sub("", path.read_text(encoding="utf-8"))
        for pattern, headers in PATTERNS:
            used = pattern.search(code)
            if used and not includes.of(path).intersection(headers):
                wrong.append(f"{path.relative_to(ROOT)}: std::{used[1]} without <{headers[0]}>")
    return wrong


# ---- our own headers ----

DECLARED = re.compile(r"^(?:struct|class|enum class|using) (\w+)", re.MULTILINE)
ANYWHERE = re.compile(r"\b(?:struct|class|enum class|using|typename|concept) (\w+)")
PARAMETERS = re.compile(r"\btemplate\s*<([^{};()]*)>")
USED = re.compile(r"(?<![\w.>])([A-Z]\w+)\b")


def declared_once(codes: dict[Path, str]) -> dict[str, Path]:
    """Types that one header declares, and no other file anywhere."""
    places: dict[str, set[Path]] = {}
    outside: dict[str, set[Path]] = {}
    for path, code in codes.items():
        for name in ANYWHERE.findall(PARAMETERS.sub("", code)):
            places.setdefault(name, set()).add(path)
        for name in DECLARED.findall(code):
            outside.setdefault(name, set()).add(path)
    one = {name: next(iter(found)) for name, found in places.items() if len(found) == 1}
    return {name: path for name, path in one.items() if path.suffix == ".h" and name in outside}


def missing_of_our_own() -> list[str]:
    codes = {path: TEXTS.sub("", path.read_text(encoding="utf-8")) for path in sources()}
    once = declared_once(codes)
    includes, wrong = Includes(), []
    for path, code in codes.items():
        parameters = {name for listed in PARAMETERS.findall(code) for name in re.findall(r"\w+", listed)}
        for name in sorted(set(USED.findall(code)) - parameters):
            header = once.get(name)
            if header is not None and header != path and header not in includes.files(path):
                wrong.append(f"{path.relative_to(ROOT)}: {name} without {header.relative_to(SOURCES)}")
    return wrong


def main() -> int:
    wrong = missing_of_standard() + missing_of_our_own()
    print("\n".join(wrong))
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
