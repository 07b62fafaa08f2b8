"""Commands that are run at once, of which only one works at a time: each meets the machine as the others do.

A shared machine is now faster and now slower. What runs for ten seconds and then the other for ten compares two moments
of the machine; halted and let go every other second, they share each.
"""

from __future__ import annotations

import os
import signal
import subprocess
import tempfile
import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO


def descendants(pid: int) -> set[int]:
    """Of a process, itself included. Workers of torchrun lead sessions of their own, so a group is not enough."""
    children: dict[int, list[int]] = {}
    for entry in Path("/proc").iterdir():
        if not entry.name.isdigit():
            continue
        try:
            fields = (entry / "stat").read_text().rpartition(")")[2].split()
        except OSError:
            continue  # it has just ended
        children.setdefault(int(fields[1]), []).append(int(entry.name))
    found, ahead = set[int](), [pid]
    while ahead:
        one = ahead.pop()
        found.add(one)
        ahead += children.get(one, [])
    return found


def is_orphan(pid: int) -> bool:
    """Its parent has ended: another process that was given the number since has a parent of its own."""
    try:
        return (Path("/proc") / str(pid) / "stat").read_text().rpartition(")")[2].split()[1] == "1"
    except OSError:
        return False


def tell(pids: set[int], number: signal.Signals) -> None:
    for pid in pids:
        try:
            os.kill(pid, number)
        except ProcessLookupError:
            pass


@dataclass
class Job:
    """A command that is run again and again."""

    command: list[str]
    env: dict[str, str]
    cwd: Path
    outputs: list[str] = field(default_factory=list)  # of the runs that have ended
    process: subprocess.Popen[str] | None = None
    known: set[int] = field(default_factory=set)  # of its processes those that were halted; some may outlive it
    said: IO[str] | None = None

    def start(self) -> subprocess.Popen[str]:
        self.said = tempfile.TemporaryFile("w+")  # a pipe could fill while it is halted
        return subprocess.Popen(
            self.command, env=self.env, cwd=self.cwd, text=True, stdout=self.said, stderr=subprocess.STDOUT
        )

    def halt(self) -> None:
        """It may start more processes meanwhile."""
        halted: set[int] = set()
        while self.process is not None and (more := descendants(self.process.pid) - halted):
            tell(more, signal.SIGSTOP)
            halted |= more
        self.known |= halted

    def work(self, seconds: float) -> None:
        """For so long, or until it ends."""
        if self.process is None:
            self.process = self.start()
        else:
            tell(descendants(self.process.pid), signal.SIGCONT)
        try:
            code = self.process.wait(seconds)
        except subprocess.TimeoutExpired:
            self.halt()
            return
        assert self.said is not None
        self.said.seek(0)
        said = self.said.read()
        self.end()
        if code:
            raise RuntimeError(f"{' '.join(self.command)}: exit {code}\n{said[-2000:]}")
        self.outputs.append(said)

    def end(self) -> None:
        if self.process is not None and self.process.poll() is None:
            self.halt()
            tell(self.known, signal.SIGKILL)
            self.process.wait()
        else:
            tell({pid for pid in self.known if is_orphan(pid)}, signal.SIGKILL)
        self.known = set()
        if self.said is not None:
            self.said.close()
        self.process, self.said = None, None


def in_turns(
    commands: Sequence[list[str]], rounds: int, env: dict[str, str], cwd: Path, limit_s: float, turn_s: float = 2.0
) -> list[list[str]]:
    """What each said in each of its runs: the one that takes longest has run `rounds` times, the others meanwhile as
    often as they could. RuntimeError: one failed, or together they took longer than that."""
    jobs = [Job(command, env, cwd) for command in commands]
    until = time.monotonic() + limit_s
    try:
        while any(len(job.outputs) < rounds for job in jobs):
            if time.monotonic() > until:
                raise RuntimeError(f"{' '.join(commands[0])}: not done in {limit_s:.0f} s")
            for job in jobs:
                job.work(turn_s)
        return [job.outputs for job in jobs]
    finally:
        for job in jobs:
            job.end()
