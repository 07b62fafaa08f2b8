"""hatchling's part of a wheel: puts the built command line, library and page into it.

`pip install .` takes what `make build` made, which needs libraries of this machine: that wheel is for this machine.
`make wheel` takes the dist folder (STEPSCOPE_DIST), which carries its libraries: that wheel is for every Linux with
this processor and a C library as new as the one that the programs need, and its tag says so (manylinux, PEP 600).
"""

from __future__ import annotations

import os
import platform
import re
import sysconfig
from pathlib import Path
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface


class WheelHook(BuildHookInterface):  # type: ignore[misc]
    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        if version == "editable":  # finds them in build/, whenever that is made
            return
        dist = os.environ.get("STEPSCOPE_DIST")
        inside, system = of_dist(Path(dist)) if dist else of_build(Path(self.root, "build"))
        build_data["force_include"].update({str(path): name for path, name in inside.items()})
        build_data["tag"] = f"py3-none-{system}"
        build_data["pure_python"] = False


def of_build(build: Path) -> tuple[dict[Path, str], str]:
    inside = {
        build / "stepscope": "stepscope/bin/stepscope",
        build / "libstepscope.so": "stepscope/lib/libstepscope.so",
    }
    missing = [path.name for path in inside if not path.is_file()]
    if missing:
        raise SystemExit(f"stepscope: {' and '.join(missing)} not found in {build}: run `make build` first")
    return inside, sysconfig.get_platform().replace("-", "_").replace(".", "_")


def of_dist(dist: Path) -> tuple[dict[Path, str], str]:
    """Programs there find lib/ beside bin/, in the wheel as well."""
    needed = re.search(r"GLIBC_(\d+)\.(\d+)", (dist / "README.txt").read_text())
    if needed is None:
        raise SystemExit(f"stepscope: {dist}/README.txt does not say which C library is needed: run `make dist` again")
    files = [dist / "bin" / "stepscope", *sorted((dist / "lib").iterdir())]
    inside = {path: f"stepscope/{path.relative_to(dist)}" for path in files}
    return inside, f"manylinux_{needed[1]}_{needed[2]}_{platform.machine()}"
