"""Execution traces linked with their timelines, and the Chakra files made of them: read back by code that protoc makes
of the schema, and issued whole by walkers with the rules of both feeders.
"""

from __future__ import annotations

import gzip
import json
import os
import subprocess
import sys
from pathlib import Path
from types import ModuleType
from typing import Any

import chakra_files
import pytest
from jobs import Place

import stepscope as core

REFERENCE = Path(os.environ.get("STEPSCOPE_REFERENCE", Path(__file__).parents[3] / "shared" / "reference" / "chakra"))


@pytest.fixture(scope="module")
def schema(tmp_path_factory: pytest.TempPathFactory) -> ModuleType:
    pytest.importorskip("grpc_tools", reason="tests/requirements.txt names grpcio-tools")
    return chakra_files.schema(tmp_path_factory.mktemp("protoc"))


def run(program: Path, *words: str | Path, code: int = 0) -> subprocess.CompletedProcess[str]:
    environment = {**os.environ, "STEPSCOPE_CACHE": "off"}
    command = [str(program), *map(str, words)]
    done = subprocess.run(command, text=True, capture_output=True, env=environment, check=False)
    assert done.returncode == code, done.stderr
    return done


def node(number: int, parent: int, name: str, rf_id: int, **more: Any) -> dict[str, Any]:
    """As torch writes it since schema 1.0.2."""
    values = {"rf_id": rf_id, "tid": 1, "fw_tid": 0, "seq_id": -1, **more.pop("attrs", {})}
    attrs = [{"name": key, "type": "int64", "value": value} for key, value in values.items()]
    inputs = {"values": more.pop("values", []), "shapes": more.pop("shapes", []), "types": more.pop("types", [])}
    return {"id": number, "name": name, "ctrl_deps": parent, "inputs": inputs, "attrs": attrs}


def op(name: str, ts: float, dur: float, rf_id: int, tid: int = 8, **args: Any) -> dict[str, Any]:
    known = {"Record function id": rf_id, "External id": rf_id, **args}
    return {"ph": "X", "cat": "cpu_op", "name": name, "pid": 7, "tid": tid, "ts": ts, "dur": dur, "args": known}


def pair(folder: Path, rank: int = 0) -> tuple[Path, Path]:
    """A step of one rank: a matrix product, a send of gloo on a worker's thread, and a wait for the device."""
    groups = [{"pg_name": "dp", "pg_desc": "data", "ranks": [0, 1], "group_size": 2}]
    said = json.dumps(groups)
    nodes = [
        node(3, 2, "## process_group:init ##", 1, values=[said], shapes=[[]], types=["String"]),
        node(5, 2, "aten::mm", 2),
        node(6, 2, "c10d::send", 3, values=[[[1, 2, 0, 8, 4, "cpu"]], "<Object>", 1 - rank, 5]),
        node(7, 6, "gloo:send", 4, shapes=[[2, 4]], types=["Tensor(float)"]),
        node(8, 2, "aten::item", 5),
        node(9, 2, "record_param_comms", 6),
        node(2, 1, "[pytorch|profiler|execution_trace|thread]", 0),
        node(1, 1, "[pytorch|profiler|execution_trace|process]", 0),
    ]
    comms = {"collective_name": "allreduce", "dtype": "Float", "in_msg_nelems": 256, "pg_name": "dp", "pg_size": 2}
    nodes[5]["attrs"] += [{"name": key, "type": "x", "value": value} for key, value in comms.items()]
    launch = {"ph": "X", "cat": "cuda_runtime", "pid": 7, "tid": 8}
    work = {"ph": "X", "pid": 0}
    nccl = {"Collective name": "allreduce", "dtype": "Float", "Process Group Name": "dp"}
    sizes = {"In msg nelems": 256, "Out msg nelems": 256, "Group size": 2}
    events = [
        op("aten::mm", 100, 30, 2),
        {**launch, "name": "cudaLaunchKernel", "ts": 110, "dur": 5, "args": {"correlation": 1}},
        {**work, "cat": "kernel", "tid": 7, "name": "gemm", "ts": 120.5, "dur": 200.25}
        | {"args": {"device": 0, "stream": 7, "correlation": 1}},
        op("c10d::send", 140, 10, 3),
        op("gloo:send", 145, 20, 4, tid=9),
        op("record_param_comms", 150, 10, 6, tid=8, **{**nccl, **sizes}),
        {**launch, "name": "cudaLaunchKernel", "ts": 152, "dur": 3, "args": {"correlation": 3}},
        {**work, "cat": "kernel", "tid": 20, "name": "ncclDevKernel_AllReduce_Sum_f32", "ts": 330, "dur": 40}
        | {"args": {"device": 0, "stream": 20, "correlation": 3}},
        op("aten::item", 170, 180, 5),
        {**launch, "name": "cudaMemcpyAsync", "ts": 175, "dur": 5, "args": {"correlation": 2}},
        {**work, "cat": "gpu_memcpy", "tid": 7, "name": "Memcpy DtoH", "ts": 322, "dur": 2}
        | {"args": {"device": 0, "stream": 7, "correlation": 2}},
        {**launch, "name": "cudaStreamSynchronize", "ts": 185, "dur": 150, "args": {"correlation": 4}},
    ]
    graph, timeline = folder / f"et_rank{rank}.json", folder / f"trace_rank{rank}.json"
    graph.write_text(json.dumps({"schema": "1.1.1-chakra.0.0.4", "pid": 7, "nodes": nodes}))
    document: dict[str, Any] = {"schemaVersion": 1, "traceEvents": events}
    document["distributedInfo"] = {"backend": "nccl", "rank": rank, "world_size": 2}
    timeline.write_text(json.dumps(document))
    return graph, timeline


def by_name(nodes: list[Any], name: str) -> list[Any]:
    return [node for node in nodes if node.name == name]


def test_link_tells_what_matched(stepscope: Path, tmp_path: Path) -> None:
    graph, timeline = pair(tmp_path)
    linked = tmp_path / "linked.json"
    told = run(stepscope, "link", timeline, graph, "-o", linked).stdout
    assert "operators            5           0  5 by record function id" in told
    assert "device work          3           0" in told
    counts = json.loads(run(stepscope, "link", timeline, graph, "--json").stdout)
    assert counts["operators"]["matched"] == counts["operators"]["evidence"]["record function id"] == 5
    assert counts["operators"]["unmatched"] == counts["device_work"]["unmatched"] == 0
    assert counts["device_work"]["matched"] == 3 and counts["schema_version"] == 1
    document = json.loads(linked.read_text())
    nodes = {node["name"]: node for node in document["nodes"]}
    assert nodes["aten::mm"]["ts"] == 100 and nodes["aten::mm"]["inclusive_dur"] == 30
    assert nodes["gemm"]["ctrl_deps"] == nodes["aten::mm"]["id"] and nodes["gemm"]["stream"] == 7
    events = json.loads(timeline.read_text())["traceEvents"]
    timeline.write_text(json.dumps({"traceEvents": [*events, op("aten::add", 400, 10, 7)]}))
    graph.write_text(graph.read_text().replace('"nodes": [', f'"nodes": [{json.dumps(node(10, 2, "aten::add", 7))}, '))
    run(stepscope, "link", graph, timeline, "-o", tmp_path / "more.json")
    more = {node["name"]: node for node in json.loads((tmp_path / "more.json").read_text())["nodes"]}
    assert more["aten::add"]["sync_dep"] == [more["Memcpy DtoH"]["id"]]
    rows = core.open(linked, cache=False).table("nodes").to_pylist()
    again = {row["name"]: row for row in rows}
    assert (again["gemm"]["start_ns"], again["gemm"]["dur_ns"], again["gemm"]["kind"]) == (120500, 200250, "compute")
    assert len(rows) == 11


def test_linking_two_runs_is_refused(stepscope: Path, tmp_path: Path) -> None:
    graph, timeline = pair(tmp_path)
    document = json.loads(timeline.read_text())
    for event in document["traceEvents"]:
        event["name"] = "aten::other"
    timeline.write_text(json.dumps(document))
    done = run(stepscope, "link", graph, timeline, "-o", tmp_path / "linked.json", code=1)
    assert "name different operators" in done.stderr and "--with execution-trace" in done.stderr
    assert not (tmp_path / "linked.json").exists()


def test_full_profile(stepscope: Path, tmp_path: Path, schema: ModuleType) -> None:
    graph, timeline = pair(tmp_path)
    run(stepscope, "convert", graph, timeline, "--to", "chakra", "-o", tmp_path / "job")
    head, nodes = chakra_files.read(tmp_path / "job.0.et", schema)
    assert head.version == "0.0.4"
    types = chakra_files.check(nodes)
    assert types[schema.COMM_SEND_NODE] == types[schema.COMM_COLL_NODE] == types[schema.METADATA_NODE] == 1
    assert chakra_files.old_feeder(nodes) == chakra_files.new_feeder(nodes) == len(nodes)
    (send,) = by_name(nodes, "gloo:send")
    values = [chakra_files.value(send, name) for name in ("comm_src", "comm_dst", "comm_tag", "comm_size")]
    assert values == [0, 1, 5, 32]
    (reduce,) = by_name(nodes, "ncclDevKernel_AllReduce_Sum_f32")
    assert chakra_files.value(reduce, "comm_type") == schema.NodeType.Value("COMM_COLL_NODE") - 7
    assert chakra_files.value(reduce, "comm_size") == 1024 and chakra_files.value(reduce, "pg_name").isdigit()
    before, after = by_name(nodes, "aten::item")
    (copy,) = by_name(nodes, "Memcpy DtoH")
    assert before.id in copy.data_deps and copy.id in after.data_deps
    assert [before.duration_micros, after.duration_micros] == [15, 26]
    assert chakra_files.value(copy, "start_ns") == 222_000
    assert json.loads(by_name(nodes, "## process_group:init ##")[0].inputs.values[2:-2])[0]["pg_name"] == "dp"
    # The operator, its kernel, the copy behind it, and what the host did after waiting for that one.
    assert chakra_files.longest_path(nodes) == 30 + 200 + 2 + 26


def test_whole_microseconds_keep_the_length(stepscope: Path, tmp_path: Path, schema: ModuleType) -> None:
    timeline = tmp_path / "trace.json"
    events = [op("aten::relu", at * 0.7, 0.7, at + 1) for at in range(1000)]
    timeline.write_text(json.dumps({"schemaVersion": 1, "traceEvents": events}))
    run(stepscope, "convert", timeline, "--to", "chakra", "-o", tmp_path / "job")
    nodes = chakra_files.read(tmp_path / "job.0.et", schema)[1]
    assert sum(node.duration_micros for node in nodes) == 700
    assert sum(chakra_files.value(node, "dur_ns") for node in nodes) == 700_000


def test_astra_profile(stepscope: Path, tmp_path: Path, schema: ModuleType) -> None:
    pair(tmp_path, 0)
    pair(tmp_path, 1)
    run(stepscope, "convert", tmp_path, "--to", "chakra", "--profile", "astra", "-o", tmp_path / "job")
    assert json.loads((tmp_path / "job.groups.json").read_text()) == {"1": [0, 1]}
    for rank in (0, 1):
        nodes = chakra_files.read(tmp_path / f"job.{rank}.et", schema)[1]
        chakra_files.check(nodes)
        assert not any(node.ctrl_deps or chakra_files.value(node, "is_cpu_op") for node in nodes)
        assert chakra_files.new_feeder(nodes) == len(nodes)
        assert {node.type for node in nodes} == {schema.COMP_NODE, schema.COMM_SEND_NODE, schema.COMM_COLL_NODE}
        (reduce,) = (node for node in nodes if node.type == schema.COMM_COLL_NODE)
        assert chakra_files.value(reduce, "pg_name") == "1"
        assert chakra_files.longest_path(nodes) == pytest.approx(270, abs=2)


def test_a_bare_execution_trace_says_that_it_has_no_times(stepscope: Path, tmp_path: Path, schema: ModuleType) -> None:
    graph, _ = pair(tmp_path)
    done = run(stepscope, "convert", graph, "--to", "chakra", "-o", tmp_path / "bare")
    assert "all durations are 0" in done.stderr
    nodes = chakra_files.read(tmp_path / "bare.0.et", schema)[1]
    assert chakra_files.new_feeder(nodes) == len(nodes) == 6
    assert sum(node.duration_micros for node in nodes) == 0
    refused = run(stepscope, "convert", graph, "--to", "chakra", "--profile", "astra", "-o", tmp_path / "bare", code=1)
    assert "has no times" in refused.stderr


def test_bad_execution_traces_still_make_sound_files(stepscope: Path, tmp_path: Path, schema: ModuleType) -> None:
    circle = [node(3, 4, "a", 1), node(4, 3, "b", 2), node(4, 3, "twice", 3), node(5, 99, "orphan", 4)]
    circle[0]["data_deps"], circle[1]["data_deps"] = [4], [3, 98]
    path = tmp_path / "circle.json"
    path.write_text(json.dumps({"schema": "1.1.1-chakra.0.0.4", "nodes": circle}))
    done = run(stepscope, "convert", path, "--to", "chakra", "-o", tmp_path / "bad", code=4)
    assert "1 dependencies ran backwards" in done.stderr
    nodes = chakra_files.read(tmp_path / "bad.0.et", schema)[1]
    chakra_files.check(nodes)
    assert chakra_files.new_feeder(nodes) == len(nodes) == 3
    huge = [node(2**63 - 1, 1, "a", 1), node(7, 1, "b", 2)]
    path.write_text(json.dumps({"schema": "1.1.1-chakra.0.0.4", "nodes": huge}))
    run(stepscope, "convert", path, "--to", "chakra", "-o", tmp_path / "huge")
    assert sum(chakra_files.check(chakra_files.read(tmp_path / "huge.0.et", schema)[1]).values()) == 2


def test_broken_records_are_told_with_their_place(stepscope: Path, tmp_path: Path) -> None:
    graph, timeline = pair(tmp_path)
    run(stepscope, "convert", graph, timeline, "--to", "chakra", "-o", tmp_path / "job")
    data = (tmp_path / "job.0.et").read_bytes()
    cut, out = tmp_path / "cut.et", tmp_path / "out.json"
    for content, words in [(data[:-3], "cut or too large"), (data + b"\x80", "cut or too large"), (b"", "")]:
        cut.write_bytes(content)
        done = run(stepscope, "chakra_jsonizer", "--input_filename", cut, "--output_filename", out, code=1)
        assert words in done.stderr and not out.exists()
    refused = run(stepscope, "convert", tmp_path / "job.0.et", "--to", "chakra", "-o", tmp_path / "x", code=1)
    assert "is a Chakra file already" in refused.stderr
    unknown = run(stepscope, "convert", graph, timeline, "--to", "chakra", "--profile", "all", "-o", cut, code=2)
    assert "full or astra" in unknown.stderr


def test_the_commands_that_people_know(stepscope: Path, tmp_path: Path, schema: ModuleType) -> None:
    graph, timeline = pair(tmp_path)
    folder = tmp_path / "some" / "bin"
    run(stepscope, "install-aliases", folder)
    linked, chakra, text = (tmp_path / name for name in ("linked.json", "job.et", "job.json"))
    traces: list[str | Path] = ["--chakra-host-trace", graph, "--chakra-device-trace", timeline]
    run(folder / "chakra_trace_link", *traces, "--output-file", linked, "--rank", "0")
    run(folder / "chakra_converter", "PyTorch", "--input", linked, "--output", chakra)
    run(folder / "chakra_jsonizer", "--input_filename", chakra, "--output_filename", text)
    run(folder / "chakra_visualizer", "--input_filename", chakra, "--output_filename", tmp_path / "job.graphml")
    assert "<graphml" in (tmp_path / "job.graphml").read_text()
    nodes = chakra_files.read(chakra, schema)[1]
    chakra_files.check(nodes)
    assert chakra_files.new_feeder(nodes) == len(nodes)
    document = json.loads(text.read_text())
    assert document["version"] == "0.0.4"
    from google.protobuf import json_format

    whole = json_format.MessageToDict
    assert [whole(json_format.ParseDict(each, schema.Node())) for each in document["nodes"]] == list(map(whole, nodes))
    (folder / "chakra_converter").write_text("mine")
    assert "not made by stepscope" in run(stepscope, "install-aliases", folder, code=2).stderr
    assert (folder / "chakra_converter").read_text() == "mine"


def test_the_reference_pair_reads(stepscope: Path, tmp_path: Path, schema: ModuleType) -> None:
    if not REFERENCE.is_dir():
        pytest.skip(f"no reference files at {REFERENCE} (set STEPSCOPE_REFERENCE)")
    for path in sorted(REFERENCE.glob("*.et")):
        nodes = chakra_files.read(path, schema)[1]
        rows = core.open(path, cache=False).table("nodes").to_pylist()
        assert [row["id"] for row in rows] == [node.id for node in nodes]
        assert [row["dur_ns"] for row in rows if row["kind"] == "compute"] == [100_000, 50_000]
        run(stepscope, "chakra_jsonizer", "--input_filename", path, "--output_filename", tmp_path / "x.json")
        assert len(json.loads((tmp_path / "x.json").read_text())["nodes"]) == len(nodes)


PAIRS = {
    "linear": ("param_et/linear_et.json.gz", "param_et/linear_kineto.json.gz"),
    "add": (
        "hta/execution_trace/benchmark_simple_add_et.json.gz",
        "hta/execution_trace/benchmark_simple_add_trace.json.gz",
    ),
}


@pytest.mark.parametrize("name", PAIRS)
def test_pairs_of_the_corpus(stepscope: Path, corpus: Path, tmp_path: Path, schema: ModuleType, name: str) -> None:
    graph, timeline = (corpus / part for part in PAIRS[name])
    for profile in ("full", "astra"):
        out = tmp_path / profile
        run(stepscope, "convert", graph, timeline, "--to", "chakra", "--profile", profile, "-o", out)
        nodes = chakra_files.read(Path(f"{out}.0.et"), schema)[1]
        chakra_files.check(nodes)
        assert chakra_files.old_feeder(nodes) == chakra_files.new_feeder(nodes) == len(nodes)
        last = max(node.start_time_micros + node.duration_micros for node in nodes)
        assert chakra_files.longest_path(nodes) == pytest.approx(last, rel=0.01)
        if profile == "full":
            wanted = {node["id"] for node in json.loads(gzip.decompress(graph.read_bytes()))["nodes"]}
            ids = {node.id for node in nodes}
            assert len(wanted - ids) <= 3, "only the process and its threads are no nodes"


def test_timelines_alone(stepscope: Path, corpus: Path, tmp_path: Path, schema: ModuleType) -> None:
    paths = [corpus / "deepseek" / "train.json", *sorted((corpus / "hta" / "critical_path").rglob("*.json.gz"))]
    looked = 0
    for path in filter(Path.exists, paths):
        out = tmp_path / "job"
        run(stepscope, "convert", path, "--to", "chakra", "-o", out)
        (made,) = tmp_path.glob("job.*.et")
        nodes = chakra_files.read(made, schema)[1]
        chakra_files.check(nodes)
        assert chakra_files.old_feeder(nodes) == chakra_files.new_feeder(nodes) == len(nodes)
        made.unlink()
        looked += 1
    assert looked >= 3


TWO_RANKS = """
import torch
import torch.distributed as dist

dist.init_process_group("gloo")
rank = dist.get_rank()
model = torch.nn.parallel.DistributedDataParallel(torch.nn.Linear(64, 64))
optimizer = torch.optim.SGD(model.parameters(), 0.1)
values = torch.ones(100)
for _ in range(8):
    optimizer.zero_grad()
    model(torch.randn(8, 64)).sum().backward()
    dist.send(values, 1, tag=5) if rank == 0 else dist.recv(values, 0, tag=5)
    optimizer.step()
dist.barrier()  # the one that is done first does not leave while the other still reads from it
dist.destroy_process_group()
"""


def test_a_fresh_run_of_two_ranks(place: Place, tmp_path: Path, schema: ModuleType) -> None:
    pytest.importorskip("torch")
    options = ("--steps", "4:6", "--with", "execution-trace,shapes")
    job = place.run(
        sys.executable, "-m", "torch.distributed.run", "--nproc-per-node", "2", place.script(TWO_RANKS), options=options
    )
    assert job.code == 0, job.stderr
    assert job.folder is not None
    for folder in sorted((job.folder / "traces").iterdir()):
        told = run(
            place.stepscope, "link", *sorted(set(folder.iterdir()) - set(folder.glob("*.stacks.*")))
        ).stdout.splitlines()
        assert told[1].split()[2] == "0", told
    for profile in ("full", "astra"):
        run(place.stepscope, "convert", job.folder, "--to", "chakra", "--profile", profile, "-o", tmp_path / profile)
        for rank in (0, 1):
            nodes = chakra_files.read(tmp_path / f"{profile}.{rank}.et", schema)[1]
            types = chakra_files.check(nodes)
            assert chakra_files.new_feeder(nodes) == len(nodes)
            ends = schema.COMM_SEND_NODE if rank == 0 else schema.COMM_RECV_NODE
            assert types[schema.COMM_COLL_NODE] == types[ends] == 2
            peers = {chakra_files.value(node, "comm_dst") for node in nodes if node.type == ends}
            tags = {chakra_files.value(node, "comm_tag") for node in nodes if node.type == ends}
            assert (peers, tags) == ({1}, {5})
            sizes = [chakra_files.value(node, "comm_size") for node in nodes if node.type == schema.COMM_COLL_NODE]
            assert sizes == [(64 * 64 + 64) * 4] * 2


@pytest.mark.parametrize(("name", "ranks"), [("nn_demo", 1), ("nn_ddp_demo", 4)])
def test_examples_are_collected_linked_and_merged(place: Place, corpus: Path, name: str, ranks: int) -> None:
    pytest.importorskip("torch")
    program = corpus.parent / "examples" / f"{name}.py"
    if not program.exists():
        pytest.skip(f"there is no {program}")
    job = place.run(sys.executable, str(program), options=("--with", "execution-trace"))
    assert job.code == 0, job.stderr
    assert job.folder is not None
    folders = sorted((job.folder / "traces").iterdir())
    assert len(folders) == ranks
    for folder in folders:
        files = sorted(set(folder.iterdir()) - set(folder.glob("*.stacks.*")))
        operators = run(place.stepscope, "link", *files).stdout.splitlines()[1].split()
        assert operators[0] == "operators" and int(operators[1]) > 100 and operators[2] == "0", operators
        assert "record function id" in " ".join(operators)
    merged = place.folder / "merged.json"
    run(place.stepscope, "merge", job.folder, "--lane-prefix", "r", "-o", merged)
    events = json.loads(merged.read_text())["traceEvents"]
    lanes = {e["args"]["name"] for e in events if e.get("name") in ("process_name", "thread_name")}
    if ranks > 1:  # one rank alone keeps its names
        assert {lane[:3] for lane in lanes if lane[:1] == "r" and lane[2:3] == "_"} == {f"r{r}_" for r in range(ranks)}
