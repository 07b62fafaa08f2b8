"""`report --compat hta` against the numbers that HTA 0.6.1 gave on real traces (hta_reference.json, recorded by
hta_reference.py, which stands beside it). Every recorded value is compared, as rounded there: 6 decimals.

    pytest tests/python/test_hta_compat.py -s        prints the equality table
"""

from __future__ import annotations

import json
import math
import os
import subprocess
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from functools import lru_cache
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).resolve().parents[2]
VARIANT = " (default: last step dropped)"
# What the recording script was told, not what HTA answered.
INPUTS = {"args", "op", "annotation", "instance", "include_last_profiler_step", "load_s_not_reference"}
# Where the numbers may differ: (entry, path in the reference) → why. See docs/hta.md.
EXCEPTIONS: dict[tuple[str, str], str] = {}

TRACES = {
    "profile-data/train": ["deepseek/train.json"],
    "ns_resolution": ["hta/ns_resolution_trace/rank-0.Apr_03_18_51_38.1102.pt.trace.json.gz"],
    "nccl_parser_config": ["hta/nccl_parser_config/nccl_data.json.gz"],
    "negative_queue_length": ["hta/negative_queue_length_values_check/rank0.json.gz"],
    "trace_diff_control": ["hta/trace_diff/control/control.json.gz"],
    "trace_diff_test": ["hta/trace_diff/test/test.json.gz"],
    "df_index_resolver": ["hta/df_index_resolver/df_index_resolver.json.gz"],
    "sampled_2ranks": ["hta/trace_filter/sampled_rank-0.json.gz", "hta/trace_filter/sampled_rank-1.json.gz"],
    "cp_alexnet": ["hta/critical_path/alexnet/benchmark_result_2869224_1695835535_trace.json.gz"],
    "cp_simple_add": ["hta/critical_path/simple_add/benchmark_result_493459_1694039959_trace.json.gz"],
    "cp_event_sync_multi_stream": ["hta/critical_path/cuda_event_sync_multi_stream/event_sync_trace.json.gz"],
    "cupti_profiler": ["hta/cupti_profiler/benchmark_result_924719_1679055439_trace.json.gz"],
    "amd_mi250": ["hta/amd_trace/mi250_minitoy_train_ROCm6_2_kineto.json.gz"],
    "mtia_inference": ["hta/mtia_inference_trace/mtia_inference_rank_0.json.gz"],
    "triton_example": ["hta/triton_example/triton_example.json.gz"],
}

COMPARED = 4610

Json = dict[str, Any]


class Ours:
    """The answers of one call, in the shapes of the recording script."""

    def __init__(self, report: Json) -> None:
        self.report = report
        self.answers = report["answers"]
        self.files = report["input"]["files"]

    def table(self, answer: str, name: str = "") -> list[Json]:
        table = self.answers[answer]["tables"][name or answer]
        names = [column["name"] for column in table["columns"]]
        rows = [dict(zip(names, row)) for row in table["rows"]]
        ranks = [file["rank"] for file in self.files]  # HTA was told: rank 0, 1 … in the order of the files
        return [{**row, "rank": ranks.index(row["rank"])} if "rank" in row else row for row in rows]

    def rows(self, answer: str, name: str = "", most: int = 12) -> Json:
        rows = self.table(answer, name)
        return {"n": len(rows), "rows": rows[:most]}

    def rows_or_none(self, answer: str, name: str = "", most: int = 12) -> Json | None:
        rows = self.rows(answer, name, most)
        return rows if rows["n"] else None

    def of_rank0(self, name: str, key: str, value: str) -> Json:
        return {str(row[key]): row[value] for row in self.table("trace_table", name) if row["rank"] == 0}

    def trace_rows(self) -> Json:
        return {str(row["rank"]): row["rows"] for row in self.table("trace_table", "ranks")}


ANSWERS: dict[str, Callable[[Ours], Any]] = {
    "rows_after_filter": Ours.trace_rows,
    "rows_by_cat_rank0": lambda o: o.of_rank0("categories", "category", "rows"),
    "stream_rows_rank0": lambda o: o.of_rank0("streams", "stream", "rows"),
    "iterations": lambda o: [r["iteration"] for r in o.table("trace_table", "iterations") if r["rank"] == 0],
    "min_ts": lambda o: o.answers["trace_table"]["scalars"]["min_ts"]["value"],
    "duration_us": lambda o: o.table("trace_table", "ranks")[0]["duration_us"],
    "temporal_breakdown": lambda o: o.rows("temporal_breakdown"),
    "comm_comp_overlap": lambda o: o.rows("comm_comp_overlap"),
    "gpu_kernel_breakdown": lambda o: {
        "types": o.rows("gpu_kernel_breakdown", "types"),
        "kernels": o.rows("gpu_kernel_breakdown", "kernels", 24),
    },
    "idle_time_breakdown": lambda o: {
        "idle": o.rows("idle_time_breakdown", "idle", 24),
        "stats": o.rows("idle_time_breakdown", "stats"),
    },
    "user_annotation_breakdown_gpu": lambda o: o.rows_or_none("gpu_user_annotation_breakdown", "gpu", 6),
    "user_annotation_breakdown_cpu": lambda o: o.rows_or_none("gpu_user_annotation_breakdown", "cpu", 6),
}


def leaves(value: Any, path: str = "") -> Iterator[tuple[str, Any]]:
    """Every value with its path; an empty list or object is one value."""
    if isinstance(value, dict) and value:
        for key, part in value.items():
            if key not in INPUTS:
                yield from leaves(part, f"{path}/{key}")
    elif isinstance(value, list) and value:
        for i, part in enumerate(value):
            yield from leaves(part, f"{path}/{i}")
    else:
        yield path, value


def as_recorded(value: Any) -> Any:
    if isinstance(value, float):
        return None if math.isnan(value) else round(value, 6)
    return value[:140] if isinstance(value, str) else value


@dataclass
class Comparison:
    entry: str
    equal: int = 0
    excepted: Counter[str] = field(default_factory=Counter)
    answered: int = 0  # values HTA has none for, because it raised
    differ: list[str] = field(default_factory=list)

    @property
    def compared(self) -> int:
        return self.equal + self.answered + sum(self.excepted.values()) + len(self.differ)

    def take(self, key: str, recorded: Any, ours: Any) -> None:
        if isinstance(recorded, dict) and "error" in recorded:  # HTA raised: any answer is better
            self.answered += 1
            return
        have = {path: as_recorded(value) for path, value in leaves(ours, key)}
        for path, value in leaves(recorded, key):
            if path in have and have[path] == value:
                self.equal += 1
            elif (self.entry, path) in EXCEPTIONS:
                self.excepted[EXCEPTIONS[self.entry, path]] += 1
            else:
                self.differ.append(f"{self.entry}: {path}: HTA {value!r}, ours {have.get(path, 'absent')!r}")

    def line(self) -> str:
        notes = [f"{count} {name}" for name, count in self.excepted.items()]
        return f"{self.entry:58}{self.compared:6}{self.equal:7}{self.answered:9}  {', '.join(notes) or '-'}"


@lru_cache(maxsize=1)
def reference() -> Json:
    path = Path(os.environ.get("STEPSCOPE_REFERENCE", ROOT.parent / "shared" / "reference")) / "hta_reference.json"
    if not path.exists():
        pytest.skip(f"no recorded numbers of HTA at {path} (set STEPSCOPE_REFERENCE)")
    document: Json = json.loads(path.read_text())
    return document


def report(program: Path, files: list[Path], *arguments: str) -> Ours:
    command = [str(program), "report", *map(str, files), "--json", "--no-cache", "--compat", "hta", *arguments]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode in (0, 4), done.stderr
    document = json.loads(done.stdout)
    assert not document["failed"]
    return Ours(document)


def argument(recorded: Json) -> list[str]:
    """What the recording script told HTA for this entry."""
    given = {"num_kernels": "5", "include_memory_kernels": "true"}
    return [part for name, value in given.items() for part in ("--arg", f"{name}={value}")]


def compare(entry: str, recorded: Json, program: Path, corpus: Path) -> Comparison:
    variant = entry.endswith(VARIANT)
    files = [corpus / name for name in TRACES[entry.removesuffix(VARIANT)]]
    step = "--drop-last-step" if variant else "--include-last-profiler-step"
    ours = report(program, files, step, *argument(recorded))
    result = Comparison(entry)
    for key, value in recorded.items():
        if key in INPUTS or (key == "error" and value is None):
            continue
        if key not in ANSWERS:
            continue
        result.take(key, value, ANSWERS[key](ours))
    return result


def test_every_value_recorded_from_hta(stepscope: Path, corpus: Path) -> None:
    entries = reference()["traces"]
    assert set(TRACES) == {entry.removesuffix(VARIANT) for entry in entries}
    results = [compare(entry, recorded, stepscope, corpus) for entry, recorded in entries.items()]
    print(f"\n{'entry':58}{'values':>6}{'equal':>7}{'raised':>9}  excepted")
    for result in results:
        print(result.line())
    total = sum(result.compared for result in results)
    print(f"{'all':58}{total:6}{sum(r.equal for r in results):7}{sum(r.answered for r in results):9}")
    differ = [line for result in results for line in result.differ]
    print("\n".join(differ[:100]))
    assert not differ
    assert total == COMPARED  # fewer: something is no longer compared
