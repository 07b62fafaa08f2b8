"""What a device's allocator says at one moment, and how it adds up to what the device has in use.

used on the device = reserved by torch + the rest (contexts, NCCL, graphs, other processes)
reserved = allocated + cut off inside of segments (fragmentation) + free
allocated = requested + rounded up
Nothing is reset and nothing waits for the device.
"""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

_STATISTICS = {
    "allocated_bytes": "allocated_bytes.all.current",
    "reserved_bytes": "reserved_bytes.all.current",
    "requested_bytes": "requested_bytes.all.current",
    "inactive_split_bytes": "inactive_split_bytes.all.current",
    "peak_allocated_bytes": "allocated_bytes.all.peak",  # since the job itself reset it
    "peak_reserved_bytes": "reserved_bytes.all.peak",
}


def figures(device: Any) -> tuple[dict[str, Any] | None, str]:
    """Of a torch.device; or None and why."""
    import torch

    kind = getattr(device, "type", "cpu")
    if kind == "cpu":
        return None, "n/a: the model is on the CPU, where torch keeps no figures of its allocator"
    module: Any = getattr(torch, kind, None)
    statistics = getattr(module, "memory_stats", None)
    if statistics is None:
        return None, f"n/a: this torch keeps no figures of the allocator of {kind}"
    told = statistics(device)
    found: dict[str, Any] = {name: told.get(key) for name, key in _STATISTICS.items()}
    found["rounding_bytes"] = _less(found["allocated_bytes"], found["requested_bytes"])
    free, total = _of_device(module, device)
    found["device_total_bytes"] = total
    found["device_used_bytes"] = _less(total, free)
    found["non_torch_bytes"] = _less(found["device_used_bytes"], found["reserved_bytes"])
    return found, ""


def _of_device(module: Any, device: Any) -> tuple[int | None, int | None]:
    capturing = getattr(module, "is_current_stream_capturing", None)
    if capturing is not None and capturing():  # asking would end the capture of a graph
        return None, None
    try:
        free, total = module.mem_get_info(device)
    except (AttributeError, RuntimeError):
        return None, None
    return int(free), int(total)


def _less(whole: int | None, part: int | None) -> int | None:
    return None if whole is None or part is None else whole - part
