"""What the programs of the gallery share: their two options, and the clock of their steps."""

from __future__ import annotations

import argparse
import ctypes
import signal
import statistics
import sys
import time

M_TRIM_THRESHOLD, M_MMAP_MAX = -1, -4  # of malloc.h


def keep_memory() -> None:
    """The process keeps what it once had: else glibc gives memory back in each step, and a program that is to have one
    fault has two. Another C library has its own ways."""
    mallopt = getattr(ctypes.CDLL(None), "mallopt", None)
    if mallopt is not None:
        mallopt(M_TRIM_THRESHOLD, 1 << 30)
        mallopt(M_MMAP_MAX, 0)


def options(text: str, steps: int, keeps_memory: bool = True) -> argparse.Namespace:
    if keeps_memory:
        keep_memory()
    parser = argparse.ArgumentParser(description=text.splitlines()[0])
    parser.add_argument("--steps", type=int, default=steps)
    parser.add_argument("--fixed", action="store_true", help="without the fault")
    return parser.parse_args()


class Clock:
    """Wall time of steps. What happens every `period` steps is in the median of that many steps together.

    Steps in which the process was halted (run.py lets two of them take turns) do not count.
    """

    def __init__(self, period: int = 1) -> None:
        self.period = period
        self.resumed: list[float] = []
        signal.signal(signal.SIGCONT, lambda *_: self.resumed.append(time.perf_counter()))
        self.moments = [time.perf_counter()]

    def tick(self) -> None:
        self.moments.append(time.perf_counter())

    def median_ms(self) -> float:
        warm = self.moments[min(5, (len(self.moments) - 1) // 3) :]
        period = min(self.period, len(warm) - 1)
        spans = [(start, end) for start, end in zip(warm, warm[period:])]
        whole = [(start, end) for start, end in spans if not any(start <= at <= end for at in self.resumed)]
        return 1e3 * statistics.median((end - start) / period for start, end in whole or spans)

    def report(self) -> None:
        print(f"step_ms {self.median_ms():.3f}", flush=True)


def need_cuda() -> None:
    from torch import cuda

    if not cuda.is_available():
        sys.exit("This program needs a CUDA device, and torch sees none.")


def leave() -> None:
    """Ends the process group, in peace: a thread of gloo may hold the last tensor a moment longer."""
    from torch import distributed

    distributed.destroy_process_group()
    time.sleep(0.3)
