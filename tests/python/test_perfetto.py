"""Perfetto files, decoded with Perfetto's own bindings, say what `stepscope query` says of the trace they came from."""

from __future__ import annotations

import json
import subprocess
from collections import Counter, defaultdict
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import stepscope as package

ROOT = Path(__file__).resolve().parent.parent.parent
WriteTrace = Callable[..., Path]
Slice = tuple[int, str, int, int]  # rank, name, start, duration


class Decoded:
    """The events of a file: names looked up, begins and ends paired as Perfetto pairs them."""

    def __init__(self, path: Path) -> None:
        protos = pytest.importorskip("perfetto.protos.perfetto.trace.perfetto_trace_pb2")
        trace = protos.Trace()
        trace.ParseFromString(path.read_bytes())
        self.event = protos.TrackEvent
        self.units = protos.CounterDescriptor
        self.tracks: dict[int, Any] = {}
        self.slices: list[Slice] = []
        self.annotations: dict[int, dict[str, Any]] = {}  # of slices, by their row
        self.flows: dict[int, list[tuple[int, bool]]] = defaultdict(list)  # arrow: rows of its slices, is it the end
        self.counters: list[tuple[str, int, float]] = []
        self.totals: dict[str, list[int]] = defaultdict(list)  # allocator
        self.instants: Counter[str] = Counter()
        self._names: dict[tuple[int, str, int], str] = {}
        self._open: dict[int, list[tuple[str, int]]] = defaultdict(list)
        self._last: dict[int, int] = defaultdict(int)
        for packet in trace.packet:
            self._take(packet)
        assert not any(self._open.values()), "every slice has an end"

    def _take(self, packet: Any) -> None:
        sequence = packet.trusted_packet_sequence_id
        interned = packet.interned_data
        for kind in ("event_names", "event_categories", "debug_annotation_names"):
            for entry in getattr(interned, kind):
                self._names[sequence, kind, entry.iid] = entry.name
        for entry in interned.debug_annotation_string_values:
            self._names[sequence, "texts", entry.iid] = entry.str.decode()
        if packet.HasField("track_descriptor"):
            assert packet.track_descriptor.uuid not in self.tracks
            self.tracks[packet.track_descriptor.uuid] = packet.track_descriptor
        if packet.HasField("track_event"):
            self._take_event(sequence, packet.timestamp, packet.track_event)

    def _take_event(self, sequence: int, time_ns: int, event: Any) -> None:
        track = self.tracks[event.track_uuid]
        name = self._names[sequence, "event_names", event.name_iid] if event.name_iid else event.name
        if event.type == self.event.TYPE_COUNTER:
            self.counters.append((track.name, time_ns, event.double_counter_value))
        elif event.type == self.event.TYPE_INSTANT:
            self.instants[name] += 1
            for uuid, value in zip(event.extra_counter_track_uuids, event.extra_counter_values):
                assert self.tracks[uuid].counter.unit == self.units.UNIT_SIZE_BYTES
                self.totals[self.tracks[uuid].name].append(value)
        else:
            assert time_ns >= self._last[event.track_uuid], "times of a track go forward"
            self._last[event.track_uuid] = time_ns
            self._take_half(sequence, time_ns, event, name)

    def _take_half(self, sequence: int, time_ns: int, event: Any, name: str) -> None:
        stack = self._open[event.track_uuid]
        if event.type == self.event.TYPE_SLICE_END:
            begun, start_ns = stack.pop()
            self.slices.append((sequence - 1, begun, start_ns, time_ns - start_ns))
            return
        assert event.type == self.event.TYPE_SLICE_BEGIN
        stack.append((name, time_ns))
        values = {self._name(sequence, a): self._value(sequence, a) for a in event.debug_annotations}
        self.annotations[values["slice"]] = values
        for flow in event.flow_ids:
            self.flows[flow].append((values["slice"], False))
        for flow in event.terminating_flow_ids:
            self.flows[flow].append((values["slice"], True))

    def _name(self, sequence: int, annotation: Any) -> str:
        return self._names[sequence, "debug_annotation_names", annotation.name_iid]

    def _value(self, sequence: int, annotation: Any) -> Any:
        if annotation.dict_entries:
            return {self._name(sequence, a): self._value(sequence, a) for a in annotation.dict_entries}
        if annotation.array_values:
            return [self._value(sequence, a) for a in annotation.array_values]
        kind = annotation.WhichOneof("value")
        if kind == "string_value_iid":
            return self._names[sequence, "texts", annotation.string_value_iid]
        return getattr(annotation, kind) if kind else {}


def convert(stepscope: Path, source: Path, out: Path) -> Decoded:
    command = [stepscope, "convert", source, "--to", "perfetto", "-o", out]
    subprocess.run([str(part) for part in command], check=True, capture_output=True)
    return Decoded(out)


def rows(run: package.Run, sql: str) -> list[dict[str, Any]]:
    result = run.query(sql, limit=10_000_000)
    assert not result.cut
    return list(result.to_pylist())


def check_slices(decoded: Decoded, run: package.Run) -> None:
    expected = rows(run, "select rank, name, start_ns, dur_ns from slices")
    assert Counter(decoded.slices) == Counter((r["rank"], r["name"], r["start_ns"], r["dur_ns"]) for r in expected)


def test_ranks_of_a_run(stepscope: Path, tmp_path: Path) -> None:
    source = ROOT / "tests" / "traces" / "two_ranks"
    decoded = convert(stepscope, source, tmp_path / "t.pftrace")
    run = package.open(source, cache=False)
    check_slices(decoded, run)
    processes = {t.process.process_name for t in decoded.tracks.values() if t.HasField("process")}
    assert {name.split(" / ")[0] for name in processes} == {"rank 0", "rank 1"}
    pids = [t.process.pid for t in decoded.tracks.values() if t.HasField("process")]
    assert len(set(pids)) == len(pids) and all(0 < pid < 2**31 for pid in pids)
    for track in decoded.tracks.values():
        assert not track.parent_uuid or track.parent_uuid in decoded.tracks


def test_columns_arrows_and_instants(stepscope: Path, corpus: Path, tmp_path: Path) -> None:
    source = corpus / "param_et" / "resnet_kineto.json.gz"
    decoded = convert(stepscope, source, tmp_path / "t.pftrace")
    run = package.open(source, cache=False)
    check_slices(decoded, run)
    for row in rows(run, "select slice, correlation, grid_x, name from kernels"):
        device = decoded.annotations[row["slice"]]["device"]
        assert (device["correlation"], device.get("grid_x")) == (row["correlation"], row["grid_x"])
    for row in rows(run, "select slice, external_id, input_dims from ops"):
        op = decoded.annotations[row["slice"]]["op"]
        assert (op.get("external_id"), op.get("input_dims")) == (row["external_id"], row["input_dims"])
    launches = {r["slice"]: r["launch"] for r in rows(run, "select slice, launch from device_work where launch >= 0")}
    arrows = {ends[1][0]: ends[0][0] for ends in map(sorted_ends, decoded.flows.values()) if len(ends) == 2}
    starts = {r["slice"]: r["start_ns"] for r in rows(run, "select slice, start_ns from slices")}
    assert (
        arrows.keys() == launches.keys()
    )  # one call of no length stands at the start of a launch and may have its arrow
    assert all(starts[arrows[slice]] == starts[launches[slice]] for slice in launches)
    assert sum(arrows[slice] != launches[slice] for slice in launches) <= 1
    bound = sum(len(ends) for ends in decoded.flows.values())
    assert bound + decoded.instants["flow"] == rows(run, "select count(*) as n from flows")[0]["n"]


def sorted_ends(ends: list[tuple[int, bool]]) -> list[tuple[int, bool]]:
    return sorted(ends, key=lambda end: end[1])


def test_counters_memory_and_overlaps(stepscope: Path, tmp_path: Path) -> None:
    def event(kind: str, name: str, ts: float, **more: Any) -> dict[str, Any]:
        return {"ph": kind, "name": name, "pid": 7, "tid": 8, "ts": ts, "cat": "cpu_op", **more}

    memory = {"Device Type": 1, "Device Id": 0, "Bytes": 512, "Addr": 16}
    events = [
        event("X", "first", 10, dur=20, args={"Ev Idx": 4, "list": [1, "ü"]}),
        event("X", "overlaps", 20.001, dur=20.5),
        event("X", "nothing", 25, dur=0),
        event("C", "clock", 11, args={"MHz": 1500.25}),
        event("C", "clock", 12, args={"MHz": 1400}),
        event("i", "mark", 13, s="t"),
        event("i", "[memory]", 14, s="t", args={**memory, "Total Allocated": 512, "Total Reserved": 2**33}),
    ]
    source = tmp_path / "t.json"
    source.write_text(json.dumps({"traceEvents": events}))
    decoded = convert(stepscope, source, tmp_path / "t.pftrace")
    run = package.open(source, cache=False)
    check_slices(decoded, run)
    assert json.loads(decoded.annotations[0]["args"]) == {"Ev Idx": 4, "list": [1, "ü"]}
    values = [(f"{r['name']} {r['key']}", r["time_ns"], r["value"]) for r in rows(run, "select * from counters")]
    assert decoded.counters == values == [("clock MHz", 11_000, 1500.25), ("clock MHz", 12_000, 1400.0)]
    assert decoded.instants == {"stepscope": 1, "mark": 1, "[memory]": 1}
    assert decoded.totals == {"allocated, device 0": [512], "reserved, device 0": [2**33]}
