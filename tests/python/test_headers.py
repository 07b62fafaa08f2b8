"""The installed headers as C and C++ programs meet them: compiled without a warning, linked, and run on a trace."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
TRACE = ROOT / "tests" / "traces" / "tiny_train.json"
STRICT = ["-Wall", "-Wextra", "-pedantic", "-Werror"]

C_PROGRAM = r"""
#include <stepscope/stepscope.h>
#include <stdio.h>

int main(int argc, char **argv) {
  const char *paths[1];
  stepscope_options options = {0};
  char *error = NULL;
  stepscope_run *run;
  paths[0] = argv[argc - 1];
  options.struct_size = sizeof options;
  run = stepscope_open(paths, 1, &options, &error);
  printf("%d %s\n", stepscope_abi_version() == STEPSCOPE_ABI_VERSION, run != NULL ? "opened" : error);
  stepscope_free_text(error);
  stepscope_close(run);
  return run == NULL;
}
"""


@pytest.fixture(scope="module")
def installed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    if not (ROOT / "build" / "libstepscope.so").exists():
        pytest.fail("build/libstepscope.so is not built: make build")
    prefix = tmp_path_factory.mktemp("installed")
    command = ["cmake", "--install", "build", "--prefix", str(prefix), "--component", "product"]
    subprocess.run(command, cwd=ROOT, check=True, capture_output=True)
    return prefix


def compiler(language: str) -> str:
    """What the user chose, else what the build needs anyway."""
    names = {"c": (os.environ.get("CC"), "cc", "gcc", "clang"), "c++": (os.environ.get("CXX"), "c++", "g++", "clang++")}
    found = next((name for name in names[language] if name and shutil.which(name)), None)
    assert found is not None, f"no compiler of {language}"
    return found


def build(source: Path, standard: str, installed: Path) -> Path:
    program = installed / source.stem
    language = "c++" if "++" in standard else "c"
    flags = [f"-std={standard}", *STRICT, "-I", str(installed / "include"), "-L", str(installed / "lib")]
    link = ["-lstepscope", f"-Wl,-rpath,{installed / 'lib'}", "-o", str(program)]
    done = subprocess.run(
        [compiler(language), *flags, str(source), *link], text=True, capture_output=True, check=False
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    return program


def run(program: Path, trace: Path) -> subprocess.CompletedProcess[str]:
    environment = {**os.environ, "STEPSCOPE_CACHE": "off"}
    return subprocess.run([program, trace], env=environment, text=True, capture_output=True, check=False)


@pytest.mark.parametrize("standard", ["c++17", "c++20"])
def test_the_example_in_cpp(standard: str, installed: Path) -> None:
    program = build(ROOT / "examples" / "read_trace.cc", standard, installed)
    done = run(program, TRACE)
    assert done.returncode == 0, done.stderr
    slices, report = done.stdout.split("\n", 1)
    assert slices == f"{TRACE.read_text().count(chr(34) + 'X' + chr(34))} slices"
    answers = json.loads(report)["answers"]
    assert list(answers) == ["steps"]
    assert answers["steps"]["scalars"]["step_time_median_ns"]["value"] == 1_000_000
    refused = run(program, TRACE.parent / "none.json")
    assert refused.returncode == 1
    assert json.loads(refused.stderr)["kind"] == "not_found"


def test_a_program_in_c99(installed: Path) -> None:
    source = installed / "program.c"
    source.write_text(C_PROGRAM)
    program = build(source, "c99", installed)
    assert run(program, TRACE).stdout == "1 opened\n"
    refused = run(program, TRACE.parent / "none.json")
    assert refused.returncode == 1
    assert '"not_found"' in refused.stdout
