"""hatchling's part of `pip install .`: puts the built command line and library into the wheel.

Both need libraries of the machine that built them, so the wheel is for this machine; `make dist` carries them along.
"""

from __future__ import annotations

import sysconfig
from pathlib import Path
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface


class WheelHook(BuildHookInterface):  # type: ignore[misc]
    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        if version == "editable":  # finds them in build/, whenever that is made
            return
        build = Path(self.root, "build")
        inside = {
            build / "stepscope": "stepscope/bin/stepscope",
            build / "libstepscope.so": "stepscope/libstepscope.so",
        }
        missing = [path.name for path in inside if not path.is_file()]
        if missing:
            raise SystemExit(f"stepscope: {' and '.join(missing)} not found in {build}: run `make build` first")
        build_data["force_include"].update({str(path): name for path, name in inside.items()})
        build_data["tag"] = "py3-none-" + sysconfig.get_platform().replace("-", "_").replace(".", "_")
        build_data["pure_python"] = False
