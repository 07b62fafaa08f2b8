"""A running `stepscope view`, and what its tiles hold."""

from __future__ import annotations

import http.client
import json
import signal
import struct
import subprocess
import time
from pathlib import Path
from typing import Any


class Viewer:
    """A running server; `get` gives status and body of an address below its token."""

    def __init__(self, stepscope: Path, *arguments: str) -> None:
        self.process = subprocess.Popen(
            [str(stepscope), "view", *arguments, "--no-browser", "--no-cache"],
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        assert self.process.stdout is not None
        self.address = self.process.stdout.readline().strip()
        assert self.address.startswith("http://127.0.0.1:"), self.address
        host, self.token, _ = self.address.removeprefix("http://").split("/")
        self.port = int(host.split(":")[1])

    def ask(
        self, path: str, method: str = "GET", body: str | None = None, headers: dict[str, str] | None = None
    ) -> tuple[int, dict[str, str], bytes]:
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=30)
        try:
            connection.request(method, path, body=body, headers=headers or {})
            answer = connection.getresponse()
            return answer.status, {k.lower(): v for k, v in answer.getheaders()}, answer.read()
        finally:
            connection.close()

    def get(self, path: str) -> tuple[int, bytes]:
        status, _, body = self.ask(f"/{self.token}/{path}")
        return status, body

    def json(self, path: str) -> Any:
        """The answer, once the run is open."""
        for _ in range(300):
            status, body = self.get(path)
            if status != 202:
                assert status == 200, body
                return json.loads(body)
            time.sleep(0.05)
        raise AssertionError("the run was never opened")

    def post(self, path: str, text: str) -> tuple[int, Any]:
        status, _, body = self.ask(f"/{self.token}/{path}", "POST", text, {"X-Stepscope": "1"})
        return status, json.loads(body)

    def query(self, sql: str, run: str = "r1") -> tuple[int, Any]:
        return self.post(f"api/query?run={run}", sql)

    def stop(self) -> int:
        self.process.send_signal(signal.SIGINT)
        return self.process.wait(timeout=20)


def read_tile(body: bytes) -> dict[str, Any]:
    magic, lanes, count, trailer = struct.unpack_from("<4I", body)
    assert magic == 0x31545353
    at = 16
    found: dict[str, Any] = {"lanes": [struct.unpack_from("<2I", body, at + 8 * i) for i in range(lanes)]}
    at += 8 * lanes
    columns = [("start", "d"), ("duration", "d"), ("slice", "I"), ("count", "I"), ("name", "I"), ("row", "H")]
    for name, kind in [*columns, ("class", "B"), ("fill", "B")]:
        found[name] = list(struct.unpack_from(f"<{count}{kind}", body, at))
        at += (count * struct.calcsize(kind) + 7) // 8 * 8
    assert at + trailer == len(body)
    found["names"] = json.loads(body[at:])["names"]
    return found
