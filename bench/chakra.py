#!/usr/bin/env python3
"""Linking and converting execution traces: time and memory of `stepscope convert --to chakra` and `link`.

    bench/chakra.py [--rounds N] [--nodes N,N…] [--keep FOLDER]

The files are one recorded step of the corpus (param's linear pair, 931 nodes and 261 kernels) again and again, moved in
time, with ids and sequence numbers of their own. Wall time and peak memory of the whole process, medians. Where the
tools of Chakra are installed, chakra_trace_link and chakra_converter run on the smallest pair too.
"""

from __future__ import annotations

import argparse
import gzip
import json
import os
import resource
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
CORPUS = Path(os.environ.get("STEPSCOPE_CORPUS", ROOT / ".." / "shared" / "data")) / "param_et"
STEPSCOPE = Path(os.environ.get("STEPSCOPE_CLI", ROOT / "build" / "stepscope"))
# Nodes, seconds and MB that must not be exceeded.
LIMITS = {24_000: (0.5, None), 1_000_000: (15.0, 1000)}


def measured(*words: str | Path) -> tuple[float, float]:
    """Seconds and MB of one process."""
    environment = {**os.environ, "STEPSCOPE_CACHE": "off"}
    began = time.perf_counter()
    process = subprocess.Popen(list(map(str, words)), stdout=subprocess.DEVNULL, env=environment)
    _, status, usage = os.wait4(process.pid, 0)
    assert status == 0, words
    return time.perf_counter() - began, usage.ru_maxrss / 1024


def recorded_step(folder: Path) -> tuple[dict[str, Any], list[dict[str, Any]], float]:
    """The execution trace, the events of its step with record function ids, and how long the step took (us)."""
    graph, timeline = CORPUS / "linear_et.json.gz", CORPUS / "linear_kineto.json.gz"
    linked = folder / "linked.json"
    subprocess.run([STEPSCOPE, "link", graph, timeline, "-o", linked], check=True, stdout=subprocess.DEVNULL)
    timed = [node for node in json.loads(linked.read_text())["nodes"] if "ts" in node]
    first, last = min(node["ts"] for node in timed), max(node["ts"] + node["inclusive_dur"] for node in timed)
    rf_ids = {(node["name"], node["ts"]): node["rf_id"] for node in timed if "cat" not in node}
    events, correlations = [], set()
    for event in json.loads(gzip.decompress(timeline.read_bytes()))["traceEvents"]:
        if event.get("ph") != "X" or not first <= event["ts"] < last:
            continue
        arguments = event.setdefault("args", {})
        if (event["name"], event["ts"]) in rf_ids:
            arguments["Record function id"] = rf_ids[event["name"], event["ts"]]
        if event.get("cat") == "cuda_runtime":
            correlations.add(arguments.get("correlation"))
        if event.get("cat") in ("kernel", "gpu_memset", "gpu_memcpy") and arguments["correlation"] not in correlations:
            continue
        events.append(event)
    return json.loads(gzip.decompress(graph.read_bytes())), events, last - first + 100


def repeat(folder: Path, nodes: int, step: tuple[dict[str, Any], list[dict[str, Any]], float]) -> tuple[Path, Path]:
    """As many turns of the step as have that many nodes, written piece by piece."""
    document, events, length = step
    roots = [node for node in document["nodes"] if node["rf_id"] == 0]
    ops = [node for node in document["nodes"] if node["rf_id"] != 0]
    ids, rf_ids = max(node["id"] for node in document["nodes"]) + 1, max(node["rf_id"] for node in ops) + 1
    correlations = max(event["args"].get("correlation", 0) for event in events) + 1
    root_ids = {node["id"] for node in roots}
    graph, timeline = folder / f"et_{nodes}.json", folder / f"trace_{nodes}.json"
    turns = -(-nodes // len(ops))
    with graph.open("w") as out:
        out.write('{"schema": "1.0.1", "pid": 1, "nodes": [\n')
        for turn in range(turns):
            for node in ops:
                parent = node["parent"] if node["parent"] in root_ids else node["parent"] + ids * turn
                moved = {**node, "id": node["id"] + ids * turn, "parent": parent}
                moved["rf_id"] += rf_ids * turn
                if node["seq_id"] >= 0:
                    moved["seq_id"] += 1000 * turn
                out.write(json.dumps(moved) + ",\n")
        out.write(",\n".join(map(json.dumps, roots)) + "]}\n")
    with timeline.open("w") as out:
        out.write('{"schemaVersion": 1, "traceEvents": [\n')
        for turn in range(turns):
            for event in events:
                arguments = dict(event["args"])
                for name, size in (("Record function id", rf_ids), ("correlation", correlations), ("External id", ids)):
                    if name in arguments:
                        arguments[name] += size * turn
                if "Sequence number" in arguments:
                    arguments["Sequence number"] += 1000 * turn
                out.write(json.dumps({**event, "ts": event["ts"] + length * turn, "args": arguments}) + ",\n")
        out.write('{"ph": "M", "name": "process_name", "pid": 1, "args": {"name": "python"}}]}\n')
    return graph, timeline


def compare_with_chakra(graph: Path, timeline: Path, folder: Path, ours_s: float) -> None:
    if not (shutil.which("chakra_trace_link") and shutil.which("chakra_converter")):
        print("chakra_trace_link and chakra_converter are not installed: not compared")
        return
    linked = folder / "peer.json"
    traces: list[str | Path] = ["--chakra-host-trace", graph, "--chakra-device-trace", timeline]
    link_s, link_mb = measured("chakra_trace_link", *traces, "--output-file", linked, "--rank", "0")
    convert_s, convert_mb = measured("chakra_converter", "PyTorch", "--input", linked, "--output", folder / "peer.et")
    print(f"Chakra's own: {link_s:.1f} + {convert_s:.1f} s, {max(link_mb, convert_mb):.0f} MB: ", end="")
    print(f"{(link_s + convert_s) / ours_s:.0f} times ours")


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--nodes", default="24000,1000000")
    parser.add_argument("--keep", type=Path, help="make the files here and leave them")
    options = parser.parse_args()
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    folder = options.keep or Path(tempfile.mkdtemp())
    folder.mkdir(parents=True, exist_ok=True)
    step = recorded_step(folder)
    failed = False
    print(f"{'nodes':>9} {'MB of JSON':>10} {'what':<15} {'s':>7} {'MB':>6}")
    try:
        for place, nodes in enumerate(map(int, options.nodes.split(","))):
            graph, timeline = pair = repeat(folder, nodes, step)
            megabytes = (graph.stat().st_size + timeline.stat().st_size) / 1e6
            for what, words in {
                "convert": ("convert", *pair, "--to", "chakra", "-o", folder / "job"),
                "convert astra": ("convert", *pair, "--to", "chakra", "--profile", "astra", "-o", folder / "a"),
                "link": ("link", *pair, "-o", folder / "linked.json"),
            }.items():
                rounds = [measured(STEPSCOPE, *words) for _ in range(options.rounds)]
                seconds, memory = (statistics.median(values) for values in zip(*rounds))
                most_s, most_mb = LIMITS.get(nodes, (None, None))
                over = (most_s is not None and seconds > most_s) or (most_mb is not None and memory > most_mb)
                failed |= over
                mark = "  over the limit" if over else ""
                print(f"{nodes:>9,} {megabytes:>10.0f} {what:<15} {seconds:>7.2f} {memory:>6.0f}{mark}", flush=True)
                if place == 0 and what == "convert":
                    compare_with_chakra(graph, timeline, folder, seconds)
    finally:
        if not options.keep:
            shutil.rmtree(folder)
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
