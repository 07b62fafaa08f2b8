"""Chakra files as code that protoc makes of tests/python/chakra/et_def.proto reads them, and walkers with the rules of
the two feeders that exist: they issue what has nothing before it, as a simulator would ask them to.
"""

from __future__ import annotations

import importlib.util
import sys
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from types import ModuleType
from typing import Any

PROTO = Path(__file__).parent / "chakra" / "et_def.proto"

# What the first feeder looks for in every node, and the one type in which it finds it.
OLD_TYPES = {
    "is_cpu_op": "bool_val",
    "num_ops": "int64_val",
    "tensor_size": "uint64_val",
    "comm_type": "int64_val",
    "comm_size": "int64_val",
    "comm_priority": "int32_val",
    "comm_src": "int32_val",
    "comm_dst": "int32_val",
    "comm_tag": "int32_val",
    "pg_name": "string_val",
}
COMPUTE, SEND, RECEIVE, COLLECTIVE = 4, 5, 6, 7


def schema(folder: Path) -> ModuleType:
    """The module that protoc makes; raises ImportError without grpcio-tools."""
    from grpc_tools import protoc

    made = folder / "et_def_pb2.py"
    if protoc.main(["protoc", f"-I{PROTO.parent}", f"--python_out={folder}", str(PROTO)]) != 0:
        raise RuntimeError(f"protoc refused {PROTO}")
    spec = importlib.util.spec_from_file_location("stepscope_chakra_et_def_pb2", made)
    assert spec and spec.loader
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module
    spec.loader.exec_module(module)
    return module


def records(data: bytes) -> Iterator[bytes]:
    """The messages of a file; every byte must belong to one."""
    at = 0
    while at < len(data):
        size = shift = 0
        while True:
            byte = data[at]
            at += 1
            size |= (byte & 0x7F) << shift
            shift += 7
            if byte < 0x80:
                break
        assert size > 0, f"an empty record at byte {at} reads as the end of the file"
        assert at + size <= len(data), f"the record at byte {at} is longer than the file"
        yield data[at : at + size]
        at += size


def attributes(node: Any) -> dict[str, tuple[str, Any]]:
    found = {}
    for attribute in node.attr:
        assert attribute.name not in found, f"node {node.id} has {attribute.name} twice"
        kind = attribute.WhichOneof("value")
        found[attribute.name] = (kind, getattr(attribute, kind))
    return found


def value(node: Any, name: str) -> Any:
    return attributes(node)[name][1]


def read(path: Path, module: ModuleType) -> tuple[Any, list[Any]]:
    messages = records(path.read_bytes())
    head = module.GlobalMetadata.FromString(next(messages))
    nodes = [module.Node.FromString(message) for message in messages]
    for message in [head, *nodes]:
        message.DiscardUnknownFields()
    again = [module.Node.FromString(message) for message in list(records(path.read_bytes()))[1:]]
    assert nodes == again, "there are fields that the schema does not have"
    return head, nodes


def check(nodes: list[Any]) -> Counter[int]:
    """Unique ids, what a node waits for before it, the attributes' types; how many nodes there are of each type."""
    seen: set[int] = set()
    for node in nodes:
        assert node.id not in seen, f"id {node.id} twice"
        for other in [*node.ctrl_deps, *node.data_deps]:
            assert other in seen, f"node {node.id} waits for {other}, which is not before it"
        assert len(set(node.data_deps)) == len(node.data_deps)
        seen.add(node.id)
        found = attributes(node)
        for name, kind in OLD_TYPES.items():
            assert found[name][0] == kind, f"{name} of node {node.id} is {found[name][0]}"
        assert all(kind == "int64_val" for name, (kind, _) in found.items() if name not in OLD_TYPES)
    return Counter(node.type for node in nodes)


def walk(nodes: list[Any], before: Callable[[Any], list[int]], look: Callable[[Any], None]) -> int:
    """Issues what has nothing before it, until nothing is ready; returns how many nodes were issued."""
    waits: dict[int, int] = {}
    followers: dict[int, list[Any]] = {}
    for node in nodes:
        needs = set(before(node))
        waits[node.id] = len(needs)
        for other in needs:
            followers.setdefault(other, []).append(node)
    ready = [node for node in nodes if waits[node.id] == 0]
    issued = 0
    while ready:
        node = ready.pop()
        look(node)
        issued += 1
        for follower in followers.get(node.id, []):
            waits[follower.id] -= 1
            if waits[follower.id] == 0:
                ready.append(follower)
    return issued


def old_feeder(nodes: list[Any]) -> int:
    """Data dependencies only; an attribute of another type reads as 0, so a wrong type is a wrong value."""

    def look(node: Any) -> None:
        for name, kind in OLD_TYPES.items():
            found = attributes(node).get(name)
            assert found and found[0] == kind, f"{name} of node {node.id}"

    return walk(nodes, lambda node: list(node.data_deps), look)


def new_feeder(nodes: list[Any]) -> int:
    """Control dependencies too; any kind of integer; a missing attribute is an error."""
    ids = {node.id for node in nodes}

    def before(node: Any) -> list[int]:
        needs = [*node.ctrl_deps, *node.data_deps]
        assert ids.issuperset(needs), f"node {node.id} waits for what is not in the file"
        return needs

    def look(node: Any) -> None:
        if node.type == COLLECTIVE:
            assert 0 <= int(value(node, "comm_type")) <= 9 and int(value(node, "comm_size")) >= 0
        if node.type in (SEND, RECEIVE):
            assert all(isinstance(value(node, name), int) for name in ("comm_src", "comm_dst", "comm_tag", "comm_size"))
        if node.type in (SEND, RECEIVE, COLLECTIVE):
            assert value(node, "pg_name") == "" or value(node, "pg_name").isdigit()

    return walk(nodes, before, look)


def longest_path(nodes: list[Any]) -> int:
    """When the last node ends if each starts as soon as what it waits for has ended, in microseconds."""
    end: dict[int, int] = {}
    for node in nodes:
        start = max((end[other] for other in [*node.ctrl_deps, *node.data_deps]), default=0)
        end[node.id] = start + node.duration_micros
    return max(end.values(), default=0)
