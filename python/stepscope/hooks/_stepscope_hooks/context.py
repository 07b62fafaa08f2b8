"""What explains a job's speed beside its trace: settings of torch, data loading, optimizer, DDP, cores and limits.

Each value is asked for by its own name; what this torch does not have is left out of the note.
"""

from __future__ import annotations

import contextlib
import functools
import math
import os
import sys

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable
    from typing import Any


def torch_settings() -> dict[str, Any]:
    import torch

    def matmul() -> Any:
        return torch.backends.cuda.matmul

    return _known(
        {
            "anomaly_detection": torch.is_anomaly_enabled,
            "deterministic_algorithms": torch.are_deterministic_algorithms_enabled,
            "cudnn_benchmark": lambda: torch.backends.cudnn.benchmark,
            "cudnn_deterministic": lambda: torch.backends.cudnn.deterministic,
            "tf32_matmul": lambda: matmul().allow_tf32,
            "tf32_cudnn": lambda: torch.backends.cudnn.allow_tf32,
            "float32_matmul_precision": torch.get_float32_matmul_precision,
            "fp16_reduced_precision_reduction": lambda: matmul().allow_fp16_reduced_precision_reduction,
            "bf16_reduced_precision_reduction": lambda: matmul().allow_bf16_reduced_precision_reduction,
            "default_dtype": lambda: str(torch.get_default_dtype()),
            "threads": torch.get_num_threads,
            "interop_threads": torch.get_num_interop_threads,
            "allocator": lambda: os.environ.get("PYTORCH_CUDA_ALLOC_CONF") or os.environ.get("PYTORCH_ALLOC_CONF"),
            "compiler_disabled": lambda: bool(os.environ.get("TORCH_COMPILE_DISABLE")),
            "compiled": lambda: _compiled_frames() > 0,
        }
    )


def _compiled_frames() -> int:
    counters = getattr(sys.modules.get("torch._dynamo.utils"), "counters", {})
    return int(counters.get("frames", {}).get("ok", 0))


def data_loading(iterator: Any) -> dict[str, Any]:
    """Of an iterator of torch.utils.data.DataLoader."""
    return _known(
        {
            "workers": lambda: iterator._num_workers,
            "batch_size": lambda: iterator._index_sampler.batch_size,
            "pin_memory": lambda: bool(iterator._pin_memory),
            "persistent_workers": lambda: iterator._persistent_workers,
            "prefetch_factor": lambda: iterator._prefetch_factor,
            "start_method": lambda: iterator._multiprocessing_context and str(iterator._multiprocessing_context),
            "dataset": lambda: type(iterator._dataset).__name__,
        }
    )


def batch_is_ready(iterator: Any) -> bool | None:
    """Whether workers have made the next batch already; None: there are none, or it cannot be told."""
    tasks = getattr(iterator, "_task_info", None)
    if tasks is None:
        return None
    task = tasks.get(iterator._rcvd_idx)
    return (task is not None and len(task) == 2) or not iterator._data_queue.empty()


def optimizer(one: Any) -> dict[str, Any]:
    group = one.param_groups[0] if one.param_groups else {}
    found = {name: group[name] for name in ("foreach", "fused", "capturable", "differentiable") if name in group}
    tensors = sum(len(each["params"]) for each in one.param_groups)
    return {"class": type(one).__qualname__, "groups": len(one.param_groups), "tensors": tensors, **found}


def models(modules: Iterable[Any]) -> list[dict[str, Any]]:
    return [_model(module) for module in modules]


def _model(module: Any) -> dict[str, Any]:
    out = {
        "class": type(module).__qualname__,
        "parameters": sum(parameter.numel() for parameter in module.parameters()),
        "training": bool(module.training),
    }
    if type(module).__name__ == "DistributedDataParallel":
        names = ("bucket_bytes_cap", "gradient_as_bucket_view", "find_unused_parameters", "static_graph")
        out["ddp"] = _known({name: functools.partial(getattr, module, name) for name in names})
    return out


def machine() -> dict[str, Any]:
    return _known(
        {
            "cores": lambda: sorted(os.sched_getaffinity(0)),
            "cpu_limit": lambda: first_line("/sys/fs/cgroup/cpu.max"),
            "memory_limit": lambda: first_line("/sys/fs/cgroup/memory.max"),
            "nice": lambda: os.nice(0),
        }
    )


def available_bytes() -> float:
    """Of memory that the machine has, or the process's container, if less; infinite: neither says so."""
    machine = container = math.inf
    with contextlib.suppress(OSError, ValueError, IndexError, StopIteration), open("/proc/meminfo") as told:
        machine = next(1024.0 * int(line.split()[1]) for line in told if line.startswith("MemAvailable:"))
    with contextlib.suppress(OSError, ValueError):  # "max": there is no limit
        group = "/sys/fs/cgroup/memory."
        container = float(first_line(group + "max")) - float(first_line(group + "current"))
    return min(machine, container)


def first_line(path: str) -> str:
    with open(path) as text:
        return text.readline().strip()


def _known(sources: dict[str, Callable[[], Any]]) -> dict[str, Any]:
    found = {}
    for name, source in sources.items():
        try:
            value = source()
        except Exception:
            continue  # of another version of torch, or not on this system
        if value is None or isinstance(value, (bool, int, float, str, list)):
            found[name] = value
    return found
