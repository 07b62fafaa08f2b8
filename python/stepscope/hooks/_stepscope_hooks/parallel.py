"""The place of this rank in data, tensor, pipeline … parallelism, where the job's own libraries tell it.

Asked in this order, each for what the ones before it did not know: Megatron-LM, InternEvo, DeepSpeed, device meshes of
torch, environment. What nobody tells stays unknown: a folder is then called rank3 and not rank3_dp3_tp0_pp0.
"""

from __future__ import annotations

import os
import sys

from .roots import instances

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

    Places = dict[str, tuple[int, int]]  # dimension → (place of this rank, number of places)

IN_NAMES = ("dp", "tp", "pp")  # the dimensions of a folder's name, in this order

_MESH_NAMES = {
    "dp": ("dp", "data", "data_parallel", "ddp", "fsdp", "dp_cp"),
    "tp": ("tp", "tensor", "tensor_parallel", "model", "mp"),
    "pp": ("pp", "pipe", "pipeline", "pipeline_parallel"),
    "cp": ("cp", "context", "context_parallel", "sp"),
    "ep": ("ep", "expert", "expert_parallel"),
}
_REPLICATED, _SHARDED = ("dp_replicate", "replicate"), ("dp_shard", "shard", "dp_shard_cp")

_found: Places = {}  # of this process: groups may be gone when the last part is written


def places() -> Places:
    """All that is known by now; what was known once stays."""
    for source in (_megatron, _internevo, _deepspeed, _meshes, _environment):
        try:
            told = source()
        except Exception:
            continue  # another version of that library, or its groups are not made yet
        for dimension, place in told.items():
            _found.setdefault(dimension, place)
    return dict(_found)


def folder_name(rank: int) -> str:
    """rank3_dp1_tp1_pp0, of the dimensions that are known."""
    known = places()
    return f"rank{rank}" + "".join(f"_{name}{known[name][0]}" for name in IN_NAMES if name in known)


def assume(dimensions: Places) -> None:
    """What holds where nobody tells otherwise by now."""
    places()
    for dimension, place in dimensions.items():
        _found.setdefault(dimension, place)


def forget() -> None:
    """In a forked child, which may get a place of its own."""
    _found.clear()


def _pairs(asked: dict[str, tuple[Callable[[], int], Callable[[], int]]]) -> Places:
    return {name: (int(place()), int(size())) for name, (place, size) in asked.items()}


def _megatron() -> Places:
    state: Any = sys.modules.get("megatron.core.parallel_state")
    if state is None or not state.model_parallel_is_initialized():
        return {}
    names = {"dp": "data", "tp": "tensor_model", "pp": "pipeline_model", "cp": "context"}
    known = {key: name for key, name in names.items() if hasattr(state, f"get_{name}_parallel_rank")}
    return _pairs(
        {
            key: (
                getattr(state, f"get_{name}_parallel_rank"),
                getattr(state, f"get_{name}_parallel_world_size"),
            )
            for key, name in known.items()
        }
    )


def _internevo() -> Places:
    module: Any = sys.modules.get("internlm.core.context")
    if module is None:
        return {}
    context, modes = module.global_context, module.ParallelMode
    out: Places = {}
    for key, name in (("dp", "DATA"), ("tp", "TENSOR"), ("pp", "PIPELINE")):
        mode = getattr(modes, name, None)
        if mode is not None and context.is_initialized(mode):
            out[key] = (int(context.get_local_rank(mode)), int(context.get_world_size(mode)))
    return out


def _deepspeed() -> Places:
    groups: Any = sys.modules.get("deepspeed.utils.groups")
    if groups is None or not sys.modules["torch.distributed"].is_initialized():
        return {}
    mpu = getattr(groups, "mpu", None)
    if mpu is None:
        return _pairs({"dp": (groups._get_data_parallel_rank, groups._get_data_parallel_world_size)})
    out = _pairs({"dp": (mpu.get_data_parallel_rank, mpu.get_data_parallel_world_size)})
    if hasattr(mpu, "get_model_parallel_rank"):
        out.update(_pairs({"tp": (mpu.get_model_parallel_rank, mpu.get_model_parallel_world_size)}))
    if hasattr(mpu, "get_pipe_parallel_rank"):
        out.update(_pairs({"pp": (mpu.get_pipe_parallel_rank, mpu.get_pipe_parallel_world_size)}))
    return out


def _meshes() -> Places:
    """Dimensions of torch's device meshes by their names; replicas of shards are one data dimension."""
    module: Any = sys.modules.get("torch.distributed.device_mesh")
    dist: Any = sys.modules.get("torch.distributed")
    if module is None or dist is None or not dist.is_available() or not dist.is_initialized():
        return {}
    named: Places = {}
    for mesh in instances(module.DeviceMesh):
        if mesh.get_coordinate() is None:  # a mesh of other ranks
            continue
        for index, name in enumerate(mesh.mesh_dim_names or ()):
            named[name] = (int(mesh.get_coordinate()[index]), int(mesh.size(index)))
    out: Places = {}
    for dimension, names in _MESH_NAMES.items():
        for name in names:
            if name in named:
                out.setdefault(dimension, named[name])
    replica = next((named[name] for name in _REPLICATED if name in named), None)
    shard = next((named[name] for name in _SHARDED if name in named), None)
    if "dp" not in out and (replica or shard):
        (outer, outers), (inner, inners) = replica or (0, 1), shard or (0, 1)
        out["dp"] = (outer * inners + inner, outers * inners)
    return out


def _environment() -> Places:
    """DP_RANK, TP_RANK, PP_RANK and the like, as launch scripts of inference servers set them; with the size or not."""
    out: Places = {}
    for dimension, long in (("dp", "DATA_PARALLEL"), ("tp", "TENSOR_PARALLEL"), ("pp", "PIPELINE_PARALLEL")):
        for prefix in (dimension.upper(), long, "VLLM_" + dimension.upper()):
            rank = os.environ.get(prefix + "_RANK", "")
            size = os.environ.get(prefix + "_SIZE", os.environ.get(prefix + "_WORLD_SIZE", ""))
            if rank.isdigit():
                out[dimension] = (int(rank), int(size) if size.isdigit() else 0)
                break
    return out
