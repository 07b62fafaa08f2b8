"""A snapshot of the device's memory, as torch's allocator sees it: memory/HOST_PID.TIME.pickle in the run folder.

Opened by pytorch.org/memory_viz and later by stepscope. The call stacks of allocations are in it where the job itself
or `stepscope run --memory-history` records them (memory_history.py).
"""

from __future__ import annotations

import contextlib
import os
import pickle
import time

TYPE_CHECKING = False
if TYPE_CHECKING:
    from .notes import Notes


def write(notes: Notes) -> str:
    """What became of it, for the note."""
    import torch

    if not torch.cuda.is_initialized():
        return "not recorded: the process uses no GPU, whose memory a snapshot shows"
    path = os.path.join(notes.run_folder, "memory", f"{notes.name}.{time.time_ns()}.pickle")
    try:
        dump(path)
    except Exception as error:
        return f"not recorded: {type(error).__name__}: {error}"
    return "recorded: " + os.path.relpath(path, notes.run_folder)


def dump(path: str) -> None:
    """Whole or not at all. Protocol 4: the viewer of pytorch.org refuses 5, which Python 3.14 writes by itself."""
    import torch

    snapshot = torch.cuda.memory._snapshot()
    os.makedirs(os.path.dirname(path), exist_ok=True)
    try:
        with open(path + ".tmp", "wb") as out:
            pickle.dump(snapshot, out, protocol=4)
        os.replace(path + ".tmp", path)
    except BaseException:
        with contextlib.suppress(OSError):
            os.remove(path + ".tmp")
        raise
