"""What an assistant is offered: the protocol as its specification has it, and the same figures as everywhere."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path
from typing import Any

from jobs import Place

TINY = str(Path(__file__).parents[1] / "traces" / "tiny_train.json")


def talk(place: Place, *messages: str | dict[str, Any]) -> list[dict[str, Any]]:
    lines = [one if isinstance(one, str) else json.dumps(one) for one in messages]
    done = subprocess.run(
        [str(place.stepscope), "mcp"],
        input="".join(line + "\n" for line in lines),
        capture_output=True,
        text=True,
        timeout=120,
    )
    assert done.returncode == 0, done.stderr
    return [json.loads(line) for line in done.stdout.split("\n") if line]


def call(place: Place, tool: str, **arguments: str) -> dict[str, Any]:
    params = {"name": tool, "arguments": arguments}
    (reply,) = talk(place, {"jsonrpc": "2.0", "id": 7, "method": "tools/call", "params": params})
    assert reply["id"] == 7
    result: dict[str, Any] = reply["result"]
    return result


def text(result: dict[str, Any]) -> str:
    (content,) = result["content"]
    assert content["type"] == "text"
    said: str = content["text"]
    return said


def test_a_session_begins_and_lists_its_tools(place: Place) -> None:
    hello, tools = talk(
        place,
        {"jsonrpc": "2.0", "id": "a", "method": "initialize", "params": {"protocolVersion": "2024-11-05"}},
        {"jsonrpc": "2.0", "method": "notifications/initialized"},
        {"jsonrpc": "2.0", "id": 2, "method": "tools/list"},
    )
    assert hello["id"] == "a" and hello["result"]["protocolVersion"] == "2024-11-05"
    assert hello["result"]["serverInfo"]["name"] == "stepscope" and "tools" in hello["result"]["capabilities"]
    found = {tool["name"]: tool["inputSchema"] for tool in tools["result"]["tools"]}
    assert set(found) == {"findings", "answers", "query"}
    assert found["query"]["required"] == ["path", "sql"] and found["answers"]["required"] == ["path"]


def test_findings_are_those_of_advise(place: Place) -> None:
    said = json.loads(text(call(place, "findings", path=TINY)))
    direct = subprocess.run(
        [str(place.stepscope), "advise", TINY, "--json"], capture_output=True, text=True, check=True
    )
    assert said["findings"] == json.loads(direct.stdout)["findings"]


def test_answers_are_named_and_given(place: Place) -> None:
    names = json.loads(text(call(place, "answers", path=TINY)))["answers"]
    assert "overview" in names and "steps" in names
    report = json.loads(text(call(place, "answers", path=TINY, only="steps, operators")))
    assert set(report["answers"]) == {"steps", "operators"}


def test_sql_gives_rows(place: Place) -> None:
    result = call(place, "query", path=TINY, sql="select count(*) as n from slices")
    assert not result["isError"]
    (row,) = json.loads(text(result))["rows"]
    assert row["n"] > 0


def test_what_fails_is_said_and_the_session_goes_on(place: Place) -> None:
    missing = call(place, "findings", path="/nowhere/trace.json")
    assert missing["isError"] and "/nowhere/trace.json" in text(missing)
    wrong = call(place, "query", path=TINY, sql="drop table slices")
    assert wrong["isError"]
    assert call(place, "answers", path=TINY, only="nothing")["isError"]
    broken, unknown, no_tool, pong = talk(
        place,
        "{not json",
        {"jsonrpc": "2.0", "id": 1, "method": "resources/list"},
        {"jsonrpc": "2.0", "id": 2, "method": "tools/call", "params": {"name": "rm"}},
        {"jsonrpc": "2.0", "id": 3, "method": "ping"},
    )
    assert broken["error"]["code"] == -32700 and unknown["error"]["code"] == -32601
    assert no_tool["error"]["code"] == -32602 and pong["result"] == {}


def test_a_message_without_an_end_fills_no_memory(place: Place) -> None:
    ping = {"jsonrpc": "2.0", "id": 3, "method": "ping"}
    refused, answered = talk(place, "[" * (65 << 20), ping)
    assert "not a JSON object" in refused["error"]["message"]
    assert answered["id"] == 3


def test_an_id_that_is_none_is_not_said_again(place: Place) -> None:
    replies = talk(
        place,
        '{"id": [}, "method": "ping"}',
        '{"id": nonsense, "method": "ping"}',
        '{"id": "\\u0007", "method": "ping"}',
    )
    assert [one.get("error", {}).get("code") for one in replies] == [-32600, -32600, None]
    assert replies[2]["id"] == "\u0007"


def test_names_from_a_trace_stay_on_their_line(place: Place, tmp_path: Path) -> None:
    event = {"ph": "X", "cat": "cpu_op", "name": 'a"\n\u2028b', "pid": 1, "tid": 1, "ts": 1, "dur": 5}
    trace = tmp_path / "odd.json"
    trace.write_text(json.dumps({"traceEvents": [event]}))
    (row,) = json.loads(text(call(place, "query", path=str(trace), sql="select name from slices")))["rows"]
    assert row["name"].startswith('a"')
