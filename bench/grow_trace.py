#!/usr/bin/env python3
"""Grow a real trace to a wanted size by repeating it in time, exact to the nanosecond.

    grow_trace.py IN.json[.gz] OUT.json MEGABYTES [--layout compact|kineto]

Each copy is moved by the trace's span plus 1 ms; correlation, external and sequence ids, flow ids and ProfilerStep
numbers move on, so that copies never link to each other. Metadata events are written once. `compact` writes an event a
line without blanks; `kineto` writes the lines, blanks and member order of Kineto's own export.
"""

from __future__ import annotations

import argparse
import gzip
import json
import re
from decimal import Decimal
from pathlib import Path
from typing import Any, Callable

IDS = (
    "correlation",
    "External id",
    "external id",
    "Ev Idx",
    "Record function id",
    "Sequence number",
    "wait_on_cuda_event_record_corr_id",
)
STEP = re.compile(r"ProfilerStep#(\d+)$")


def load(path: Path) -> dict[str, Any]:
    opened = gzip.open(path) if path.suffix == ".gz" else open(path, "rb")
    with opened as file:
        data = json.loads(file.read(), parse_float=Decimal)
    return data if isinstance(data, dict) else {"traceEvents": data}


def to_ns(microseconds: int | Decimal) -> int:
    return int(microseconds * 1000)


def is_timed(event: dict[str, Any]) -> bool:
    return event.get("ph") != "M" and event.get("cat") != "Trace" and isinstance(event.get("ts"), (int, Decimal))


def encode(value: Any, layout: str) -> str:
    separators = (",", ":") if layout == "compact" else (", ", ": ")
    return json.dumps(value, separators=separators, default=lambda d: int(d) if d == int(d) else float(d))


def kineto_event(event: dict[str, Any]) -> str:
    """The event as Kineto's exporter lays it out; `ts` is the placeholder that the caller fills."""

    def line(*keys: str) -> str:
        return ", ".join(f'"{k}": {encode(event[k], "kineto")}' for k in keys if k in event)

    rest = [k for k in event if k not in ("ph", "cat", "name", "pid", "tid", "ts", "dur", "args")]
    lines = [line("ph", "cat", "name", "pid", "tid", *rest), line("ts", "dur")]
    if "args" in event:
        args = ", ".join(f"{encode(k, 'kineto')}: {encode(v, 'kineto')}" for k, v in event["args"].items())
        lines.append('"args": {\n      ' + args + "\n    }")
    return "  {\n    " + ",\n    ".join(text for text in lines if text) + "\n  }"


def template(event: dict[str, Any], layout: str, base: int, steps: int) -> Callable[[int, int], str]:
    """A function of (copy, time shift in ns) that gives the event's text."""
    marks: list[tuple[str, Callable[[int, int], str]]] = []

    def mark(fill: Callable[[int, int], str]) -> str:
        token = f"@@{len(marks)}@@"
        marks.append((token, fill))
        return token

    def moved(number: int) -> Callable[[int, int], str]:
        return lambda k, shift: str(number + k * base)

    copy = dict(event)
    start = to_ns(event["ts"])
    copy["ts"] = mark(lambda k, shift: f"{(start + shift) // 1000}.{(start + shift) % 1000:03d}")
    if isinstance(event.get("id"), int):
        copy["id"] = mark(moved(event["id"]))
    if isinstance(event.get("args"), dict):
        args = dict(event["args"])
        for key in IDS:
            if isinstance(args.get(key), int) and 0 < args[key] < 2**40:
                args[key] = mark(moved(args[key]))
        copy["args"] = args
    step = STEP.match(str(event.get("name", "")))
    if step and steps:
        number = int(step.group(1))
        copy["name"] = f"ProfilerStep#@@{len(marks)}@@"
        marks.append((f"@@{len(marks)}@@", lambda k, shift: str(number + k * steps)))
    text = kineto_event(copy) if layout == "kineto" else encode(copy, layout)
    pieces: list[Any] = [text]
    for token, fill in marks:
        for i, piece in enumerate(pieces):
            if isinstance(piece, str) and token in piece:
                quoted = f'"{token}"'
                before, after = piece.split(quoted if quoted in piece else token, 1)
                pieces[i : i + 1] = [before, fill, after]
                break
    return lambda k, shift: "".join(p if isinstance(p, str) else p(k, shift) for p in pieces)


def grow(source: Path, target: Path, megabytes: float, layout: str) -> dict[str, int]:
    """Writes `target`; returns events, bytes and copies."""
    data = load(source)
    events = data.pop("traceEvents")
    once = [e for e in events if not is_timed(e)]
    timed = [e for e in events if is_timed(e)]
    start = min(to_ns(e["ts"]) for e in timed)
    end = max(to_ns(e["ts"]) + to_ns(e.get("dur", 0)) for e in timed)
    ids = [
        e["args"][k]
        for e in timed
        if isinstance(e.get("args"), dict)
        for k in IDS
        if isinstance(e["args"].get(k), int) and e["args"][k] < 2**40
    ]
    base = 1 + max(ids + [e["id"] for e in timed if isinstance(e.get("id"), int)] + [1])
    numbers = [int(m.group(1)) for e in timed if (m := STEP.match(str(e.get("name", ""))))]
    steps = max(numbers) - min(numbers) + 1 if numbers else 0
    templates = [template(e, layout, base, steps) for e in timed]
    span = end - start + 1_000_000
    between = ",\n"
    size = count = copies = 0
    with open(target, "w", encoding="utf-8", buffering=1 << 22) as out:
        head = encode(data, layout)
        size += out.write(head[:-1] + (", " if data else "") + '"traceEvents": [\n')
        first = True
        for event in once:
            text = encode(event, "compact") if layout == "compact" else "  " + encode(event, layout)
            size += out.write(("" if first else between) + text)
            first = False
            count += 1
        while size < megabytes * 1e6:
            for fill in templates:
                size += out.write(("" if first else between) + fill(copies, copies * span))
                first = False
                count += 1
                if size >= megabytes * 1e6 and copies > 0:
                    break
            copies += 1
        size += out.write("\n]}\n")
    return {"events": count, "bytes": size, "copies": copies}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("source", type=Path)
    parser.add_argument("target", type=Path)
    parser.add_argument("megabytes", type=float)
    parser.add_argument("--layout", choices=("compact", "kineto"), default="compact")
    args = parser.parse_args()
    print(json.dumps(grow(args.source, args.target, args.megabytes, args.layout)))


if __name__ == "__main__":
    main()
