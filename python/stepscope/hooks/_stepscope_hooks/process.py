"""Which process is this: a rank, a launcher, a DataLoader worker, a compile worker; and which rank of how many."""

from __future__ import annotations

import os
import sys

TYPE_CHECKING = False
if TYPE_CHECKING:
    Identity = tuple[int, int, str]  # rank, world size, where that is known from

LAUNCHERS = (
    "torchrun",
    "torch.distributed.run",
    "torch.distributed.launch",
    "accelerate",
    "accelerate-launch",
    "accelerate.commands.accelerate_cli",
    "accelerate.commands.launch",
    "deepspeed",
    "ds",
    "deepspeed.launcher.runner",
    "deepspeed.launcher.launch",
)


def command_line() -> list[str]:
    told = getattr(sys, "orig_argv", None)  # Python 3.10
    if told:
        return list(told)
    try:
        with open("/proc/self/cmdline", "rb") as file:
            return [os.fsdecode(part) for part in file.read().split(b"\0")[:-1]]
    except OSError:
        return list(getattr(sys, "argv", None) or [])


def resident_bytes() -> int:
    """Of this process, in memory; 0: the kernel does not say."""
    try:
        with open("/proc/self/statm", "rb") as file:
            return int(file.read().split()[1]) * os.sysconf("SC_PAGE_SIZE")
    except (OSError, ValueError, IndexError):
        return 0


def is_compile_worker() -> bool:
    return any("_inductor" in part and "compile_worker" in part for part in command_line()[:4])


def is_spawned() -> bool:
    """A child of multiprocessing's spawn or forkserver: a rank, a DataLoader worker or anything else."""
    return any(part == "--multiprocessing-fork" or part.startswith("from multiprocessing.") for part in command_line())


def is_child() -> bool:
    multiprocessing = sys.modules.get("multiprocessing.process")
    return multiprocessing is not None and multiprocessing.parent_process() is not None


def is_launcher() -> bool:
    if "RANK" in os.environ:
        return False
    arguments = command_line()[1:]
    for i, part in enumerate(arguments):
        if part == "-m":
            return i + 1 < len(arguments) and arguments[i + 1] in LAUNCHERS
        if not part.startswith("-"):
            return os.path.basename(part) in LAUNCHERS
    return False


def is_data_worker() -> bool:
    data = sys.modules.get("torch.utils.data")
    return data is not None and data.get_worker_info() is not None


def is_helper() -> bool:
    """A child of multiprocessing that belongs to no process group: a helper of the job, not a rank."""
    return is_spawned() and rank()[2] == "single process"


def rank(before: Identity | None = None) -> Identity:
    """(rank, world size, where that is known from). `before`: an earlier answer, for when the group is gone again."""
    dist = sys.modules.get("torch.distributed")
    if dist is not None and dist.is_available() and dist.is_initialized():
        return dist.get_rank(), dist.get_world_size(), "torch.distributed"
    if before is not None:
        return before if before[2] == "torch.distributed" else rank()
    for rank_name, world_name in (
        ("RANK", "WORLD_SIZE"),
        ("SLURM_PROCID", "SLURM_NTASKS"),
        ("OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE"),
        ("PMI_RANK", "PMI_SIZE"),
    ):
        try:
            return int(os.environ[rank_name]), int(os.environ[world_name]), "environment"
        except (KeyError, ValueError):
            continue
    return 0, 1, "single process"
