"""`stepscope graph`: drawings that other programs read, of real execution traces, Chakra files and hostile ones."""

from __future__ import annotations

import gzip
import json
import os
import random
import re
import shutil
import subprocess
import sys
import tarfile
import xml.etree.ElementTree as ElementTree
from pathlib import Path
from typing import Any

import pytest
from jobs import LOOP, NET, Place, needs_torch

SPACE = "{http://graphml.graphdrawing.org/xmlns}"
ODD = 'a"b\\N<i>&amp;\n\x1b[31m]]>' + "ü" * 3
needs_graphviz = pytest.mark.skipif(shutil.which("neato") is None, reason="Graphviz is not installed")


def execution_trace(path: Path, nodes: list[dict[str, Any]]) -> Path:
    path.write_text(json.dumps({"schema": "1.1.0-chakra.0.0.4", "pid": 1, "time": "", "nodes": nodes}))
    return path


def node(number: int, name: str, parent: int, waits: list[int] | None = None) -> dict[str, Any]:
    return {"id": number, "name": name, "ctrl_deps": parent, "data_deps": waits or [], "attrs": []}


def tangle(path: Path, count: int, names: int, waits: int = 4) -> Path:
    """Nodes under callers shortly before, each waiting for some of those before it."""
    chance = random.Random(7)
    nodes = [node(1, "root", 1)]
    for number in range(2, count + 1):
        parent = chance.randint(max(1, number - 20), number - 1)
        others = [chance.randint(1, number - 1) for _ in range(waits)]
        nodes.append(node(number, f"op {chance.randint(1, names)}", parent, others))
    return execution_trace(path, nodes)


def draw(stepscope: Path, trace: Path, out: Path | str, *options: str, **more: str) -> subprocess.CompletedProcess[str]:
    command = [str(stepscope), "graph", str(trace), "-o", str(out), "--no-cache", *options]
    return subprocess.run(command, capture_output=True, text=True, check=False, timeout=120, env={**os.environ, **more})


def drawn(stepscope: Path, trace: Path, out: Path, *options: str) -> str:
    done = draw(stepscope, trace, out, *options)
    assert (done.returncode, done.stderr) == (0, ""), done.stderr
    return done.stdout


def boxes(path: Path) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = json.loads(path.read_text())["boxes"]
    return found


def checked_by_graphviz(path: Path) -> None:
    subprocess.run(["neato", "-n2", "-Tplain", str(path), "-o", os.devnull], check=True, capture_output=True)


def real_files(corpus: Path, folder: Path) -> list[Path]:
    with tarfile.open(corpus / "chakra" / "feeder_tests_trace.tar.gz") as archive:
        (member,) = (one for one in archive if Path(one.name).name == "chakra.0.et")
        content = archive.extractfile(member)
        assert content is not None
        (folder / "chakra.0.et").write_bytes(content.read())
    linear, resnet = (corpus / "param_et" / f"{name}_et.json.gz" for name in ("linear", "resnet"))
    return [linear, resnet, folder / "chakra.0.et", corpus / "astra_sim" / "all_reduce.0.et"]


def test_every_format_of_real_files_holds_the_same_graph(stepscope: Path, corpus: Path, tmp_path: Path) -> None:
    for trace in real_files(corpus, tmp_path):
        out = {form: tmp_path / f"x.{form}" for form in ("dot", "graphml", "json")}
        said = {drawn(stepscope, trace, path) for path in out.values()}
        assert len(said) == 1, trace
        found = json.loads(out["json"].read_text())
        assert sum(box["nodes"] + box["inside"] for box in found["boxes"]) == found["nodes"]
        assert said.pop().startswith(f"{found['nodes']:,} node")
        assert found["collapsed"] == (found["nodes"] > len(found["boxes"]))
        graph = ElementTree.parse(out["graphml"]).getroot().find(f"{SPACE}graph")
        assert graph is not None
        assert len(graph.findall(f"{SPACE}node")) == len(found["boxes"])
        calls = sum(box["parent"] is not None for box in found["boxes"])
        assert len(graph.findall(f"{SPACE}edge")) == calls + len(found["arrows"])
        assert len(re.findall(r"(?m)^  n\d+ -> n\d+ \[", out["dot"].read_text())) == calls + len(found["arrows"])
        if shutil.which("neato"):
            checked_by_graphviz(out["dot"])


def test_nodes_are_those_of_the_file(stepscope: Path, corpus: Path, tmp_path: Path) -> None:
    trace = corpus / "param_et" / "linear_et.json.gz"
    with gzip.open(trace) as text:
        nodes = {node["id"]: node for node in json.load(text)["nodes"]}
    drawn(stepscope, trace, tmp_path / "x.json")
    found = boxes(tmp_path / "x.json")
    assert {box["id"] for box in found} == set(nodes)
    for box in found:
        parent = None if box["parent"] is None else found[box["parent"]]["id"]
        own = nodes[box["id"]]
        assert (box["name"], parent) == (own["name"], None if own["parent"] == own["id"] else own["parent"])


def test_too_many_nodes_are_collapsed_and_it_is_said(stepscope: Path, corpus: Path, tmp_path: Path) -> None:
    trace = corpus / "param_et" / "resnet_et.json.gz"
    said = drawn(stepscope, trace, tmp_path / "x.json", "--boxes", "50")
    found = boxes(tmp_path / "x.json")
    assert len(found) <= 50
    assert said == f"14,392 nodes collapsed into {len(found)} boxes\n"


@pytest.mark.parametrize(
    "ending", ["dot", "graphml", "json", *(pytest.param(e, marks=needs_graphviz) for e in ("svg", "pdf"))]
)
def test_odd_names(stepscope: Path, tmp_path: Path, ending: str) -> None:
    nodes = [node(1, ODD, 1), node(2, "x" * (1 << 20), 1, [1]), node(3, "", 1, [2]), node(4, "\ufffe\u202e]]>", 3)]
    trace, out = execution_trace(tmp_path / "et.json", nodes), tmp_path / f"x.{ending}"
    assert drawn(stepscope, trace, out) == "4 nodes\n"
    content = out.read_bytes()
    assert len(content) < 40_000
    if ending in ("graphml", "svg"):
        root = ElementTree.fromstring(content)
        shown = " ".join(root.itertext())
        assert 'a"b\\N<i>&amp;' in shown
    if ending == "json":
        assert json.loads(content)["boxes"][0]["name"].startswith('a"b\\N<i>&amp; ')
    if ending == "pdf":
        assert content.startswith(b"%PDF-")
    if ending == "dot" and shutil.which("neato"):
        checked_by_graphviz(out)


@needs_graphviz
def test_pictures_of_large_and_tangled_graphs_are_made(stepscope: Path, tmp_path: Path) -> None:
    """Graphviz's own layout of the first takes minutes."""
    few = tangle(tmp_path / "few.json", 1203, 1203)
    many = tangle(tmp_path / "many.json", 20_000, 5000, 1)
    assert drawn(stepscope, few, tmp_path / "few.svg") == "1,203 nodes\n"
    root = ElementTree.parse(tmp_path / "few.svg").getroot()
    groups = [group.get("class") for group in root.iter("{http://www.w3.org/2000/svg}g")]
    assert groups.count("node") == 1203
    said = drawn(stepscope, many, tmp_path / "many.svg", "--timeout", "60")
    assert said.startswith("20,000 nodes collapsed into 2,000 boxes; ")


def test_what_cannot_be_drawn_is_refused(stepscope: Path, tmp_path: Path, write_trace: Any) -> None:
    trace = tangle(tmp_path / "et.json", 5, 5)
    timeline = write_trace()
    for arguments, code, sentence in (
        ((timeline, tmp_path / "x.dot"), 1, "stepscope run --with execution-trace"),
        ((trace, tmp_path / "x.png"), 2, "x.svg or x.pdf"),
        ((trace, "-"), 2, "--to"),
        ((trace, trace), 1, "is the trace itself"),
        ((trace, tmp_path / "no" / "x.dot"), 1, "No such file"),
        ((trace, tmp_path / "x.dot", "--boxes", "0"), 2, "--boxes"),
        ((trace, tmp_path / "x.dot", "--to", "svgg"), 2, "'svgg' says no format"),
    ):
        done = draw(stepscope, *arguments)
        assert done.returncode in (code, 2), done.stderr
        assert sentence in done.stderr
        assert len(done.stderr.splitlines()) == 1
        assert done.stdout == ""
    assert not (tmp_path / "x.dot").exists()
    assert json.loads(trace.read_text())["nodes"], "the trace is as it was"


def test_without_graphviz_the_package_is_named_and_texts_are_written(stepscope: Path, tmp_path: Path) -> None:
    trace = tangle(tmp_path / "et.json", 5, 5)
    done = draw(stepscope, trace, tmp_path / "x.svg", PATH=str(tmp_path))
    assert done.returncode == 1
    assert "the package graphviz" in done.stderr and ".graphml" in done.stderr
    assert draw(stepscope, trace, tmp_path / "x.dot", PATH=str(tmp_path)).returncode == 0


def test_a_graphviz_that_hangs_or_fails_is_ended(stepscope: Path, tmp_path: Path) -> None:
    trace, programs = tangle(tmp_path / "et.json", 5, 5), tmp_path / "bin"
    programs.mkdir()
    neato = programs / "neato"
    path = f"{programs}:{os.environ['PATH']}"
    for body, said in (("exec sleep 60", "did not answer in time"), ("exit 3", "neato failed")):
        neato.write_text(f"#!/bin/sh\n{body}\n")
        neato.chmod(0o755)
        done = draw(stepscope, trace, tmp_path / "x.svg", "--timeout", "500ms", PATH=path)
        assert done.returncode == 1
        assert said in done.stderr and "--boxes" in done.stderr
        assert not (tmp_path / "x.svg").exists()


def test_a_damaged_file_is_drawn_as_far_as_it_goes(stepscope: Path, tmp_path: Path) -> None:
    trace = tangle(tmp_path / "et.json", 50, 50)
    trace.write_text(trace.read_text()[:-800])
    done = draw(stepscope, trace, tmp_path / "x.json")
    assert done.returncode == 4
    assert "the file ends before its list of nodes does" in done.stderr
    assert 1 < len(boxes(tmp_path / "x.json")) < 50


def test_chakra_s_command(stepscope: Path, tmp_path: Path) -> None:
    trace = tangle(tmp_path / "et.json", 20, 20)
    drawn(stepscope, trace, tmp_path / "a.graphml")
    command = [str(stepscope), "chakra_visualizer", "--input_filename", str(trace)]
    done = subprocess.run([*command, "--output_filename", str(tmp_path / "b.graphml")], capture_output=True, text=True)
    assert (done.returncode, done.stdout) == (0, "20 nodes\n")
    assert (tmp_path / "a.graphml").read_bytes() == (tmp_path / "b.graphml").read_bytes()


@needs_torch
def test_a_fresh_run(place: Place) -> None:
    options = ("--steps", "5:8", "--with", "modules,execution-trace")
    job = place.run(sys.executable, place.script(NET + LOOP), "12", options=options)
    assert job.code == 0, job.stderr
    out = place.folder / "x.json"
    done = place.plain(str(place.stepscope), "graph", str(job.folder), "-o", str(out), "--boxes", "100000")
    assert done.returncode == 0, done.stderr
    names = [box["name"] for box in boxes(out)]
    assert names.count("aten::linear") == names.count("AddmmBackward0") == 3 * 4
