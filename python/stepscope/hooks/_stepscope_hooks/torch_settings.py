"""What the job has set in torch and what its machine gives it, noted beside each recording.

A trace shows what ran, and not whether half of the cores were left out or autograd was told to look for NaN.
"""

from __future__ import annotations

import json
import os
import time
import warnings

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

    Ask = Callable[[], "bool | int | str | None"]


def noted() -> dict[str, str]:
    """Name of a member of the trace → its JSON; what cannot be asked is left out."""
    import torch

    def bfloat16() -> bool:
        return bool(torch.cpu._is_avx512_bf16_supported() or torch.cpu._is_amx_tile_supported())

    def bfloat16_speed() -> int | None:
        return _bfloat16_speed_permille() if bfloat16() and not torch.cuda.is_initialized() else None

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
_measured = 0  # not yet


def _bfloat16_speed_permille() -> int:
    """As often as fast, in thousandths, one product of middle size is in bfloat16; takes some 15 ms, once a process.

    Libraries differ more than processors do, so the processor's name would not tell.
    """
    global _measured
    if not _measured:
        import torch
        from torch.utils._python_dispatch import _disable_current_modes

        best_s = []
        # Whatever the job has set up must neither see these products nor change them.
        with (
            torch._C.DisableTorchFunction(),
            _disable_current_modes(),
            torch.no_grad(),
            torch.autocast("cpu", enabled=False),
        ):
            for dtype in (torch.float32, torch.bfloat16):
                a = torch.ones(1024, 256, dtype=dtype, device="cpu")
                b = torch.ones(256, 512, dtype=dtype, device="cpu")
                times: list[float] = []
                for _ in range(4):  # the first one chooses and packs
                    start = time.perf_counter()
                    torch.mm(a, b)
                    times.append(time.perf_counter() - start)
                    if times[-1] > LONGEST_S:
                        break
                best_s.append(min(times))
        _measured = round(1000 * best_s[0] / max(best_s[1], 1e-9))
    return _measured


def cores() -> int | None:
    """That the process may use at once: its affinity, and the quota of its cgroup."""
    allowed = len(os.sched_getaffinity(0))
    try:
        with open("/sys/fs/cgroup/cpu.max") as file:
            quota, period = file.read().split()
    except (OSError, ValueError):
        return allowed
    return allowed if quota == "max" else max(1, min(allowed, round(int(quota) / int(period))))
