"""Writes tiny_rocprof.json: the training of make_tiny.py as rocprofv3 (rocprofiler-sdk 1.0, ROCm 7) would have recorded
it with --sys-trace, and small pieces of such recordings for the fuzz target. Run it here after a change; the output is
deterministic.

    python3 tests/traces/make_tiny_rocprof.py
"""

from __future__ import annotations

import json
from collections import defaultdict
from pathlib import Path
from typing import Any

HERE = Path(__file__).resolve().parent
CORPUS = HERE.parent.parent / "fuzz" / "corpus" / "rocprof_json"
GEMM = "Cijk_Ailk_Bljk_BBS_BH_MT128x128x32"
ADD = (
    "void at::native::vectorized_elementwise_kernel<4, at::native::CUDAFunctor_add<c10::BFloat16>, "
    "std::array<char*, 3ul> >(int, at::native::CUDAFunctor_add<c10::BFloat16>, std::array<char*, 3ul>)"
)
REDUCE = "ncclDevKernel_AllReduce_Sum_bf16_RING_LL(ncclDevKernelArgsStorage<4096ul>)"
KERNELS = ["", GEMM, ADD, REDUCE]
HOST, CPU, GPU, COMPUTE, NCCL = 4242, 100, 101, 1, 2
STEPS, STEP_US = 3, 1000
START_NS = 63857982592001  # of the machine's uptime; odd, so that a lost nanosecond shows
KINDS = {
    "NONE": [],
    "HIP_RUNTIME_API": ["hipApiName", "hipLaunchKernel", "hipMemcpyAsync", "hipMalloc", "hipFree"],
    "MARKER_CORE_RANGE_API": ["roctxMarkA", "roctxThreadRangeA", "roctxProcessRangeA"],
    "MEMORY_COPY": ["MEMORY_COPY_NONE", "MEMORY_COPY_HOST_TO_HOST", "MEMORY_COPY_HOST_TO_DEVICE"],
    "KERNEL_DISPATCH": ["KERNEL_DISPATCH_NONE", "KERNEL_DISPATCH_ENQUEUE", "KERNEL_DISPATCH_COMPLETE"],
    "MEMORY_ALLOCATION": [
        "MEMORY_ALLOCATION_NONE",
        "MEMORY_ALLOCATION_ALLOCATE",
        "MEMORY_ALLOCATION_VMEM_ALLOCATE",
        "MEMORY_ALLOCATION_FREE",
    ],
}


class Recording:
    """Records of one process. Times are in µs from the start of the recording."""

    def __init__(self) -> None:
        self.tables: dict[str, list[dict[str, Any]]] = defaultdict(list)
        self.counted: list[dict[str, Any]] = []
        self.messages: list[dict[str, Any]] = []
        self.correlation = 0

    def record(self, kind: str, operation: str, start: float, dur: float, **more: Any) -> dict[str, Any]:
        begin = START_NS + round(start * 1000)
        return {
            "size": 64,
            "kind": list(KINDS).index(kind),
            "operation": KINDS[kind].index(operation),
            "thread_id": HOST,
            "correlation_id": {"internal": self.correlation, "external": 0},
            "start_timestamp": begin,
            "end_timestamp": begin + round(dur * 1000),
            **more,
        }

    def call(self, name: str, at: float, dur: float = 5) -> None:
        self.correlation += 1
        self.tables["hip_api"].append(self.record("HIP_RUNTIME_API", name, at, dur))

    def mark(self, message: str, start: float, dur: float) -> None:
        self.correlation += 1
        self.messages.append({"key": self.correlation, "value": message})
        self.tables["marker_api"].append(self.record("MARKER_CORE_RANGE_API", "roctxThreadRangeA", start, dur))

    def dispatch(self, kernel: str, stream: int) -> dict[str, Any]:
        return {
            "size": 72,
            "agent_id": {"handle": GPU},
            "queue_id": {"handle": stream + 16},
            "kernel_id": KERNELS.index(kernel),
            "dispatch_id": len(self.tables["kernel_dispatch"]) + len(self.counted) + 1,
            "private_segment_size": 0,
            "group_segment_size": 16384,
            "workgroup_size": {"x": 256, "y": 1, "z": 1},
            "grid_size": {"x": 256 * 304, "y": 1, "z": 1},
        }

    def launch(self, at: float, kernel: str, start: float, dur: float, stream: int = COMPUTE) -> None:
        self.call("hipLaunchKernel", at)
        more = {"dispatch_info": self.dispatch(kernel, stream), "stream_id": {"handle": stream}}
        record = self.record("KERNEL_DISPATCH", "KERNEL_DISPATCH_COMPLETE", start, dur, **more)
        self.tables["kernel_dispatch"].append(record)

    def copy(self, at: float, start: float, dur: float, size: int) -> None:
        self.call("hipMemcpyAsync", at)
        ends = {"dst_agent_id": {"handle": GPU}, "src_agent_id": {"handle": CPU}}
        more = {**ends, "bytes": size, "stream_id": {"handle": COMPUTE}}
        record = self.record("MEMORY_COPY", "MEMORY_COPY_HOST_TO_DEVICE", start, dur, **more)
        self.tables["memory_copy"].append(record)

    def memory(self, operation: str, at: float, address: int, size: int) -> None:
        self.call("hipFree" if operation == "FREE" else "hipMalloc", at)
        agent = 0 if operation == "FREE" else GPU
        more = {"agent_id": {"handle": agent}, "address": f"0x{address:016x}", "allocation_size": size}
        record = self.record("MEMORY_ALLOCATION", f"MEMORY_ALLOCATION_{operation}", at + 1, 2, **more)
        self.tables["memory_allocation"].append(record)

    def count(self, kernel: str, start: float, dur: float, values: list[float]) -> None:
        record = self.record("KERNEL_DISPATCH", "KERNEL_DISPATCH_COMPLETE", start, dur)
        data = {key: record[key] for key in ("size", "correlation_id", "start_timestamp", "end_timestamp")}
        data["dispatch_info"] = self.dispatch(kernel, COMPUTE)
        records = [{"counter_id": {"handle": 55}, "value": value} for value in values]
        stream = {"handle": COMPUTE}
        self.counted.append({"thread_id": HOST, "dispatch_data": data, "records": records, "stream_id": stream})

    def step(self, number: int) -> None:
        """Of 1,000 µs: copy 50, GEMM 300 + 300, add 100, all-reduce 200 of which 100 beside the second GEMM."""
        t = number * STEP_US
        self.mark(f"ProfilerStep#{number + 3}", t, STEP_US)
        self.copy(t + 110, t + 120, 50, 1 << 20)
        self.mark("aten::mm, op_id = 7, sizes = [[64, 512], [512, 512]]", t + 135, 50)
        self.launch(t + 150, GEMM, t + 170, 300)
        self.launch(t + 220, GEMM, t + 470, 300)
        self.launch(t + 270, REDUCE, t + 670, 200, NCCL)
        self.mark("Optimizer.step#SGD.step", t + 400, 200)
        self.launch(t + 420, ADD, t + 870, 100)

    def process(self) -> dict[str, Any]:
        gpu = {
            "id": {"handle": GPU},
            "type": 2,
            "cu_count": 304,
            "simd_per_cu": 4,
            "max_waves_per_simd": 8,
            "wave_front_size": 64,
            "gfx_target_version": 90402,
            "name": "gfx942",
            "product_name": "Toy Instinct",
            "logical_node_type_id": 0,
            "mem_banks": [{"size_in_bytes": 1 << 34}],
        }
        return {
            "metadata": {
                "node": {"id": 1, "hostname": "toy"},
                "pid": HOST,
                "init_time": START_NS - 1000,
                "fini_time": START_NS + STEPS * STEP_US * 1000,
                "command": ["python3", "train.py"],
            },
            "agents": [{"id": {"handle": CPU}, "type": 1, "name": "Toy CPU"}, gpu],
            "counters": [{"agent_id": {"handle": GPU}, "id": {"handle": 55}, "name": "SQ_WAVES"}],
            "strings": {
                "buffer_records": [{"kind": kind, "operations": names} for kind, names in KINDS.items()],
                "marker_api": self.messages,
            },
            "kernel_symbols": [
                {"kernel_id": number, "formatted_kernel_name": name, "arch_vgpr_count": 64, "accum_vgpr_count": 32}
                for number, name in enumerate(KERNELS)
            ],
            "callback_records": {"counter_collection": self.counted},
            "buffer_records": self.tables,
        }


def write(path: Path, processes: list[dict[str, Any]]) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps({"rocprofiler-sdk-tool": processes}, separators=(",", ":")) + "\n")


def main() -> None:
    training = Recording()
    training.memory("ALLOCATE", 10, 0x7F0000001000, 1 << 20)
    for number in range(STEPS):
        training.step(number)
    training.memory("FREE", 2990, 0x7F0000001000, 0)
    write(HERE / "tiny_rocprof.json", [training.process()])

    one = Recording()
    one.memory("ALLOCATE", 10, 0x7F0000001000, 1 << 20)
    one.step(0)
    write(CORPUS / "step", [one.process()])
    counted = Recording()
    counted.count(GEMM, 10, 5, [1.5, 2.0, float("nan")])
    write(CORPUS / "counters", [counted.process()])
    names_last = dict(reversed(counted.process().items()))
    write(CORPUS / "two_names_last", [names_last, counted.process()])


if __name__ == "__main__":
    main()
