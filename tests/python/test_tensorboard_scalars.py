"""`report --tensorboard`: event files as TensorBoard reads them, by a reader of our own."""

from __future__ import annotations

import json
import os
import struct
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from conftest import kernel, op

ROOT = Path(__file__).resolve().parent.parent.parent
WriteTrace = Callable[..., Path]
Curves = dict[str, dict[int, float]]  # by tag, by step


def crc32c(data: bytes) -> int:
    crc = 0xFFFFFFFF
    for byte in data:
        crc ^= byte
        for _ in range(8):
            crc = crc >> 1 ^ (0x82F63B78 if crc & 1 else 0)
    return crc ^ 0xFFFFFFFF


def masked(data: bytes) -> int:
    crc = crc32c(data)
    return (((crc >> 15) | (crc << 17)) + 0xA282EAD8) & 0xFFFFFFFF


def records(data: bytes) -> Iterator[bytes]:
    at = 0
    while at < len(data):
        (length,) = struct.unpack_from("<Q", data, at)
        assert struct.unpack_from("<I", data, at + 8) == (masked(data[at : at + 8]),)
        body = data[at + 12 : at + 12 + length]
        assert struct.unpack_from("<I", data, at + 12 + length) == (masked(body),)
        yield body
        at += 16 + length


def varint(data: bytes, at: int) -> tuple[int, int]:
    value = shift = 0
    while True:
        byte = data[at]
        value |= (byte & 0x7F) << shift
        at, shift = at + 1, shift + 7
        if byte < 0x80:
            return value, at


def fields(data: bytes) -> dict[int, list[Any]]:
    """The fields of a protobuf message: whole numbers, doubles and floats as they are, all else as bytes."""
    found: dict[int, list[Any]] = {}
    at = 0
    while at < len(data):
        tag, at = varint(data, at)
        value: Any
        if tag & 7 == 0:
            value, at = varint(data, at)
        elif tag & 7 == 1:
            value, at = struct.unpack_from("<d", data, at)[0], at + 8
        elif tag & 7 == 5:
            value, at = struct.unpack_from("<f", data, at)[0], at + 4
        else:
            assert tag & 7 == 2
            length, at = varint(data, at)
            value, at = data[at : at + length], at + length
        found.setdefault(tag >> 3, []).append(value)
    return found


class EventFile:
    def __init__(self, path: Path) -> None:
        events = [fields(record) for record in records(path.read_bytes())]
        assert events[0][3] == [b"brain.Event:2"]
        self.curves: Curves = {}
        self.meanings: dict[str, str] = {}
        self.times: dict[int, float] = {}
        for event in events[1:]:
            (step,) = event[2]
            (self.times[step],) = event[1]
            for text in fields(event[5][0])[1]:
                value = fields(text)
                tag = value[1][0].decode()
                if 9 in value:
                    assert tag not in self.curves
                    metadata = fields(value[9][0])
                    assert fields(metadata[1][0])[1] == [b"scalars"]
                    self.meanings[tag] = metadata[3][0].decode()
                assert step not in self.curves.setdefault(tag, {})
                (self.curves[tag][step],) = value[2]


Write = Callable[..., "subprocess.CompletedProcess[str]"]


@pytest.fixture
def write(stepscope: Path, tmp_path: Path) -> Write:
    """write(PATH, OPTION…): into the folder tb of the test's own folder."""

    def run(path: Path | str, *options: str, folder: str = "tb") -> subprocess.CompletedProcess[str]:
        command = [str(stepscope), "report", str(path), "--no-cache", "--tensorboard", str(tmp_path / folder), *options]
        return subprocess.run(command, capture_output=True, text=True, check=False, cwd=ROOT)

    return run


def event_file(folder: Path, rank: int = 0) -> EventFile:
    return EventFile(folder / f"rank{rank}" / "events.out.tfevents.stepscope")


def test_every_rank_has_the_numbers_of_the_report(write: Write, stepscope: Path, tmp_path: Path) -> None:
    done = write("tests/traces/two_ranks")
    assert done.returncode == 0 and done.stdout == ""
    assert "of 2 ranks over 3 steps" in done.stderr and f"tensorboard --logdir {tmp_path}/tb" in done.stderr
    command = [str(stepscope), "report", "tests/traces/two_ranks", "--json", "--no-cache"]
    report = json.loads(subprocess.run(command, capture_output=True, text=True, check=True, cwd=ROOT).stdout)
    table = report["answers"]["steps"]["tables"]["steps"]
    names = [column["name"] for column in table["columns"]]
    wanted: dict[int, Curves] = {0: {}, 1: {}}
    for cells in table["rows"]:
        row = dict(zip(names, cells))
        for name in ("wall_ns", "kernel_ns", "communication_ns"):
            curve = wanted[row["rank"]].setdefault(f"steps/{name.removesuffix('_ns')}_s", {})
            curve[row["number"]] = row[name] / 1e9
    for rank in (0, 1):
        got = event_file(tmp_path / "tb", rank)
        assert wanted[rank]
        for tag, curve in wanted[rank].items():
            assert got.curves[tag] == pytest.approx(curve)
            assert got.meanings[tag]
        assert got.times == pytest.approx({3: 1.7e9 + 0.006, 4: 1.7e9 + 0.007, 5: 1.7e9 + 0.008}, abs=1e-4)


def test_unknown_is_left_out_and_told(write: Write, tmp_path: Path) -> None:
    done = write("tests/traces/two_ranks")
    curves = event_file(tmp_path / "tb").curves
    assert "flops/mfu" not in curves and "flops/mfu" in done.stderr
    assert curves["flops/forward_flop"]  # of the same table
    assert not any(tag.endswith("start_s") for tag in curves)  # a moment is no measure


def test_memory_by_device(write: Write, tmp_path: Path) -> None:
    assert write("tests/traces/tiny_rich.json").returncode == 0
    peaks = event_file(tmp_path / "tb").curves["memory/cuda:0/peak_bytes"]
    assert peaks and all(value > 0 for value in peaks.values())


def test_writing_again_replaces_ours_and_keeps_others(write: Write, tmp_path: Path) -> None:
    write("tests/traces/two_ranks")
    ours = tmp_path / "tb" / "rank0" / "events.out.tfevents.stepscope"
    first = ours.read_bytes()
    other = ours.with_name("events.out.tfevents.1.host.2.0")
    other.write_bytes(b"of the job itself")
    assert write("tests/traces/two_ranks").returncode == 0
    assert ours.read_bytes() == first
    assert other.read_bytes() == b"of the job itself"
    assert sorted(path.name for path in ours.parent.iterdir()) == [other.name, ours.name]


def steps(*numbers: int) -> list[dict[str, Any]]:
    found = []
    for place, number in enumerate(numbers):
        step = {"ph": "X", "cat": "user_annotation", "name": f"ProfilerStep#{number}", "pid": 7, "tid": 8}
        found += [
            {**step, "ts": 1000 * place, "dur": 1000},
            op("aten::mm", 1000 * place + 10, 100, **{"Input Dims": [[64, 64], [64, 64]], "Input type": ["float"] * 2}),
            kernel("gemm", 1000 * place + 50, 200, number),
        ]
    return found


def test_mfu_where_the_peak_is_known(write: Write, write_trace: WriteTrace, tmp_path: Path) -> None:
    trace = write_trace(events=steps(1, 2, 3))
    document = json.loads(trace.read_text())
    document["deviceProperties"] = [{"id": 0, "name": "Toy GPU"}]
    trace.write_text(json.dumps(document))
    peaks = tmp_path / "peaks.txt"
    peaks.write_text("Toy GPU | 900 | float32 1 | a made one\n")
    assert write(trace, "--peaks", str(peaks)).returncode == 0
    took_s = 2 * 64**3 / 1e12
    assert event_file(tmp_path / "tb").curves["flops/mfu"][2] == pytest.approx(took_s / 1e-3)


def test_a_file_without_a_time_of_day_lends_its_own(write: Write, write_trace: WriteTrace, tmp_path: Path) -> None:
    trace = write_trace(events=steps(1, 2, 3))
    os.utime(trace, (1.6e9, 1.6e9))
    done = write(trace)
    assert done.returncode == 0 and "is that of the file: rank0" in done.stderr
    assert event_file(tmp_path / "tb").times[3] == pytest.approx(1.6e9, abs=1e-3)


def test_only_what_was_asked_for(write: Write, tmp_path: Path) -> None:
    assert write("tests/traces/two_ranks", "--only", "dataloader").returncode == 0
    assert {tag.split("/")[0] for tag in event_file(tmp_path / "tb").curves} == {"dataloader"}


def test_without_steps_the_error_says_what_to_do(write: Write, write_trace: WriteTrace, tmp_path: Path) -> None:
    done = write(write_trace(events=[op("aten::mm", 0, 10)]))
    assert done.returncode == 1
    assert "no curve to write" in done.stderr and "prof.step()" in done.stderr
    assert not (tmp_path / "tb").exists()
    assert write("tests/traces/two_ranks", "--only", "kernels").returncode == 1


def test_an_input_is_never_replaced(write: Write, write_trace: WriteTrace, tmp_path: Path) -> None:
    trace = write_trace(events=steps(1, 2, 3))
    target = tmp_path / "tb" / "rank0" / "events.out.tfevents.stepscope"
    target.parent.mkdir(parents=True)
    os.link(trace, target)
    before = trace.read_bytes()
    done = write(trace)
    assert done.returncode == 2 and "the trace itself" in done.stderr
    assert target.read_bytes() == before


def test_where_it_cannot_be_written(write: Write, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    done = write("tests/traces/two_ranks", folder="file")
    assert done.returncode == 1 and "the folder cannot be made" in done.stderr


@pytest.mark.parametrize("option", [["--json"], ["--html", "x.html"], ["-o", "x"], ["--sort", "rank"]])
def test_it_is_an_output_of_its_own(write: Write, option: list[str]) -> None:
    assert write("tests/traces/two_ranks", *option).returncode == 2
