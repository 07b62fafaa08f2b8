"""What tests/gpu/record.sh is to run on a GPU can at least be started: minutes on one are few."""

from __future__ import annotations

import importlib.util
import re
import subprocess
from pathlib import Path
from typing import Any

from jobs import needs_torch

GPU = Path(__file__).resolve().parents[1] / "gpu"
SCRIPT = (GPU / "record.sh").read_text()


def job() -> Any:
    spec = importlib.util.spec_from_file_location("gpu_job", GPU / "job.py")
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@needs_torch
def test_the_job_knows_all_options_that_it_is_given() -> None:
    calls = re.findall(r'python3 "\$job" ([^>\n]*)', SCRIPT)
    forms = {job().options().parse_args(call.split()).form for call in calls}
    assert forms == set(job().FORMS)


def test_the_command_line_knows_all_options_that_it_is_given(stepscope: Path) -> None:
    given = {"run": re.findall(r"(?m)^ +record \w+ (.*?)-- python3", SCRIPT.replace("\\\n", " "))}
    given |= {name: re.findall(rf"stepscope {name} (.*)", SCRIPT) for name in ("attach", "monitor")}
    for command, calls in given.items():
        assert calls, command
        help_text = subprocess.run([stepscope, command, "--help"], capture_output=True, text=True, check=True).stdout
        for option in re.findall(r"--[a-z-]+", " ".join(calls)):
            assert re.search(rf"(?m)^ +(-\w )?{option}\b", help_text), f"{command} {option}"
