"""The record of steps and phases that each rank keeps all the time: telemetry/HOST_PID.ring (docs/run-folder.md).

A ring of 32-byte records in a file that is mapped and shared: what was written is there after a SIGKILL. The file is
filled before it is mapped, since writing into a hole of a full disk would kill the job with SIGBUS. A phase costs
half a microsecond.
"""

from __future__ import annotations

import json
import mmap
import os
import struct
import time

TYPE_CHECKING = False
if TYPE_CHECKING:
    from .notes import Notes
    from .process import Identity

MAGIC = b"STEPRING"
VERSION = 1
HEADER_BYTES = 4096
RECORDS = 131072 - 128  # with the header 4 MiB: 25,000 steps of five marks
FEWER_RECORDS = 2048 - 128  # where there is no room for more

_HEAD = struct.Struct("<8sIIIIQ")  # magic, version, header bytes, record bytes, length of the JSON, records in the ring
_JSON_AT = 256
_WRITTEN_AT = 64  # u64: records ever written
_NOW_AT = 72  # i64 start (monotonic ns), i64 step, u32 phase: what runs now; phase 0: between phases
_NOW = struct.Struct("<qqI")
_WRITTEN = struct.Struct("<Q")
_WRITTEN_AND_NOW = struct.Struct("<QqqI")  # the one lies behind the other
_RECORD = struct.Struct("<qqqHHI")  # start (monotonic ns), duration ns, step, kind, phase, 0

CLOCK, STEP, PHASE, PART = 1, 2, 3, 4
PART_BEGINS, PART_WRITTEN, LEFT = 1, 2, 3  # the phase field of a part's marks; LEFT: the hooks went, the job runs on
DATALOADER, FORWARD, BACKWARD, OPTIMIZER = 1, 2, 3, 4  # as the phases of the model

now_ns = time.monotonic_ns


class Marks:
    """One process's ring. Every method is safe to call when there is none."""

    def __init__(self, notes: Notes) -> None:
        self.notes = notes
        self.map: mmap.mmap | None = None
        self.records = 0
        self.written = 0
        self.tried = False
        self.clock_at = 0

    def open(self, identity: Identity) -> None:
        """Makes the file; without room for it there are no marks, which the note says."""
        self.tried = True
        folder = os.path.join(self.notes.run_folder, "telemetry")
        path = os.path.join(folder, self.notes.name + ".ring")
        try:
            os.makedirs(folder, exist_ok=True)
            handle = os.open(path, os.O_RDWR | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC, 0o666)
        except OSError as error:
            self.notes.problem(f"no record of steps is kept: {error}")
            return
        try:
            self.records = self.fill(handle)
            self.map = mmap.mmap(handle, HEADER_BYTES + self.records * _RECORD.size)
        except (OSError, ValueError) as error:
            self.map = None
            self.notes.problem(f"no record of steps is kept: {error}")
            os.unlink(path)
            return
        finally:
            os.close(handle)
        self.describe(identity)
        self.clock()

    def fill(self, handle: int) -> int:
        for records in (RECORDS, FEWER_RECORDS):
            try:
                os.posix_fallocate(handle, 0, HEADER_BYTES + records * _RECORD.size)
                return records
            except OSError as error:
                os.ftruncate(handle, 0)
                reason = error
        raise reason

    def describe(self, identity: Identity) -> None:
        """Who writes; again when the rank became known."""
        if self.map is None:
            return
        rank, world, source = identity
        about = {
            "host": self.notes.host,
            "pid": self.notes.pid,
            "rank": rank,
            "world_size": world,
            "rank_source": source,
            "started_unix_ns": time.time_ns(),
            "started_monotonic_ns": now_ns(),
        }
        text = json.dumps(about).encode()[: HEADER_BYTES - _JSON_AT]
        self.map[_JSON_AT : _JSON_AT + len(text)] = text
        self.map[0 : _HEAD.size] = _HEAD.pack(MAGIC, VERSION, HEADER_BYTES, _RECORD.size, len(text), self.records)

    def clock(self) -> None:
        """A pair of clocks, so that marks can be placed in wall time: the step field holds Unix ns."""
        self.clock_at = now_ns()
        self.add(self.clock_at, 0, time.time_ns(), CLOCK, 0)

    def add(self, start_ns: int, dur_ns: int, step: int, kind: int, phase: int) -> None:
        if self.map is None:
            return
        at = HEADER_BYTES + (self.written % self.records) * _RECORD.size
        _RECORD.pack_into(self.map, at, start_ns, dur_ns, step, kind, phase, 0)
        self.written += 1
        _WRITTEN.pack_into(self.map, _WRITTEN_AT, self.written)

    def step(self, number: int, start_ns: int, end_ns: int, ended_by: int) -> None:
        """`ended_by`: OPTIMIZER; FORWARD where only forward passes run, BACKWARD without an optimizer."""
        self.add(start_ns, end_ns - start_ns, number, STEP, ended_by)
        if end_ns - self.clock_at > 1_000_000_000:
            self.clock()

    def part(self, step: int, what: int) -> None:
        """A part of a recording begins before this step, or was handed to its file, or nothing is marked any more."""
        self.add(now_ns(), 0, step, PART, what)

    def begin(self, phase: int, step: int, start_ns: int) -> None:
        if self.map is not None:
            _NOW.pack_into(self.map, _NOW_AT, start_ns, step, phase)

    def end(self, phase: int, step: int, start_ns: int, end_ns: int) -> None:
        if self.map is None:
            return
        at = HEADER_BYTES + (self.written % self.records) * _RECORD.size  # as in add, which would write one more time
        _RECORD.pack_into(self.map, at, start_ns, end_ns - start_ns, step, PHASE, phase, 0)
        self.written += 1
        _WRITTEN_AND_NOW.pack_into(self.map, _WRITTEN_AT, self.written, end_ns, step, 0)

    def forget(self) -> None:
        """In a forked child: the ring is the parent's."""
        self.map = None
        self.tried = False
        self.written = 0
