#!/usr/bin/env python3
"""keep.py WHAT=FILE… RUN…: puts recordings of ../../gpu/record.sh and the gallery here, without paths of the machine.

$MOVED says where things stood and where they are said to have stood, REAL=TOLD with blanks between: the repository, the
recordings, Python's environment. WHAT=FILE is one trace, kept as WHAT.json.gz. RUN is a run folder, kept whole as
NAME.tar.xz, NAME being its job's: advise needs the marks and the telemetry too. What either holds: ../README.md.
"""

from __future__ import annotations

import gzip
import io
import json
import os
import re
import sys
import tarfile
from pathlib import Path

HERE = Path(__file__).resolve().parent
MOVED = [tuple(pair.split("=", 1)) for pair in os.environ["MOVED"].split()]
TEXT = (".json", ".jsonl", ".gz")


def without_paths(text: str) -> str:
    for real, told in MOVED:
        text = text.replace(real, told)
    return text


def zipped(text: str) -> bytes:
    return gzip.compress(text.encode(), 9, mtime=0)


def kept(path: Path) -> bytes:
    if path.suffix == ".gz":
        return zipped(without_paths(gzip.decompress(path.read_bytes()).decode()))
    return without_paths(path.read_text()).encode() if path.suffix in TEXT else path.read_bytes()


def keep_run(run: Path) -> Path:
    name = json.loads((run / "run.json").read_text())["job"]
    out = HERE / f"{name}.tar.xz"
    with tarfile.open(out, "w:xz") as archive:
        for path in sorted(path for path in run.rglob("*") if path.is_file()):
            content = kept(path)
            entry = tarfile.TarInfo(f"{name}/{path.relative_to(run)}")
            entry.size = len(content)
            archive.addfile(entry, io.BytesIO(content))
    return out


def main() -> None:
    for said in sys.argv[1:]:
        what = re.fullmatch(r"([\w.]+)=(.+)", said)
        if what is None:
            out = keep_run(Path(said))
        else:
            out = HERE / f"{what[1]}.json.gz"
            out.write_bytes(kept(Path(what[2])))
        print(f"{out.name}: {out.stat().st_size // 1024} KiB")


if __name__ == "__main__":
    main()
