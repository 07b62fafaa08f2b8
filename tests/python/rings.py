"""The marks that each process of a job keeps in its ring: telemetry/HOST_PID.ring, as docs/run-folder.md has it."""

from __future__ import annotations

import json
import struct
from pathlib import Path
from typing import Any, NamedTuple

from jobs import Job


class Mark(NamedTuple):
    start_ns: int
    dur_ns: int
    step: int
    kind: int
    phase: int


def ring(path: Path) -> tuple[dict[str, Any], list[Mark]]:
    """The file as docs/run-folder.md describes it."""
    data = path.read_bytes()
    magic, version, header, record, about, capacity = struct.unpack_from("<8sIIIIQ", data)
    (written,) = struct.unpack_from("<Q", data, 64)
    assert (magic, version, record) == (b"STEPRING", 1, 32)
    first = max(0, written - capacity)
    rows = [struct.unpack_from("<qqqHH", data, header + i % capacity * record) for i in range(first, written)]
    return json.loads(data[256 : 256 + about]), [Mark(*row) for row in rows]


def rings(job: Job) -> list[tuple[dict[str, Any], list[Mark]]]:
    assert job.folder is not None
    return [ring(path) for path in sorted((job.folder / "telemetry").glob("*.ring"))]


def steps_of(marks: list[Mark]) -> list[int]:
    return [mark.step for mark in marks if mark.kind == 2]
