"""What the job has set in torch and what its machine gives it, noted beside each recording.

A trace shows what ran, and not whether half of the cores were left out or autograd was told to look for NaN.
"""

from __future__ import annotations

import _thread
import contextlib
import json
import mmap
import os
import time
import warnings

from . import page_faults

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    import torch

    Ask = Callable[[], "bool | int | str | None"]
    Work = Callable[[torch.Tensor], object]


def noted() -> dict[str, str]:
    """Name of a member of the trace → its JSON; what cannot be asked is left out."""
    import torch

    def bfloat16() -> bool:
        return bool(torch.cpu._is_avx512_bf16_supported() or torch.cpu._is_amx_tile_supported())

    def bfloat16_speed() -> int | None:
        return _bfloat16_speed_permille() if bfloat16() and not torch.cuda.is_initialized() else None

    def cores_speed() -> int | None:
        # Other ranks here would measure at the same time.
        ranks = int(os.environ.get("LOCAL_WORLD_SIZE", "1"))
        importing = getattr(getattr(torch, "__spec__", None), "_initializing", False)
        alone = torch.get_num_threads() == 1 and ranks == 1 and not torch.cuda.is_initialized() and not importing
        count = cores() or 1
        return _cores_speed_permille(count) if alone and count > 1 else None

    def crowd_call() -> int | None:
        ranks = int(os.environ.get("LOCAL_WORLD_SIZE", "1"))  # which would measure one another
        crowd = ranks == 1 and torch.get_num_threads() > max(2, cores() or 1)
        return _crowd_call_ns() if crowd and not torch.cuda.is_initialized() else None

    def page_ns() -> int | None:
        ranks = int(os.environ.get("LOCAL_WORLD_SIZE", "1"))  # which would wait for one another's pages
        return _page_ns() if ranks == 1 and not torch.cuda.is_initialized() else None

    # Each by itself: another version of torch may lack any of them.
    asked: dict[str, Ask] = {
        "torch_threads": lambda: torch.get_num_threads(),
        "cores": cores,
        "local_ranks": lambda: int(os.environ["LOCAL_WORLD_SIZE"]),
        "anomaly_mode": lambda: torch.is_anomaly_enabled(),
        "deterministic": lambda: torch.are_deterministic_algorithms_enabled(),
        "float32_matmul": lambda: torch.get_float32_matmul_precision(),
        "cpu_bfloat16": bfloat16,
        "bfloat16_speed_permille": bfloat16_speed,
        "cores_speed_permille": cores_speed,
        "crowd_call_ns": crowd_call,
        "page_ns": page_ns,
        "page_bytes": lambda: mmap.PAGESIZE,
        "cuda_sync_debug": lambda: torch.cuda.get_sync_debug_mode() if torch.cuda.is_initialized() else None,
        "cudnn_benchmark": lambda: torch.backends.cudnn.benchmark if torch.cuda.is_initialized() else None,
    }
    notes: dict[str, str] = {}
    for name, ask in asked.items():
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")  # that a setting has a newer name is no news of the job
                value = ask()
        except Exception:  # another version of torch, another machine: it is only not noted
            continue
        if value is not None:
            notes["stepscope_" + name] = json.dumps(value)
    return notes


LONGEST_S = 0.05  # of a product: slower ones are not tried again
MOST_THREADS = 8  # side by side; more cores are taken for as good as these
PATIENCE_S = 0.5  # with threads that take 10 ms: a job must not wait for what is only nice to know
ROUNDS = 3  # the machine may be busy with something else in one of them
CALLS = 16  # in a turn
FEW, PART = 8192, 32768  # numbers that torch leaves to one thread; that each of several has at least
PAGED = 1 << 20  # bytes
TURNS = 4  # the first one chooses and packs
_measured: dict[str, int] = {}  # once a process
_single_s: list[float] = []  # a product in float32


def _bfloat16_speed_permille() -> int:
    """As often as fast, in thousandths, one product of middle size is in bfloat16; takes some 15 ms, once a process.

    Libraries differ more than processors do, so the processor's name would not tell.
    """
    import torch

    if "bfloat16" not in _measured:
        _measured["bfloat16"] = round(1000 * _alone_s() / max(_product_s(torch.bfloat16), 1e-9))
    return _measured["bfloat16"]


def _cores_speed_permille(count: int) -> int | None:
    """As often as fast, in thousandths, `count` cores work side by side as one of them does alone.

    A virtual machine's cores are often halves of cores. For a job whose torch has one thread; takes some 30 ms, once a
    process. None: the threads were not done in time.
    """
    import torch

    if "cores" in _measured:
        return _measured["cores"]
    # Not a product: on a thread of its own the library behind these may take all cores, whatever torch was told. So few
    # numbers torch leaves to one thread.
    work, numbers = torch.lgamma, torch.linspace(1.0, 9.0, FEW, dtype=torch.float32, device="cpu")
    ratios: list[float] = []
    for _ in range(ROUNDS):
        with _apart_from_the_job():
            alone_s = _usual_s(work, numbers)
        together_s = _side_by_side_s(work, numbers, min(count, MOST_THREADS))
        if together_s is None:
            return None
        ratios.append(alone_s / max(together_s, 1e-9))
    _measured["cores"] = round(1000 * count * sorted(ratios)[ROUNDS // 2])
    return _measured["cores"]


def _crowd_call_ns() -> int:
    """What an operator of all threads of torch takes longer than two cores would with the same numbers.

    For a job whose torch has more threads than cores: they wait for one another at the end of each piece of work. Takes
    some 15 ms, once a process.
    """
    import torch

    if "crowd" not in _measured:
        with _apart_from_the_job():
            few, many = (torch.linspace(1.0, 9.0, n, dtype=torch.float32, device="cpu") for n in (FEW, 2 * PART))
            few_s = _usual_s(torch.sigmoid, few) / CALLS
            start = time.perf_counter()
            torch.sigmoid(many)
            many_s = time.perf_counter() - start
            if many_s < LONGEST_S / CALLS:  # else threads that wait actively, of which a turn would take seconds
                many_s = _usual_s(torch.sigmoid, many) / CALLS
        _measured["crowd"] = max(0, round(1e9 * (many_s - few_s * PART / FEW)))
    return _measured["crowd"]


def _page_ns() -> int | None:
    """What waiting for a page of new memory takes longer than writing into it does; some 2 ms, once a process.

    On a virtual machine it is several times what it is elsewhere. None: the system gives more than a page at a time, or
    nobody counts.
    """
    if "page" not in _measured:
        took: list[float] = []
        written = b"\1" * PAGED
        for _ in range(ROUNDS):
            with mmap.mmap(-1, PAGED, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS) as memory:
                before = page_faults.faults_here() or 0
                start = time.perf_counter()
                memory[:] = written
                anew_s, count = time.perf_counter() - start, (page_faults.faults_here() or 0) - before
                start = time.perf_counter()
                memory[:] = written
                if count >= PAGED // mmap.PAGESIZE // 2:
                    took.append((anew_s - (time.perf_counter() - start)) / count)
        _measured["page"] = max(0, round(1e9 * sorted(took)[len(took) // 2])) if took else 0
    return _measured["page"] or None


def _side_by_side_s(work: Work, numbers: torch.Tensor, count: int) -> float | None:
    """Time of the work on each of so many threads at once, the slowest; None: they were not done in time."""
    times: list[float] = []

    # Nothing in here may import: whoever called us may hold the lock of an import, and waits for these threads.
    def one(done: _thread.LockType) -> None:
        try:
            times.append(_usual_s(work, numbers))
        except Exception:  # nobody is to read of it
            pass
        finally:
            done.release()

    locks = []
    for _ in range(count):
        lock = _thread.allocate_lock()
        lock.acquire()
        locks.append(lock)
        _thread.start_new_thread(one, (lock,))
    if not all(lock.acquire(timeout=PATIENCE_S) for lock in locks) or len(times) < count:
        return None
    return max(times)


def _usual_s(work: Work, numbers: torch.Tensor, calls: int = CALLS) -> float:
    """The median of a few turns: the best one may have had a moment of its own."""
    times: list[float] = []
    for _ in range(TURNS):
        start = time.perf_counter()
        for _ in range(calls):
            work(numbers)
        times.append(time.perf_counter() - start)
        if times[-1] > LONGEST_S:
            break
    usual = sorted(times[1:] or times)
    return usual[len(usual) // 2]


def _alone_s() -> float:
    import torch

    if not _single_s:
        _single_s.append(_product_s(torch.float32))
    return _single_s[0]


def _factors(dtype: torch.dtype) -> tuple[torch.Tensor, torch.Tensor]:
    import torch

    return torch.ones(512, 256, dtype=dtype, device="cpu"), torch.ones(256, 512, dtype=dtype, device="cpu")


@contextlib.contextmanager
def _apart_from_the_job() -> Iterator[None]:
    """Whatever the job has set up must neither see what is measured nor change it."""
    import torch
    from torch.utils._python_dispatch import _disable_current_modes

    with (
        torch._C.DisableTorchFunction(),
        _disable_current_modes(),
        torch.no_grad(),
        torch.autocast("cpu", enabled=False),
    ):
        yield


def _product_s(dtype: torch.dtype) -> float:
    """Time of one product on this thread."""
    import torch

    with _apart_from_the_job():
        a, b = _factors(dtype)
        return _usual_s(lambda of: torch.mm(of, b), a, calls=1)


def cores() -> int | None:
    """That the process may use at once: its affinity, and the quota of its cgroup."""
    allowed = len(os.sched_getaffinity(0))
    try:
        with open("/sys/fs/cgroup/cpu.max") as file:
            quota, period = file.read().split()
    except (OSError, ValueError):
        return allowed
    return allowed if quota == "max" else max(1, min(allowed, round(int(quota) / int(period))))
