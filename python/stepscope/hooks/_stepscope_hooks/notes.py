"""What one process says in the run folder: processes/HOST_PID.json (docs/run-folder.md) and lines in hooks.log.

Written whole and renamed, so that a reader never sees half a note. Every failure ends here and stays here.
"""

from __future__ import annotations

import contextlib
import json
import os
import socket
import sys
import time

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator
    from typing import Any

SCHEMA_VERSION = 1
_FIRST_NAMESPACE = "4026531836"  # of processes, outside of all containers: Linux fixes the number


class Notes:
    def __init__(self, run_folder: str) -> None:
        self.run_folder = run_folder
        self.host = host_name()
        self.namespace = _namespace()
        self.fields: dict[str, Any] = {"problems": [], "windows": [], "ended": False}
        self.shown = False  # becomes a file only when there is something to tell
        self.forget_process()

    def forget_process(self) -> None:
        """In a forked child: the note of the parent is not ours."""
        self.pid, self.parent_pid = os.getpid(), os.getppid()
        self.name = self.unused_name()
        self.fields = {"problems": [], "windows": [], "ended": False}
        self.shown = False

    def unused_name(self) -> str:
        """HOST_PID, as the files of this process are named; in a container with the number of its process namespace,
        and with a further number where exec made this process out of one that has a note already."""
        first = name = f"{self.host}{self.namespace}_{self.pid}"
        number = 1
        while os.path.exists(os.path.join(self.run_folder, "processes", name + ".json")):
            number += 1
            name = f"{first}-{number}"
        return name

    @contextlib.contextmanager
    def guard(self, doing: str) -> Iterator[None]:
        try:
            yield
        except Exception as error:
            self.problem(f"{doing} failed: {type(error).__name__}: {error}")

    def problem(self, sentence: str) -> None:
        sentence = " ".join(sentence.split())[:500]
        if sentence in self.fields["problems"] or len(self.fields["problems"]) >= 20:
            return
        self.fields["problems"].append(sentence)
        try:
            with open(os.path.join(self.run_folder, "hooks.log"), "a") as log:
                log.write(f"{time.strftime('%H:%M:%S')} {self.name}: {sentence}\n")
        except OSError:
            pass  # nowhere left to say it
        self.write()

    def answer_request(self, name: str, how: str) -> None:
        """What became of requests/NAME.json in this process."""
        self.fields.setdefault("requests", {})[name] = how
        self.write()

    def write(self, **fields: Any) -> None:
        self.fields.update(fields)
        self.shown = True
        head = {
            "schema_version": SCHEMA_VERSION,
            "host": self.host,
            "pid": self.pid,
            "parent_pid": self.parent_pid,
            "program": sys.argv[0] if getattr(sys, "argv", None) else "",
            "python": sys.version.split()[0],
        }
        try:
            folder = os.path.join(self.run_folder, "processes")
            os.makedirs(folder, exist_ok=True)
            path = os.path.join(folder, self.name + ".json")
            with open(path + ".tmp", "w") as out:
                json.dump(dict(head, **self.fields), out, indent=1)
            os.replace(path + ".tmp", path)
        except (OSError, TypeError, ValueError):
            pass


def _namespace() -> str:
    """Ranks in containers may share the name of their host, and then their process numbers are the same."""
    try:
        number = os.readlink("/proc/self/ns/pid").strip("pid:[]")
    except OSError:
        return ""
    return "" if number == _FIRST_NAMESPACE else f"-{number}"


def host_name() -> str:
    return _file_name_part(socket.gethostname())


def _file_name_part(text: str) -> str:
    return "".join(c if c.isalnum() or c in "-." else "-" for c in text) or "host"
