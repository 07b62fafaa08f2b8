"""`stepscope view`: who may ask, what it answers, and that nothing a client does takes it down."""

from __future__ import annotations

import contextlib
import gzip
import json
import socket
import time
from collections.abc import Callable
from pathlib import Path

import pytest
from conftest import op
from jobs import Place
from viewer import Viewer, read_tile

WriteTrace = Callable[..., Path]


def test_it_answers_what_the_report_says(view: Callable[..., Viewer], write_trace: WriteTrace, place: Place) -> None:
    trace = write_trace()
    viewer = view(str(trace))
    (run,) = viewer.json("api/runs")["runs"]
    assert run["name"] == "trace.json"
    answers = viewer.json("api/answers?run=r1")
    done = place.plain(str(place.stepscope), "report", str(trace), "--json", "--no-cache")
    assert answers["answers"].keys() == json.loads(done.stdout)["answers"].keys()
    status, found = viewer.query("select name, dur_ns from kernels order by start_ns")
    assert status == 200 and found["columns"] == ["name", "dur_ns"] and found["rows"]
    status, body = viewer.get("")
    assert status == 200 and (b"app.js" in body or b"no page" in body)
    assert viewer.stop() == 0


def test_the_file_of_a_rank_is_given_as_it_is(
    view: Callable[..., Viewer], write_trace: WriteTrace, place: Place
) -> None:
    trace = write_trace(events=[op(f"aten::op{i}", 10 * i, 5) for i in range(200)])
    packed = trace.with_suffix(".json.gz")
    packed.write_bytes(gzip.compress(trace.read_bytes()))
    for path in (trace, packed):
        viewer = view(str(path))
        (rank,) = viewer.json("api/timeline?run=r1")["ranks"]
        assert rank["bytes"] == path.stat().st_size
        _, sent, body = viewer.ask(f"/{viewer.token}/api/trace?run=r1&rank=0", headers={"Accept-Encoding": "gzip"})
        assert body == path.read_bytes() and "content-encoding" not in sent
        assert "connect-src 'self';" in sent["content-security-policy"]
    packed.unlink()
    status, body = viewer.get("api/trace?run=r1&rank=0")
    assert status >= 400 and json.loads(body)["error"]["hint"]


@pytest.mark.parametrize(
    ("path", "headers", "method"),
    [
        ("/TOKEN/api/runs", {"Host": "evil.example.com"}, "GET"),
        ("/TOKEN/api/runs", {"Host": "127.0.0.1.evil.example.com"}, "GET"),
        ("/TOKEN/api/runs", {"Host": ""}, "GET"),
        ("/TOKEN/api/runs", {"Origin": "http://evil.example.com"}, "GET"),
        ("/TOKEN/api/runs", {"Origin": "null"}, "GET"),
        ("/TOKEN/api/runs", {"Origin": "http://localhost:1"}, "GET"),
        ("/", {}, "GET"),
        ("/api/runs", {}, "GET"),
        ("/00000000000000000000000000000000/api/runs", {}, "GET"),
        ("/TOKENx/api/runs", {}, "GET"),
        ("//TOKEN/api/runs", {}, "GET"),
        ("/TOKEN/api/query?run=r1", {}, "POST"),
    ],
)
def test_who_may_not_ask_is_refused(
    view: Callable[..., Viewer], write_trace: WriteTrace, path: str, headers: dict[str, str], method: str
) -> None:
    viewer = view(str(write_trace()))
    status, sent, body = viewer.ask(path.replace("TOKEN", viewer.token), method, "select 1", headers)
    assert status == 403 and json.loads(body)["error"]["hint"], body
    assert viewer.token.encode() not in body
    assert "default-src 'none'" in sent["content-security-policy"] and sent["x-content-type-options"] == "nosniff"


def test_long_answers_are_packed_for_who_takes_it(view: Callable[..., Viewer], write_trace: WriteTrace) -> None:
    viewer = view(str(write_trace()))
    viewer.json("api/answers?run=r1")
    path = f"/{viewer.token}/api/answers?run=r1"
    _, plain, body = viewer.ask(path)
    _, packed, small = viewer.ask(path, headers={"Accept-Encoding": "gzip, deflate, br"})
    assert "content-encoding" not in plain and packed["content-encoding"] == "gzip"
    assert gzip.decompress(small) == body and len(small) < len(body) / 4


def test_a_tunnel_and_a_proxy_may_ask(view: Callable[..., Viewer], write_trace: WriteTrace) -> None:
    viewer = view(str(write_trace()), "--allow-host", "hub.example.com")
    for host in ("localhost:9999", "[::1]:8", "127.0.0.1", "hub.example.com"):
        status, _, _ = viewer.ask(f"/{viewer.token}/api/runs", headers={"Host": host, "Origin": f"http://{host}"})
        assert status == 200, host


def test_the_address_behind_a_proxy_is_told(
    view: Callable[..., Viewer], write_trace: WriteTrace, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("VSCODE_PROXY_URI", "https://code.example.com/me/proxy/{{port}}/")
    viewer = view(str(write_trace()))
    status, _, _ = viewer.ask(f"/{viewer.token}/api/runs", headers={"Host": "code.example.com"})
    assert status == 200
    assert viewer.stop() == 0
    said = viewer.process.stderr.read() if viewer.process.stderr else ""
    assert f"https://code.example.com/me/proxy/{viewer.port}/{viewer.token}/" in said
    assert f"ssh -L {viewer.port}:127.0.0.1:{viewer.port}" in said


def test_it_listens_on_this_machine_alone(view: Callable[..., Viewer], write_trace: WriteTrace) -> None:
    viewer = view(str(write_trace()))
    listening = []
    for table in ("/proc/net/tcp", "/proc/net/tcp6"):
        with contextlib.suppress(FileNotFoundError):
            for line in Path(table).read_text().splitlines()[1:]:
                address, state = line.split()[1], line.split()[3]
                if state == "0A" and int(address.split(":")[1], 16) == viewer.port:
                    listening.append(address.split(":")[0])
    assert listening == ["0100007F"]


@pytest.mark.parametrize(
    "path", ["../../etc/passwd", "%2e%2e/%2e%2e/etc/passwd", "app.js/../../x", "api/slice?run=../etc&rank=0&slice=0"]
)
def test_no_path_leads_to_files(view: Callable[..., Viewer], write_trace: WriteTrace, path: str) -> None:
    viewer = view(str(write_trace()))
    status, body = viewer.get(path)
    assert status == 404 and b"root:" not in body


@pytest.mark.parametrize(
    "path",
    [
        "api/tiles?run=r1&from=0&to=9e99&px=100&lanes=0",
        "api/tiles?run=r1&from=5&to=5&px=100&lanes=0",
        "api/tiles?run=r1&from=0&to=5&px=0&lanes=0",
        "api/tiles?run=r1&from=nan&to=5&px=10&lanes=0",
        "api/tiles?run=r1",
        "api/slice?run=r1&rank=0&slice=99999999",
        "api/slice?run=r1&rank=7&slice=0",
        "api/slice?run=r1&rank=-1&slice=0",
        "api/search?run=r1&q=",
        "api/trace?run=r1",
        "api/trace?run=r1&rank=7",
        "api/trace?run=r1&rank=../../etc/passwd",
        "api/path?run=r1&from=0&to=5&px=0&ranks=all",
        "api/path?run=r1&from=5&to=0&px=10&ranks=all",
        "api/phases?run=r1&from=0&to=5&px=99999&ranks=0",
        "api/counters?run=r1&from=0&to=5&lanes=0",
    ],
)
def test_what_cannot_be_meant_is_refused(view: Callable[..., Viewer], write_trace: WriteTrace, path: str) -> None:
    viewer = view(str(write_trace()))
    viewer.json("api/timeline?run=r1")
    status, body = viewer.get(path)
    assert status == 400 and json.loads(body)["error"]["hint"], body
    # lanes that are not there are left out
    status, body = viewer.get("api/tiles?run=r1&from=0&to=5&px=10&lanes=77,x,-1,4294967296")
    assert status == 200 and read_tile(body)["lanes"] == []


@pytest.mark.parametrize(
    "sql",
    [
        "attach database '/tmp/x.db' as x",
        "pragma writable_schema = 1",
        "drop table kernels",
        "select load_extension('x')",
        "select readfile('/etc/passwd')",
        "",
        "select * from nothing",
    ],
)
def test_queries_only_read(view: Callable[..., Viewer], write_trace: WriteTrace, sql: str) -> None:
    viewer = view(str(write_trace()))
    viewer.json("api/timeline?run=r1")
    status, found = viewer.query(sql)
    assert status in (400, 500) and found["error"]["message"]


def test_names_are_data(view: Callable[..., Viewer], write_trace: WriteTrace) -> None:
    hostile = ["</script><script>alert(1)</script>", 'a"b\\c', "\u202egnp.exe", "x" * 1_000_000]
    viewer = view(str(write_trace(events=[op(name, 100 * i, 90) for i, name in enumerate(hostile)])))
    viewer.json("api/timeline?run=r1")
    status, body = viewer.get("api/tiles?run=r1&from=0&to=400000&px=1000&lanes=0")
    assert status == 200 and len(body) < 10_000
    names = list(read_tile(body)["names"].values())
    assert sorted(names) == sorted([*hostile[:3], "x" * 300])
    assert viewer.json("api/slice?run=r1&rank=0&slice=3")["name"] == hostile[3]
    status, sent, _ = viewer.ask(f"/{viewer.token}/api/timeline?run=r1")
    assert sent["content-type"] == "application/json"


def test_slow_queries_hold_up_nobody(view: Callable[..., Viewer], write_trace: WriteTrace) -> None:
    viewer = view(str(write_trace()))
    viewer.json("api/timeline?run=r1")
    endless = "with recursive n(i) as (select 1 union all select i + 1 from n) select count(*) from n"
    request = (
        f"POST /{viewer.token}/api/query?run=r1 HTTP/1.1\r\nHost: localhost\r\nX-Stepscope: 1\r\n"
        f"Content-Length: {len(endless)}\r\n\r\n{endless}"
    ).encode()
    clients = [socket.create_connection(("127.0.0.1", viewer.port)) for _ in range(20)]
    for client in clients:
        client.sendall(request)
    began = time.monotonic()
    for path in ("", "api/runs", "api/timeline?run=r1", "api/search?run=r1&q=a"):
        assert viewer.get(path)[0] == 200
    assert time.monotonic() - began < 10
    for client in clients:
        client.close()
    assert viewer.stop() == 0  # at once


def test_a_bomb_and_no_trace_are_told(view: Callable[..., Viewer], place: Place, write_trace: WriteTrace) -> None:
    bomb = place.folder / "bomb.json.gz"
    with gzip.open(bomb, "wb", compresslevel=9) as file:
        for _ in range(300):
            file.write(b" " * 1_000_000)
    alone = place.plain(str(place.stepscope), "view", str(bomb), "--no-browser")
    assert alone.returncode == 1 and "bomb" in alone.stderr and not alone.stdout
    viewer = view("--each", str(write_trace()), str(bomb))
    for _ in range(400):
        status, body = viewer.get("api/answers?run=r2")
        if status != 202:
            break
        time.sleep(0.05)
    assert status in (400, 500) and json.loads(body)["error"]["message"]
    assert viewer.json("api/runs")["runs"][1]["state"] == "failed"


def test_a_file_that_is_replaced_is_opened_again(view: Callable[..., Viewer], write_trace: WriteTrace) -> None:
    trace = write_trace(events=[op("before", 0, 10)])
    viewer = view(str(trace))
    assert viewer.json("api/search?run=r1&q=before")["total"] == 1
    write_trace(events=[op("after", 0, 10), op("after", 20, 10)])
    # a slice whose file changed is told without its text
    viewer.json("api/slice?run=r1&rank=0&slice=0")
    for _ in range(200):
        (run,) = viewer.json("api/runs")["runs"]
        if run["revision"] == 2:
            break
        time.sleep(0.05)
    assert run["live"] is True
    assert viewer.json("api/search?run=r1&q=after&revision=2")["total"] == 2
    # what was numbered before means something else now
    for question in ("slice?run=r1&rank=0&slice=0", "timeline?run=r1", "search?run=r1&q=after", "answers?run=r1"):
        status, body = viewer.get(f"api/{question}&revision=1")
        assert status == 409 and json.loads(body)["error"]["hint"], body


def test_a_folder_of_runs_is_a_list(view: Callable[..., Viewer], place: Place, write_trace: WriteTrace) -> None:
    for name in ("one", "two"):
        write_trace(f"logs/{name}/traces/rank0/a.pt.trace.json", 0)
        (place.folder / "logs" / name / "run.json").write_text('{"schema_version": 1}')
    viewer = view(str(place.folder / "logs"))
    runs = viewer.json("api/runs")["runs"]
    assert sorted(run["name"] for run in runs) == ["one", "two"]
    assert {run["state"] for run in runs} == {"closed"}  # opened when they are looked at
    assert viewer.json(f"api/timeline?run={runs[1]['id']}")["lanes"]


def test_what_a_change_would_be_worth(view: Callable[..., Viewer], write_trace: WriteTrace, place: Place) -> None:
    trace = write_trace()
    viewer = view(str(trace))
    viewer.json("api/timeline?run=r1")
    status, found = viewer.post("api/what_if?run=r1", "\n--scale kernel:gemm=0.5\nremove op:aten::empty\n")
    assert status == 200, found
    options = ["--scale", "kernel:gemm=0.5", "--remove", "op:aten::empty", "--json", "--no-cache"]
    done = place.plain(str(place.stepscope), "what-if", str(trace), *options)
    assert found["answers"] == json.loads(done.stdout)["answers"]
    status, found = viewer.post("api/what_if?run=r1", "")
    assert status == 200 and "candidates" in found["answers"]["what_if"]["tables"]
    for lines, said in (("scale kernel:gemm", "TARGET=VALUE"), ("rm -rf", "is no change"), ("no-waits 1", "value")):
        status, found = viewer.post("api/what_if?run=r1", lines)
        assert status == 400 and said in found["error"]["message"] and found["error"]["hint"], found
    assert viewer.get("api/what_if?run=r1")[0] == 405


def test_predictions_and_files_are_of_what_was_opened(view: Callable[..., Viewer], write_trace: WriteTrace) -> None:
    trace = write_trace()
    viewer = view(str(trace))
    viewer.json("api/timeline?run=r1")
    status, body = viewer.get("api/trace?run=r1&rank=0")
    assert (status, body) == (200, trace.read_bytes())
    write_trace(events=[op("OTHER", 0, 10)])
    for question in ("search?run=r1&q=OTHER&changes=no-waits", "trace?run=r1&rank=0"):
        status, body = viewer.get(f"api/{question}&revision=1")
        assert status == 409 and b"OTHER" not in body, body


def test_two_runs_are_compared(view: Callable[..., Viewer], write_trace: WriteTrace, place: Place) -> None:
    before, after = write_trace("before/trace.json"), write_trace("after/trace.json", events=[op("aten::mm", 0, 500)])
    viewer = view("--each", str(before), str(after))
    assert [run["name"] for run in viewer.json("api/runs")["runs"]] == ["before/trace.json", "after/trace.json"]
    found = viewer.json("api/diff?run=r2&before=r1")
    done = place.plain(str(place.stepscope), "diff", str(before), str(after), "--json", "--no-cache")
    assert found["answers"] == json.loads(done.stdout)["answers"]
    status, body = viewer.get("api/diff?run=r2&before=r7")
    assert status == 404 and json.loads(body)["error"]["hint"]


def test_clients_that_hang_hold_up_nobody(view: Callable[..., Viewer], write_trace: WriteTrace) -> None:
    viewer = view(str(write_trace()))
    viewer.json("api/answers?run=r1")
    idle = [socket.create_connection(("127.0.0.1", viewer.port)) for _ in range(1000)]
    slow = []
    for _ in range(50):  # ask for a page again and again, and read nothing
        one = socket.create_connection(("127.0.0.1", viewer.port))
        request = f"GET /{viewer.token}/api/answers?run=r1 HTTP/1.1\r\nHost: localhost\r\n\r\n".encode()
        one.setblocking(False)
        with contextlib.suppress(BlockingIOError):
            for _ in range(20):
                one.send(request)
        slow.append(one)
    half = socket.create_connection(("127.0.0.1", viewer.port))
    half.send(b"GET /")
    try:
        for _ in range(20):
            status, _ = viewer.get("api/runs")
            assert status == 200
        # gone in the middle of an answer
        for one in slow[:25]:
            one.close()
        assert viewer.get("api/answers?run=r1")[0] == 200
    finally:
        for one in [*idle, *slow, half]:
            one.close()
    assert viewer.get("api/runs")[0] == 200
    assert viewer.stop() == 0


def test_what_is_too_large_is_refused(view: Callable[..., Viewer], write_trace: WriteTrace) -> None:
    viewer = view(str(write_trace()))
    for headers, body in (({"X-Long": "x" * 70_000}, None), ({"X-Stepscope": "1"}, "x" * 3_000_000)):
        with contextlib.suppress(ConnectionError):  # it may close before all is sent
            status, _, _ = viewer.ask(f"/{viewer.token}/api/query?run=r1", "POST", body, headers)
            assert status >= 400
    assert viewer.get("api/runs")[0] == 200


def test_a_new_server_has_a_new_secret(view: Callable[..., Viewer], write_trace: WriteTrace) -> None:
    trace = write_trace()
    first = view(str(trace))
    assert first.stop() == 0
    second = view(str(trace), "--port", str(first.port))
    assert second.token != first.token
    status, _, _ = second.ask(f"/{first.token}/api/runs")
    assert status == 403


def test_a_port_that_is_taken_is_told(place: Place, view: Callable[..., Viewer], write_trace: WriteTrace) -> None:
    trace = write_trace()
    viewer = view(str(trace))
    done = place.plain(str(place.stepscope), "view", str(trace), "--no-browser", "--port", str(viewer.port))
    assert done.returncode != 0 and "--port" in done.stderr and not done.stdout


def test_where_report_finds_no_trace_view_serves_none(
    place: Place, view: Callable[..., Viewer], write_trace: WriteTrace
) -> None:
    (place.folder / "empty").mkdir()
    (place.folder / "notes").mkdir()
    (place.folder / "notes/read.me").write_text("no trace")
    for path in ("empty", "notes", "notes/read.me"):
        report = place.plain(str(place.stepscope), "report", str(place.folder / path))
        done = place.plain(str(place.stepscope), "view", str(place.folder / path), "--no-browser")
        assert done.returncode == report.returncode != 0
        assert done.stderr == report.stderr and not done.stdout
    # a job that has written nothing yet, a pattern, and one of two
    (place.folder / "empty/run").mkdir()
    (place.folder / "empty/run/run.json").write_text('{"schema_version": 1}')
    for paths in (["empty"], ["later/*.json"], ["notes", str(write_trace())]):
        assert view(*(str(place.folder / path) for path in paths)).stop() == 0


def test_files_of_several_jobs_are_told_first(
    place: Place, view: Callable[..., Viewer], write_trace: WriteTrace
) -> None:
    day = 86_400_000_000
    unix = 1_700_000_000_000_000
    for rank in range(2):
        write_trace(f"job/traces/rank{rank}/a.pt.trace.json", rank, [op("aten::mm", unix + rank, 50)])
    write_trace("mixed/a.json", None, [op("aten::mm", unix, 50)])
    write_trace("mixed/b.json", None, [op("aten::mm", unix + day, 50)])

    def said(folder: str) -> list[str]:
        done = place.plain(str(place.stepscope), "report", str(place.folder / folder), "--json", "--no-cache")
        return [one["sentence"] for one in json.loads(done.stdout)["issues"] if one["code"] == "unrelated_files"]

    assert said("job") == []
    assert said("mixed") == ["The 2 files do not look like one job: they were not recorded at the same time"]
    write_trace("job/traces/rank1/b.pt.trace.json", 1, [op("aten::mm", unix + day, 50)])
    assert said("job") == [
        "The 3 files do not look like one job: several are of rank 1; they were not recorded at the same time"
    ]
    (place.folder / "job/telemetry").mkdir()
    assert said("job") == []  # one job that was recorded twice
    text = place.plain(str(place.stepscope), "report", str(place.folder / "mixed"), "--no-cache").stdout
    assert "view --each" in "".join(text.splitlines(keepends=True)[:5])


def test_a_path_that_is_not_there_is_told_where_it_was_typed(place: Place) -> None:
    done = place.plain(str(place.stepscope), "view", str(place.folder / "nothing.json"), "--no-browser")
    assert done.returncode == 1 and "nothing.json" in done.stderr and not done.stdout
