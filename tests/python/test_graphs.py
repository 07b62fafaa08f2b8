"""Execution traces of every schema in the corpus: each node is there, as Python's own JSON reader sees it."""

from __future__ import annotations

import gzip
import io
import json
import tarfile
from collections.abc import Iterator
from pathlib import Path

import pytest

import stepscope


def execution_traces(corpus: Path, folder: Path) -> Iterator[Path]:
    yield from sorted(corpus.glob("param_et/**/*_et.json.gz"))
    yield corpus / "hta" / "execution_trace" / "benchmark_simple_add_et.json.gz"
    for packed in sorted([*corpus.glob("param_et/*_et*.tar.gz"), *corpus.glob("chakra/1.0.2*.tgz")]):
        with tarfile.open(packed) as archive:
            for member in archive:
                name = Path(member.name).name
                if member.isfile() and name.endswith(".json") and not name.startswith("._"):
                    path = folder / name
                    content = archive.extractfile(member)
                    assert content is not None
                    path.write_bytes(content.read())
                    yield path


def parsed(path: Path) -> dict[str, object]:
    raw = path.read_bytes()
    return json.load(io.BytesIO(gzip.decompress(raw) if raw[:2] == b"\x1f\x8b" else raw))  # type: ignore[no-any-return]


def test_every_node_is_there(corpus: Path, tmp_path: Path) -> None:
    schemas = set()
    files = 0
    for path in execution_traces(corpus, tmp_path):
        document = parsed(path)
        nodes = document["nodes"]
        assert isinstance(nodes, list)
        schemas.add(document["schema"])
        files += 1
        rows = stepscope.open(path, cache=False).table("nodes").to_pylist()
        expected = []
        for node in nodes:
            attributes = {each["name"]: each["value"] for each in node.get("attrs", [])}
            parent = node["parent"] if "parent" in node else node["ctrl_deps"]
            rf_id = node["rf_id"] if "rf_id" in node else attributes["rf_id"]
            expected.append((node["id"], node["name"], None if parent == node["id"] else parent, rf_id))
        got = [(row["id"], row["name"], row["parent"], row["record_function_id"]) for row in rows]
        assert got == expected, path
    assert files >= 14
    assert len(schemas) >= 4, schemas


def test_chakra_files(corpus: Path) -> None:
    run = stepscope.open(corpus / "astra_sim", cache=False)
    rows = run.table("nodes").to_pylist()
    assert sorted(row["rank"] for row in rows) == [0, 1, 2, 3]
    assert {(row["kind"], row["collective"]) for row in rows} == {("collective", "all_reduce")}
    assert all(row["comm_bytes"] > 0 for row in rows)


def test_an_execution_trace_beside_its_timeline_is_one_run(corpus: Path) -> None:
    run = stepscope.open(corpus / "hta" / "execution_trace", cache=False)
    assert {row["format"] for row in run.table("files").to_pylist()} == {"chrome_trace", "execution_trace"}
    assert not [row for row in run.table("issues").to_pylist() if row["code"] == "rank_clash"]
    assert len(run.table("nodes").to_pylist()) == 38


@pytest.mark.parametrize("schema", ["1.0.1", "1.1.1-chakra.0.0.4"])
def test_an_empty_one_opens(tmp_path: Path, schema: str) -> None:
    path = tmp_path / "et.json"
    path.write_text(json.dumps({"schema": schema, "pid": 1, "nodes": []}))
    assert stepscope.open(path, cache=False).table("nodes").to_pylist() == []
