"""A snapshot of the device's memory, as torch's allocator sees it: memory/HOST_PID.TIME.pickle in the run folder.

Opened by pytorch.org/memory_viz and later by stepscope. The call stacks of allocations are in it where the job itself
records them (torch.cuda.memory._record_memory_history).
"""

from __future__ import annotations

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
    folder = os.path.join(notes.run_folder, "memory")
    path = os.path.join(folder, f"{notes.name}.{time.time_ns()}.pickle")
    try:
        os.makedirs(folder, exist_ok=True)
        snapshot = torch.cuda.memory._snapshot()
        with open(path + ".tmp", "wb") as out:
            pickle.dump(snapshot, out)
        os.replace(path + ".tmp", path)
    except Exception as error:
        return f"not recorded: {type(error).__name__}: {error}"
    return "recorded: " + os.path.relpath(path, notes.run_folder)
