"""Runs programs one after the other, each in processes that are forked once torch is imported.

Reads lines of JSON, [name, file, ranks, arguments], and answers each with [name, exit code, output].

Importing torch takes longer than three steps of most programs; nothing has started a thread of it yet.
"""

from __future__ import annotations

import json
import os
import runpy
import socket
import sys
import tempfile
import traceback
from typing import IO


def become(file: str, arguments: list[str], said: IO[str], rank: int, ranks: int, port: int) -> int:
    """In the child: the program, as if Python had been started with it."""
    os.dup2(said.fileno(), 1)
    os.dup2(said.fileno(), 2)
    os.environ.update(RANK=str(rank), WORLD_SIZE=str(ranks), MASTER_ADDR="127.0.0.1", MASTER_PORT=str(port))
    sys.argv = [file, *arguments]
    sys.path.insert(0, os.path.dirname(file))
    try:
        runpy.run_path(file, run_name="__main__")
    except BaseException:
        traceback.print_exc()
        return 1
    finally:
        sys.stdout.flush()
    return 0


def run(file: str, ranks: int, arguments: list[str]) -> tuple[int, str]:
    with socket.socket() as free, tempfile.TemporaryFile("w+") as said:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
        free.close()
        children = []
        for rank in range(ranks):
            pid = os.fork()
            if not pid:
                os._exit(become(file, arguments, said, rank, ranks, port))
            children.append(pid)
        codes = [os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) for pid in children]
        said.seek(0)
        return max(codes, key=abs), said.read()


def main() -> None:
    import torch._dynamo  # noqa: F401  (what the first step of an optimizer imports)

    for line in sys.stdin:
        name, file, ranks, arguments = json.loads(line)
        print(json.dumps([name, *run(file, ranks, arguments)]), flush=True)


if __name__ == "__main__":
    main()
