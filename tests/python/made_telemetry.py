"""Telemetry made by hand, for jobs larger than this machine: files as docs/run-folder.md describes them."""

from __future__ import annotations

import json
import struct
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

START = 1_800_000_000  # Unix seconds at which these jobs begin
SECOND = 10**9


def _file(magic: bytes, record: int, about: dict[str, Any], records: Sequence[bytes]) -> bytes:
    said = json.dumps(about).encode()
    head = struct.pack("<8sIIIIQ", magic, 1, 4096, record, len(said), max(1, len(records)))
    head = head.ljust(64, b"\0") + struct.pack("<Q", len(records))
    return (head.ljust(256, b"\0") + said).ljust(4096, b"\0") + b"".join(records)


class Series:
    """A gauge of one target; points are (seconds since START, value)."""

    def __init__(
        self, target: str, name: str, points: Iterable[tuple[float, float]], *, collector: str = "cpu", unit: str = ""
    ) -> None:
        self.about = {"collector": collector, "name": name, "target": target, "unit": unit, "kind": "gauge"}
        self.points = list(points)


def write_samples(folder: Path, series: Sequence[Series], host: str = "node", pid: int = 1) -> None:
    """telemetry/HOST_PID.samples and .series.jsonl of a sampler."""
    telemetry = folder / "telemetry"
    telemetry.mkdir(parents=True, exist_ok=True)
    lines = [json.dumps({"id": i, **one.about, "meaning": "made"}) for i, one in enumerate(series, 1)]
    (telemetry / f"{host}_{pid}.series.jsonl").write_text("\n".join(lines) + "\n")
    records = [struct.pack("<qqII", 0, START * SECOND, 0, 0)]
    for i, one in enumerate(series, 1):
        records += [struct.pack("<qdII", int(t * SECOND), value, i, 0) for t, value in one.points]
    (telemetry / f"{host}_{pid}.samples").write_bytes(_file(b"STEPSAMP", 24, {"host": host, "pid": pid}, records))


def write_marks(folder: Path, rank: int, steps: int, *, first_s: float = 0, pid: int | None = None) -> None:
    """telemetry/HOST_PID.ring of a rank: steps of 1 s each, 0.5 s forward and then 0.25 s backward in each."""
    telemetry = folder / "telemetry"
    telemetry.mkdir(parents=True, exist_ok=True)
    records = [struct.pack("<qqqHHI", 0, 0, START * SECOND, 1, 0, 0)]
    for step in range(steps):
        begin = int((first_s + step) * SECOND)
        for start, dur, kind, phase in ((0.0, 0.5, 3, 2), (0.5, 0.25, 3, 3), (0.0, 1.0, 2, 4)):
            place = begin + int(start * SECOND), int(dur * SECOND), step
            records.append(struct.pack("<qqqHHI", *place, kind, phase, 0))
    pid = 1000 + rank if pid is None else pid
    about = {"host": "node", "pid": pid, "rank": rank, "world_size": 64, "rank_source": "environment"}
    (telemetry / f"node_{pid}.ring").write_bytes(_file(b"STEPRING", 32, about, records))
