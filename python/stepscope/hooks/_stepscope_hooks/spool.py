"""From torch's export to the compressed trace file, without a raw file on the disk and without the job's time.

torch writes its JSON to NAME.tmp and renames it: both names are links to a file in memory here. A process of its own,
which a kill of the job does not reach, compresses that into NAME.gz (compress.py). Older torch writes to NAME itself.
"""

from __future__ import annotations

import contextlib
import json
import mmap
import os
import re
import signal
import sys

from . import other_profiler

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any


_RANGE = rb'"ph": "X",\s+"cat": "%s",\s+"name": ("(?:[^"\\]|\\.)*")'
_UNFINISHED = {  # what it says of a range that was open at the end
    b'"finished": false': re.compile(_RANGE % rb'[^"]*'),  # instants have it too
    b'"dur": 0,': re.compile(_RANGE % b"user_annotation"),  # older torch, and of what took no time
    b'"dur": 0.000,': re.compile(_RANGE % b"user_annotation"),
}


class Spool:
    """One trace file on its way. `path` is where it will be, ending in .json.gz."""

    def __init__(self, path: str) -> None:
        self.path = path
        self.plain = path[: -len(".gz")]
        self.child = 0
        self.text_bytes = 0
        self.left_open: set[str] | None = None  # names of ranges that were open when it stopped; None: not known

    def export(self, profiler: Any, needs_work: bool = False) -> bool:
        """Writes the trace; raises OSError where torch wrote none. With `needs_work` one without an op or kernel is
        dropped, and the answer is False: a process that only waits for others has nothing to show."""
        memory = memory_file()
        if memory is None:
            with other_profiler.own_profiler():
                profiler.export_chrome_trace(self.plain)
            self.text_bytes = os.path.getsize(self.plain) if os.path.exists(self.plain) else 0
        else:
            try:
                export_to(memory, profiler, self.plain)
                self.left_open = unfinished(memory)
                if needs_work and os.fstat(memory).st_size > 0 and not _has_work(memory):
                    return False
                self.compress(memory)
            finally:
                os.close(memory)
        if self.text_bytes == 0:
            raise OSError("torch wrote no trace (is the disk full?)")
        return True

    def compress(self, memory: int) -> None:
        """Starts to write what a file in memory holds to `path`."""
        self.text_bytes = os.fstat(memory).st_size
        if self.text_bytes == 0:
            return
        os.lseek(memory, 0, os.SEEK_SET)
        script = os.path.join(os.path.dirname(os.path.abspath(__file__)), "compress.py")
        log = os.path.join(os.path.dirname(self.path), "..", "..", "hooks.log")
        command = [sys.executable, "-I", "-S", script, self.path, os.path.abspath(log)]
        actions = [
            (os.POSIX_SPAWN_DUP2, memory, 0),
            (os.POSIX_SPAWN_OPEN, 1, os.devnull, os.O_WRONLY, 0),
            (os.POSIX_SPAWN_OPEN, 2, os.devnull, os.O_WRONLY, 0),
        ]
        usual = [signal.SIGTERM, signal.SIGINT, signal.SIGHUP, signal.SIGPIPE]
        try:
            self.child = os.posix_spawn(
                sys.executable, command, {}, file_actions=actions, setsid=True, setsigdef=usual, setsigmask=[]
            )
        except (OSError, NotImplementedError, TypeError):
            self._write_plain(memory)

    def _write_plain(self, memory: int) -> None:
        """No process could be started: the text as it is, complete, is worth more than none."""
        with open(memory, "rb", closefd=False) as source, open(self.plain, "wb") as target:
            while block := source.read(1 << 20):
                target.write(block)

    def ended(self, wait: bool = False) -> bool:
        """Takes the ended child from the system's list, so that the job never sees it there."""
        if self.child > 0:
            with contextlib.suppress(ChildProcessError):
                if os.waitpid(self.child, 0 if wait else os.WNOHANG) == (0, 0):
                    return False
            self.child = 0
        return True

    def remove(self) -> None:
        self.ended(wait=True)
        for path in (self.path, self.plain):
            with contextlib.suppress(OSError):
                os.unlink(path)

    @property
    def written(self) -> str:
        """The path of the file that is there, or will be."""
        return self.plain if os.path.exists(self.plain) else self.path


def _has_work(memory: int) -> bool:
    with mmap.mmap(memory, 0, prot=mmap.PROT_READ) as text:
        return any(text.find(mark) >= 0 for mark in (b'"cpu_op"', b'"kernel"'))


def export_to(memory: int, profiler: Any, name: str) -> None:
    """Has torch write its JSON into a file in memory. `name`: a path that is free meanwhile, as is that with .tmp."""
    links = [name, name + ".tmp"]
    try:
        for link in links:
            os.symlink(f"/proc/self/fd/{memory}", link)
        with other_profiler.own_profiler():
            profiler.export_chrome_trace(name)
    finally:
        for link in links:
            if os.path.islink(link):
                os.unlink(link)


def unfinished(memory: int) -> set[str]:
    """Names of the ranges that were open when the profiler stopped."""
    if os.fstat(memory).st_size == 0:
        return set()
    names = set()
    with mmap.mmap(memory, 0, prot=mmap.PROT_READ) as text:
        for said, of_range in _UNFINISHED.items():
            at = text.find(said)
            while at >= 0:
                found = of_range.match(text, text.rfind(b'"ph": ', 0, at))
                if found is not None:
                    names.add(json.loads(found.group(1).decode(errors="replace")))
                at = text.find(said, at + 1)
    return names


def memory_file() -> int | None:
    """A file in memory that torch can write to by a name, where the system has such files."""
    try:
        memory = os.memfd_create("stepscope-trace")
    except (AttributeError, OSError):
        return None
    if os.path.exists(f"/proc/self/fd/{memory}"):
        return memory
    os.close(memory)
    return None
