"""`report --compat hta` against the numbers that HTA 0.6.1 gave on real traces (hta_reference.json, recorded by
hta_reference.py, which stands beside it). Every recorded value is compared, as rounded there: 6 decimals.

    pytest tests/python/test_hta_compat.py -s        prints the equality table
"""

from __future__ import annotations

import json
import math
import os
import subprocess
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
# Where HTA's numbers depend on the CPU (docs/hta.md): what it gives with a stable sort, which we must give.
STABLE: dict[str, dict[str, Any]] = json.loads((Path(__file__).parent / "hta_stable_order.json").read_text())["values"]

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

COMPARED = (6186, 39, 18)  # values, of these in another order of ties, of these raised by HTA

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

    def memory_speeds(self) -> Json | None:
        return self.rows("memory_bw_summary") if self.table("memory_bw_time_series") else None

    def column(self, answer: str, column: str) -> list[Any]:
        return [row[column] for row in self.table(answer)]

    def launch_stats(self) -> Json:
        names = {"short": "short(cpu<=50,gpu<cpu)", "runtime_outliers": "runtime_outliers(>50)"}
        names |= {"delay_outliers": "delay_outliers(>100)"}
        found = {}
        for row in self.table("cuda_kernel_launch_stats", "summary"):
            sums = {c: [row[f"{c}/{s}"] for s in ("sum", "mean", "max")] for c in LAUNCH_COLUMNS}
            found[str(row["rank"])] = {"n": row["n"], **sums, **{names[k]: row[k] for k in names}}
        return found

    def critical_path(self) -> Json | None:
        tables = {
            name: [row for row in self.table("critical_path_analysis", name) if row.pop("rank") == 0]
            for name in ("summary", "by_bound", "by_type")
        }
        if not tables["summary"]:
            return None
        types = {row.pop("type"): row for row in tables["by_type"]}
        bounds = {row["bound_by"]: row["duration"] for row in tables["by_bound"]}
        return {"ok": True, **tables["summary"][0], "by_bound_us": bounds, "by_type": types}

    def sequences(self) -> Json:
        rows = [row for row in self.table("frequent_cuda_kernel_sequences") if row.pop("rank") == 0]
        return {"n": len(rows), "rows": rows[:3]}

    def counters(self) -> Json:
        table = self.answers["cupti_counter_data_with_operators"]["tables"]["cupti_counter_data_with_operators"]
        names = sorted(column["name"] for column in table["columns"])
        return {"n": len(table["rows"]), "columns": dict.fromkeys(names, True)}

    def trace_rows(self) -> Json:
        return {str(row["rank"]): row["rows"] for row in self.table("trace_table", "ranks")}


LAUNCH_COLUMNS = ("cpu_duration", "gpu_duration", "launch_delay")
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
    "queue_length_summary": lambda o: o.rows_or_none("queue_length_summary"),
    "time_blocked_full_queue_max4": lambda o: o.rows("time_spent_blocked_on_full_queue"),
    "memory_bw_summary": Ours.memory_speeds,
    "launch_stats [sum,mean,max]": Ours.launch_stats,
    "frequent_kernel_sequences": Ours.sequences,
    "cupti_counters": Ours.counters,
    "critical_path": Ours.critical_path,
    "profiler_steps": lambda o: o.column("profiler_steps", "step"),
    "stragglers": lambda o: o.column("potential_stragglers", "rank"),
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
    stable: int = 0  # equal to HTA with a stable sort
    answered: int = 0  # values HTA has none for, because it raised
    differ: list[str] = field(default_factory=list)

    @property
    def compared(self) -> int:
        return self.equal + self.answered + self.stable + len(self.differ)

    def take(self, key: str, recorded: Any, ours: Any) -> None:
        if isinstance(recorded, dict) and "error" in recorded:  # HTA raised: any answer is better
            self.answered += 1
            return
        have = {path: as_recorded(value) for path, value in leaves(ours, key)}
        for path, value in leaves(recorded, key):
            if path in have and have[path] == value:
                self.equal += 1
            elif path in have and have[path] == STABLE.get(self.entry, {}).get(path):
                self.stable += 1
            else:
                self.differ.append(f"{self.entry}: {path}: HTA {value!r}, ours {have.get(path, 'absent')!r}")

    def line(self) -> str:
        return f"{self.entry:52}{self.compared:7}{self.equal:7}{self.stable:17}{self.answered:12}"


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
    given = {"num_kernels": "5", "include_memory_kernels": "true", "max_queue_length": "4"}
    given["operator_name"] = recorded.get("frequent_kernel_sequences", {}).get("op", "aten::linear")
    path = recorded.get("critical_path")
    if path:
        given |= {"annotation": path["annotation"], "instance_id": str(path["instance"])}
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
        if key == "cupti_counters":  # HTA's counters stand in a random order: a Python set's
            value = {**value, "columns": dict.fromkeys(value["columns"], True)}
        result.take(key, value, ANSWERS[key](ours))
    return result


def test_every_value_recorded_from_hta(stepscope: Path, corpus: Path) -> None:
    entries = reference()["traces"]
    assert set(TRACES) == {entry.removesuffix(VARIANT) for entry in entries}
    results = [compare(entry, recorded, stepscope, corpus) for entry, recorded in entries.items()]
    total = Comparison("all")
    print(f"\n{'entry':52}{'values':>7}{'equal':>7}{'order of ties':>17}{'HTA raised':>12}")
    for result in results:
        print(result.line())
        total.equal += result.equal
        total.stable += result.stable
        total.answered += result.answered
        total.differ += result.differ
    print(total.line())
    assert not total.differ, "\n".join(total.differ[:100])
    assert (total.compared, total.stable, total.answered) == COMPARED  # fewer: something is no longer compared


def test_the_trace_diff(stepscope: Path, corpus: Path) -> None:
    recorded = reference()["trace_diff"]
    files = [corpus / TRACES[f"trace_diff_{side}"][0] for side in ("control", "test")]
    names = report(stepscope, files, "--only", "trace_diff")
    short = report(stepscope, files, "--only", "trace_diff", "--arg", "device_type=GPU", "--arg", "use_short_name=true")
    rows = short.table("trace_diff", "compare_traces")
    top = sorted(rows, key=lambda row: -abs(row["diff_duration"]))[:4]
    result = Comparison("trace_diff")
    ours = {
        "ops_diff_counts(first rank, first iteration, ALL)": {
            row["change"]: row["names"] for row in names.table("trace_diff", "ops_diff")
        },
        "gpu_names": len(rows),
        "gpu_diff_duration_sum": sum(row["diff_duration"] for row in rows),
        "top": {"n": len(rows), "rows": [{**row, "short_name": row["name"]} for row in top]},
    }
    for key, value in recorded.items():
        result.take(key, value, ours[key])
    print("\n" + result.line())
    assert not result.differ
    assert result.compared == 40
