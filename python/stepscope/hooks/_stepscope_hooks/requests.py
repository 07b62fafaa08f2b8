"""Recordings that are asked for while the job runs: files RUN/requests/NAME.json (docs/run-folder.md).

NAME.withdrawn takes one back. Looked for at step boundaries, and by the timer's thread in jobs without steps, at most
once a second. All ranks are to record the same steps: the first that sees a request writes NAME.start with a step far
enough ahead for the others to read it, and everybody keeps to that. Processes that were attached to count their steps
from different moments: for these NAME.start holds a time, in the middle of a step, and the number that the step after
it gets. A request in seconds says itself when it begins.
"""

from __future__ import annotations

import json
import os
import threading
import time

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

EVERY_NS = 1_000_000_000
AHEAD_S = 3.0  # between the choice of the first step and that step: the others look once a second


class Request:
    def __init__(self, name: str, fields: dict[str, Any]) -> None:
        self.name = name
        self.what = str(fields.get("what", "trace"))  # or "memory": a snapshot of the device's allocator
        self.steps = max(1, min(int(fields.get("steps", 3)), 10_000))
        self.seconds = float(fields.get("seconds", 0.0))  # > 0: that long, instead of steps
        self.ranks = str(fields.get("ranks", "all"))
        self.by_time = fields.get("align") == "time"
        self.detach = bool(fields.get("detach"))  # afterwards the hooks leave the process
        self.start: int | None = None  # the first step
        # by_time: the first step is the first to begin after this; with seconds: the moment itself
        self.start_unix_ns = int(fields.get("start_unix_ns", 0))


class Requests:
    def __init__(self, run_folder: str) -> None:
        self.folder = os.path.join(run_folder, "requests")
        self.looking = threading.Lock()
        self.look_at_ns = 0
        self.known: set[str] = set()
        self.waiting: list[Request] = []  # in steps: seen, their first step not yet here
        self.timed: list[Request] = []  # in seconds, or at once: for the timer
        self.withdrawn: list[str] = []  # names of requests that nobody wants any more, not yet acted upon

    def may_have_come(self, now_ns: int) -> bool:
        """Whether it is time to poll: most steps have nothing to ask for. `now_ns`: of the monotonic clock."""
        return now_ns >= self.look_at_ns or bool(self.waiting or self.withdrawn)

    def poll(self, boundary: int, step_s: float) -> list[Request]:
        """Requests whose first step is known and at hand. Raises OSError or ValueError for one that cannot be read.

        `boundary`: steps done; `step_s`: how long the last one took. Request.start may ask for another number of the
        step that begins now.
        """
        if self.waiting:
            due = [one for one in self.waiting if one.by_time and 0 < one.start_unix_ns <= time.time_ns()]
            if due:
                return self._taken(due)
        self.look()
        for request in self.waiting:
            if request.start is None:
                self._agree(request, boundary, step_s)
        return self._taken([request for request in self.waiting if not request.by_time])

    def _taken(self, requests: list[Request]) -> list[Request]:
        for one in requests:  # the timer's thread may put one behind them meanwhile
            self.waiting.remove(one)
        return requests

    def poll_timed(self) -> Request | None:
        """The next request that the clock starts, or none."""
        self.look()
        return self.timed.pop(0) if self.timed else None

    def look(self) -> None:
        """Reads what came, unless somebody looked within the last second."""
        now = time.monotonic_ns()
        if now < self.look_at_ns or not self.looking.acquire(blocking=False):
            return
        try:
            self.look_at_ns = now + EVERY_NS
            self._look()
        finally:
            self.looking.release()

    def _look(self) -> None:
        try:
            names = os.listdir(self.folder)
        except OSError:
            return
        for name in sorted(names):
            if name.endswith(".withdrawn") and name not in self.known:
                self.known.add(name)
                self.withdrawn.append(name[: -len(".withdrawn")])
            if name.endswith(".json") and name not in self.known:
                self.known.add(name)
                with open(os.path.join(self.folder, name)) as text:
                    fields = json.load(text)
                request = Request(name[: -len(".json")], fields if isinstance(fields, dict) else {})
                by_clock = request.seconds > 0 or request.what != "trace"
                (self.timed if by_clock else self.waiting).append(request)

    def _agree(self, request: Request, boundary: int, step_s: float) -> None:
        """Takes the start that the first rank chose; this rank's choice where it is the first."""
        path = os.path.join(self.folder, request.name + ".start")
        ahead = 2 + int(AHEAD_S / max(step_s, 1e-4))
        middle = time.time_ns() + int((ahead - 0.5) * step_s * 1e9)
        mine = f"{path}.{os.getpid()}.tmp"
        try:
            with open(mine, "w") as out:
                json.dump({"start_step": boundary + ahead, "start_unix_ns": middle}, out)
            try:
                os.link(mine, path)  # fails where another was first; never shows half a file
            finally:
                os.unlink(mine)
        except FileExistsError:
            pass
        with open(path) as text:
            chosen = json.load(text)
        request.start, request.start_unix_ns = int(chosen["start_step"]), int(chosen["start_unix_ns"])
