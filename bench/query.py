#!/usr/bin/env python3
"""SQL over millions of rows: ours against plain SQLite and, where installed, duckdb on the same columns.

    bench/query.py PATH…        traces of some million slices; bench/grow_trace.py makes them

Each statement runs in rounds, in turn; medians are printed. duckdb gets the tables as Arrow, loaded before the clock
starts, and all cores; ours runs on one.
"""

from __future__ import annotations

import json
import statistics
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
ROUNDS = 3
TABLES = ("slices", "device_work")


def ours(paths: list[str]) -> list[dict[str, Any]]:
    program = ROOT / "build" / "bench" / "query_file"
    done = subprocess.run([str(program), *paths], text=True, capture_output=True, check=True)
    return [json.loads(line) for line in done.stdout.splitlines()]


def duckdb_seconds(paths: list[str], statements: list[str]) -> dict[str, float]:
    try:
        import duckdb
        import pyarrow
    except ImportError:
        return {}
    import stepscope

    run = stepscope.open(paths)
    connection = duckdb.connect()
    for name in TABLES:
        connection.register("arrow", pyarrow.table(run.table(name)))
        connection.execute(f"create table {name} as select * from arrow")
    connection.execute("create view kernels as select * from device_work where kind = 'kernel'")
    found = {}
    for sql in statements:
        seconds = []
        for _ in range(ROUNDS):
            started = time.monotonic()
            connection.execute(sql).fetchall()
            seconds.append(time.monotonic() - started)
        found[sql] = statistics.median(seconds)
    return found


def main() -> int:
    paths = sys.argv[1:]
    if not paths:
        print(__doc__)
        return 2
    rounds = [ours(paths) for _ in range(ROUNDS)]
    statements = [line["sql"] for line in rounds[0][1:]]
    other = duckdb_seconds(paths, statements)
    print(f"{rounds[0][0]['slices']:,} slices, {rounds[0][0]['ranks']} ranks; seconds, medians of {ROUNDS}")
    print(f"{'ours':>8} {'SQLite':>8} {'times':>6} {'duckdb':>8} {'times':>6}  statement")
    for i, sql in enumerate(statements, 1):
        fast = statistics.median(lines[i]["shortcut_s"] for lines in rounds)
        plain = statistics.median(lines[i]["sqlite_s"] for lines in rounds)
        duck = f"{other[sql]:8.3f} {other[sql] / fast:6.1f}" if sql in other else f"{'–':>8} {'–':>6}"
        print(f"{fast:8.3f} {plain:8.3f} {plain / fast:6.1f} {duck}  {sql}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
