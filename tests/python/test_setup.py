"""tools/setup.sh on machines that lack something: a folder of links plays the machine, a script plays apt-get."""

from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
TOOLS = "bash env cat tail mktemp rm ls readlink sed g++ c++ ninja git dirname"


class Machine:
    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.calls = folder / "calls"
        for name in TOOLS.split():
            found = shutil.which(name)
            if found:
                (folder / name).symlink_to(found)
        (folder / "python3").symlink_to(Path(sys.executable).resolve())
        self.put("id", "echo 0")

    def put(self, name: str, script: str) -> None:
        (self.folder / name).unlink(missing_ok=True)
        (self.folder / name).write_text(f"#!/bin/bash\n{script}\n")
        (self.folder / name).chmod(0o755)

    def put_apt(self, *, needs_update: bool = False) -> None:
        fails = f"[ $1 = update ] && : > {self.folder}/updated; [ $1 = update ] || [ -f {self.folder}/updated ]"
        self.put("apt-get", f'echo "$*" >> {self.calls}\n' + (fails if needs_update else "exit 0"))

    def set_up(self, *targets: str, **more: str) -> subprocess.CompletedProcess[str]:
        env = {"PATH": str(self.folder), **more}
        command = ["bash", str(ROOT / "tools" / "setup.sh"), *(targets or ["build"])]
        return subprocess.run(command, env=env, text=True, capture_output=True, check=False)


@pytest.fixture
def machine(tmp_path: Path) -> Machine:
    return Machine(tmp_path)


def test_only_what_is_missing_is_installed_and_lists_are_left_alone(machine: Machine) -> None:
    machine.put_apt()
    assert machine.set_up().returncode == 0
    assert machine.calls.read_text() == "install -y -q --no-install-recommends cmake\n"


def test_lists_are_fetched_when_the_package_is_unknown(machine: Machine) -> None:
    machine.put_apt(needs_update=True)
    assert machine.set_up().returncode == 0
    assert [line.split()[0] for line in machine.calls.read_text().splitlines()] == ["install", "update", "install"]


def test_nothing_missing_calls_nothing(machine: Machine) -> None:
    machine.put_apt()
    machine.put("cmake", "")
    assert machine.set_up().returncode == 0
    assert not machine.calls.exists()


def test_without_rights_one_sentence_says_what_to_install(machine: Machine) -> None:
    machine.put_apt()
    machine.put("id", "echo 1000")
    done = machine.set_up()
    assert done.returncode == 1
    assert done.stderr.count("\n") == 1
    assert "apt-get install cmake" in done.stderr


def test_sudo_is_used_where_the_user_is_not_root(machine: Machine) -> None:
    machine.put_apt()
    machine.put("id", "echo 1000")
    machine.put("sudo", f'echo "sudo $*" >> {machine.calls}; [ "$1" = -n ] || "$@"')
    assert machine.set_up().returncode == 0
    assert "install -y -q --no-install-recommends cmake" in machine.calls.read_text()


def test_without_apt_one_sentence_names_the_packages(machine: Machine) -> None:
    done = machine.set_up()
    assert done.returncode == 1
    assert "no apt-get" in done.stderr
    assert "cmake" in done.stderr


def test_node_is_a_wish_that_needs_rights_and_a_new_enough_package(machine: Machine) -> None:
    machine.put_apt()
    machine.put("apt-cache", 'echo "  Candidate: 12.22.9~dfsg-1"')
    assert machine.set_up("page").returncode == 0
    machine.put("apt-cache", 'echo "  Candidate: 18.20.4+dfsg-1"')
    machine.put("id", "echo 1000")
    assert machine.set_up("page").returncode == 0
    assert not machine.calls.exists()
    machine.put("id", "echo 0")
    assert machine.set_up("page").returncode == 0
    assert machine.calls.read_text() == "install -y -q --no-install-recommends nodejs npm\n"


def test_a_browser_is_a_wish_where_apt_has_a_real_one(machine: Machine) -> None:
    machine.put_apt()
    machine.put("apt-cache", '[ "$2" = nodejs ] && echo "  Candidate: 18.20.4+dfsg-1"')
    assert machine.set_up("browser", STEPSCOPE_CHROMIUM="/no/browser").returncode == 0
    assert not machine.calls.exists()
    machine.put("apt-cache", 'echo "  Candidate: 150.0.7871.100-1~deb12u1"')
    assert machine.set_up("browser", STEPSCOPE_CHROMIUM="/bin/sh").returncode == 0
    assert not machine.calls.exists()
    assert machine.set_up("browser", STEPSCOPE_CHROMIUM="/no/browser").returncode == 0
    assert machine.calls.read_text() == "install -y -q --no-install-recommends chromium\n"


def test_of_two_names_the_one_that_apt_knows_is_installed(machine: Machine) -> None:
    machine.put("ls", "exit 2")  # no fuzzer's library
    machine.put("clang++-14", "")
    machine.put_apt(needs_update=True)
    known = f'[ $2 = libclang-common-14-dev ] && [ -f {machine.folder}/updated ] && echo "  Candidate: 1:14.0.0"'
    machine.put("apt-cache", known)
    assert machine.set_up("fuzz").returncode == 0
    names = [line.split()[-1] for line in machine.calls.read_text().splitlines()]
    assert names == ["libclang-rt-14-dev", "-q", "libclang-common-14-dev"]


def test_without_rights_the_wishes_are_named_with_the_needs(machine: Machine) -> None:
    machine.put_apt()
    machine.put("apt-cache", 'echo "  Candidate: 18.20.4+dfsg-1"')
    machine.put("id", "echo 1000")
    assert "apt-get install cmake nodejs npm" in machine.set_up("build", "page").stderr


def test_a_python_that_is_not_there_or_too_old_is_said(machine: Machine) -> None:
    done = machine.set_up(PYTHON="python9")
    assert done.returncode == 1
    assert "No Python found as 'python9'" in done.stderr
    machine.put("oldpython", '[ "$1" = --version ] && echo Python 3.8.1; exit 1')
    done = machine.set_up(PYTHON="oldpython")
    assert done.returncode == 1
    assert "Python 3.8.1 is too old" in done.stderr
