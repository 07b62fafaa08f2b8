#!/usr/bin/env python3
"""Make the ranks of a made-up job out of one real trace: the same steps on every rank, each with its own rank, clock,
lateness and noise, and with all-reduces, all-gathers and all-to-alls put in.

    make_ranks.py IN.json[.gz] FOLDER RANKS EVENTS

Writes FOLDER/rank-N.json with about EVENTS events each. A communication kernel follows every 40th kernel of the source,
at the end of what ran, with the metadata that torch writes; groups are the whole job and, for all-to-alls, the eights
of a host. Rank 5 comes late by 2 ms a step; clocks differ by seconds and drift by up to 50 ppm.
"""

from __future__ import annotations

import argparse
import json
import random
import re
import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from grow_trace import grow

KINDS = [("allreduce", "AllReduce_Sum_bf16_RING_LL", 1 << 22), ("_allgather_base", "AllGather_RING_LL", 1 << 20)]
TS = re.compile(r'"ts":\s*(\d+)\.(\d{3})')
LATE_RANK, LATE_US = 5, 2000


@dataclass
class Clock:
    """A rank's clock: how far it is from the first rank's, and how fast it drifts away from it."""

    start_ns: int
    shift_ns: int
    drift: float

    def __call__(self, t_ns: int) -> float:
        return t_ns + self.shift_ns + self.drift * (t_ns - self.start_ns)


def collective(
    number: int, at_us: float, rank: int, world: int, late_us: float, noise: random.Random
) -> dict[str, Any]:
    kind, kernel, elements = KINDS[number % 2]
    name, ranks = "0", list(range(world))
    if number % 10 == 9:
        first = rank // 8 * 8
        kind, kernel, elements, name = "all_to_allv", "SendRecv", 1 << 18, f"ep{first}"
        ranks = list(range(first, min(first + 8, world)))
        elements += noise.randrange(1 << 16)
    dur = 400 + noise.gauss(0, 3)
    wait = max(LATE_US * 1.2 - late_us - noise.uniform(0, 100), 1)
    return {
        "ph": "X", "cat": "kernel", "name": f"ncclDevKernel_{kernel}(ncclDevKernelArgsStorage<4096ul>)", "pid": 0,
        "tid": 900, "ts": round(at_us + LATE_US * 1.2 - wait, 3), "dur": round(wait + dur, 3),
        "args": {"device": 0, "stream": 900, "Collective name": kind, "In msg nelems": elements,
                 "Out msg nelems": elements * (len(ranks) if "gather" in kind else 1), "dtype": "BFloat16",
                 "Group size": len(ranks), "Process Group Name": name, "Process Group Ranks": str(ranks),
                 "Seq": number + 1},
    }  # fmt: skip


def make(source: Path, folder: Path, ranks: int, events: int) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory() as scratch:
        grown = Path(scratch) / "one.json"
        sample = grow(source, grown, 1e-6, "compact")
        per_event = sample["bytes"] / sample["events"]
        grow(source, grown, events * per_event / 1e6, "compact")
        lines = grown.read_text().split("\n")
    head = json.loads(lines[0] + "]}")
    head.pop("traceEvents")
    body = [line.rstrip(",") for line in lines[1:] if line.startswith("{")][:events]
    times = []
    for line in body:
        found = TS.search(line)
        times.append(int(found[1]) * 1000 + int(found[2]) if found else None)
    kernels = [i for i, line in enumerate(body) if '"cat":"kernel"' in line]
    places = {i: n for n, i in enumerate(kernels[::40])}
    start = min(t for t in times if t is not None)
    for rank in range(ranks):
        noise = random.Random(rank)
        clock = Clock(start, rank * 1_250_000_000, (rank % 11 - 5) * 1e-5 if rank else 0.0)
        head["distributedInfo"] = {"backend": "nccl", "rank": rank, "world_size": ranks}
        with open(folder / f"rank-{rank}.json", "w", encoding="utf-8", buffering=1 << 20) as out:
            out.write(json.dumps(head)[:-1] + ', "traceEvents": [\n')
            texts = []
            for i, line in enumerate(body):
                t = times[i]
                if t is not None:
                    moved = round(clock(t))
                    line = TS.sub(f'"ts":{moved // 1000}.{moved % 1000:03d}', line, count=1)
                texts.append(line)
                if i in places and t is not None:
                    late = LATE_US if rank == LATE_RANK else noise.uniform(0, 50)
                    texts.append(json.dumps(collective(places[i], clock(t) / 1000, rank, ranks, late, noise)))
            out.write(",\n".join(texts) + "\n]}\n")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("source", type=Path)
    parser.add_argument("folder", type=Path)
    parser.add_argument("ranks", type=int)
    parser.add_argument("events", type=int)
    args = parser.parse_args()
    make(args.source, args.folder, args.ranks, args.events)


if __name__ == "__main__":
    main()
