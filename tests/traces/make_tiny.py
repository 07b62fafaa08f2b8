"""Writes the tiny traces of this folder: a made-up training in the layout of torch.profiler, with round durations, so
that every figure of a report can be checked by hand. Run it here after a change; the output is deterministic.

    python3 tests/traces/make_tiny.py
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

HERE = Path(__file__).resolve().parent
GEMM = "sm80_xmma_gemm_bf16bf16_bf16f32_f32_tn_n_tilesize128x128x64_stage3_cublas"
ADD = (
    "void at::native::vectorized_elementwise_kernel<4, at::native::CUDAFunctor_add<c10::BFloat16>, "
    "std::array<char*, 3ul> >(int, at::native::CUDAFunctor_add<c10::BFloat16>, std::array<char*, 3ul>)"
)
REDUCE = "ncclDevKernel_AllReduce_Sum_bf16_RING_LL(ncclDevKernelArgsStorage<4096ul>)"
HOST, DEVICE, COMPUTE, NCCL = 4242, 0, 7, 20
STEPS, STEP_US = 3, 1000


class Tiny:
    """Events of one rank. Times are in µs from the start of the recording."""

    def __init__(self, rank: int, world: int, device: bool = True) -> None:
        self.rank, self.world, self.device = rank, world, device
        self.events: list[dict[str, Any]] = []
        self.correlation = 100

    def add(self, cat: str, name: str, start: float, dur: float, pid: int, tid: int, **args: Any) -> None:
        self.events.append(
            {"ph": "X", "cat": cat, "name": name, "pid": pid, "tid": tid, "ts": 5000 + start, "dur": dur, "args": args}
        )

    def op(self, name: str, start: float, dur: float, **args: Any) -> None:
        self.add("cpu_op", name, start, dur, HOST, HOST, **{"External id": len(self.events) + 1, **args})

    def mark(self, name: str, start: float, dur: float) -> None:
        self.add("user_annotation", name, start, dur, HOST, HOST)

    def launch(self, at: float, kernel: str, start: float, dur: float, stream: int = COMPUTE, **args: Any) -> None:
        if not self.device:
            return
        self.correlation += 1
        ids = {"correlation": self.correlation}
        self.add("cuda_runtime", "cudaLaunchKernel", at, 5, HOST, HOST, cbid=211, **ids)
        details = {"grid": [108, 1, 1], "block": [256, 1, 1], "blocks per SM": 1.0, "est. achieved occupancy %": 50}
        self.add("kernel", kernel, start, dur, DEVICE, stream, device=0, stream=stream, **ids, **details, **args)

    def copy(self, at: float, start: float, dur: float, size: int) -> None:
        if not self.device:
            return
        self.correlation += 1
        ids = {"correlation": self.correlation}
        self.add("cuda_runtime", "cudaMemcpyAsync", at, 5, HOST, HOST, cbid=41, **ids)
        name = "Memcpy HtoD (Pinned -> Device)"
        self.add("gpu_memcpy", name, start, dur, DEVICE, COMPUTE, device=0, stream=COMPUTE, bytes=size, **ids)

    def step(self, number: int) -> None:
        """Of 1,000 µs: copy 50, GEMM 300 + 300, add 100, all-reduce 200 of which 100 beside the second GEMM."""
        t = number * STEP_US
        self.mark(f"ProfilerStep#{number + 3}", t, STEP_US)
        self.mark("enumerate(DataLoader)#_SingleProcessDataLoaderIter.__next__", t + 5, 95)
        self.copy(t + 110, t + 120, 50, 1 << 20)
        self.op("aten::linear", t + 130, 60, **{"Input Dims": [[64, 512], [512, 512]]})
        self.op("aten::mm", t + 135, 50, **{"Input Dims": [[64, 512], [512, 512]]})
        self.launch(t + 150, GEMM, t + 170, 300)
        self.op("autograd::engine::evaluate_function: AddmmBackward0", t + 200, 100)
        self.op("aten::mm", t + 210, 50)
        self.launch(t + 220, GEMM, t + 470, 300)
        self.launch(t + 270, REDUCE, t + 670, 200, NCCL)
        self.mark("Optimizer.step#SGD.step", t + 400, 200)
        self.op("aten::_foreach_add_", t + 410, 100)
        self.launch(t + 420, ADD, t + 870, 100)

    def frame(self, name: str, start: float, dur: float) -> None:
        self.add("python_function", name, start, dur, HOST, HOST)

    def memory(self, at: float, size: int, address: int, total: int) -> None:
        args = {"Total Allocated": total, "Bytes": size, "Addr": address, "Device Type": 1, "Device Id": DEVICE,
                "Total Reserved": 1 << 24}  # fmt: skip
        self.events.append(
            {"ph": "i", "cat": "cpu_instant_event", "s": "t", "name": "[memory]", "pid": HOST, "tid": HOST,
             "ts": 5000 + at, "args": args}
        )  # fmt: skip

    def counter(self, at: float, name: str, value: float) -> None:
        self.events.append({"ph": "C", "name": name, "pid": HOST, "ts": 5000 + at, "args": {"value": value}})

    def rich_step(self, number: int) -> None:
        """A step with what profilers record on request: Python frames, memory, a counter. 4 MiB live through it, 8 MiB
        from 200 to 600 µs; 1 MiB is never freed."""
        t = number * STEP_US
        mib = 1 << 20
        kept = number * mib
        self.frame("train.py(40): train_step", t + 1, 990)
        self.frame("train.py(12): forward", t + 105, 90)
        self.memory(t + 120, 4 * mib, 0x1000, kept + 4 * mib)
        self.memory(t + 200, 8 * mib, 0x2000, kept + 12 * mib)
        self.memory(t + 300, mib, 0x10000 * (number + 1), kept + 13 * mib)
        self.memory(t + 600, -8 * mib, 0x2000, kept + 5 * mib)
        self.memory(t + 900, -4 * mib, 0x1000, kept + mib)
        self.frame("optim.py(7): step", t + 400, 200)
        for i in range(4):
            self.counter(t + 250 * i, "GPU power W", 300 + 20 * i)
        self.step(number)

    def compilation(self, t: float, frame: str) -> None:
        self.op("entire_frame_compile", t, 400)
        self.mark(f"entire_frame_compile_data: fn_name=_compile.compile_inner, compile_id={frame}", t + 1, 1)
        self.op("_compile.compile_inner (dynamo_timed)", t + 2, 390)
        self.op("GraphLowering.run (dynamo_timed)", t + 50, 100)
        self.op(f"Torch-Compiled Region: {frame}", t + 400, 200)
        self.launch(t + 410, "triton_poi_fused_add_relu_0", t + 450, 100)

    def serving_round(self, t: float, mark: str, work: float) -> None:
        self.mark(mark, t, 100)
        self.launch(t + 20, GEMM, t + 110, work)

    def write(self, path: Path) -> None:
        head: dict[str, Any] = {"schemaVersion": 1, "displayTimeUnit": "ms", "baseTimeNanoseconds": 1700000000000000000}
        if self.device:
            head["deviceProperties"] = [
                {"id": 0, "name": "Toy GPU", "totalGlobalMem": 1 << 34, "computeMajor": 8, "computeMinor": 0,
                 "numSms": 108, "maxThreadsPerMultiprocessor": 2048, "warpSize": 32}
            ]  # fmt: skip
        if self.world > 1:
            head["distributedInfo"] = {"backend": "nccl", "rank": self.rank, "world_size": self.world}
        names = [{"ph": "M", "name": "process_name", "pid": HOST, "tid": 0, "args": {"name": "python"}}]
        lines = ",\n".join(json.dumps(event) for event in names + self.events)
        start = json.dumps(head)[:-1]
        path.write_text(f'{start}, "traceEvents": [\n{lines}\n]}}\n')


def write_graph(path: Path) -> None:
    """An execution trace of one product and one all-reduce, as ExecutionTraceObserver writes it."""

    def node(number: int, name: str, parent: int, shapes: list[list[int]], **attributes: Any) -> dict[str, Any]:
        attrs = [{"name": "rf_id", "type": "uint64", "value": number}, {"name": "tid", "type": "uint64", "value": 1}]
        attrs += [{"name": key, "type": "string", "value": value} for key, value in attributes.items()]
        inputs = {"values": [], "shapes": shapes, "types": ["Tensor(float)"] * len(shapes)}
        return {"id": number, "name": name, "ctrl_deps": parent, "inputs": inputs, "outputs": inputs, "attrs": attrs}

    nodes = [
        node(2, "[pytorch|profiler|execution_trace|thread]", 1, []),
        node(3, "aten::mm", 2, [[64, 512], [512, 512]]),
        node(4, "record_param_comms", 2, [[64, 512]], collective_name="allreduce", dtype="Float", pg_name="0"),
        node(1, "[pytorch|profiler|execution_trace|process]", 1, []),
    ]
    path.write_text(json.dumps({"schema": "1.1.1-chakra.0.0.4", "pid": HOST, "nodes": nodes}, indent=1) + "\n")


def main() -> None:
    for rank in range(2):
        trace = Tiny(rank, 2)
        for number in range(STEPS):
            trace.step(number)
        path = HERE / "two_ranks" / f"rank{rank}.json"
        path.parent.mkdir(exist_ok=True)
        trace.write(path)
    alone = Tiny(0, 1)
    for number in range(STEPS):
        alone.step(number)
    alone.write(HERE / "tiny_train.json")
    host = Tiny(0, 1, device=False)
    for number in range(STEPS):
        host.step(number)
    host.write(HERE / "tiny_cpu.json")
    rich = Tiny(0, 1)
    for number in range(STEPS):
        rich.rich_step(number)
    rich.compilation(3000, "0/0")
    rich.compilation(4000, "0/1")  # the same function again
    rich.write(HERE / "tiny_rich.json")
    serving = Tiny(0, 1)
    serving.serving_round(0, "execute_context_2(100)_generation_0(0)", 800)
    for number in range(1, 5):
        serving.serving_round(number * STEP_US, "execute_context_0(0)_generation_4(4)", 80)
    serving.write(HERE / "tiny_serving.json")
    write_graph(HERE / "tiny_graph.json")
    whole = (HERE / "tiny_train.json").read_text()
    (HERE / "broken").mkdir(exist_ok=True)
    (HERE / "broken" / "cut.json").write_text(whole[: int(len(whole) * 0.7)])
    (HERE / "broken" / "empty.json").write_text("")
    (HERE / "broken" / "page.json").write_text("<!DOCTYPE html>\n<html><body>404 Not Found</body></html>\n")
    (HERE / "broken" / "lfs.json").write_text(
        "version https://git-lfs.github.com/spec/v1\n"
        "oid sha256:0000000000000000000000000000000000000000000000000000000000000000\nsize 12345\n"
    )
    (HERE / "broken" / "pickle.json").write_bytes(
        b"\x80\x04\x95\x0b\x00\x00\x00\x00\x00\x00\x00}\x94\x8c\x01a\x94K\x01s."
    )


if __name__ == "__main__":
    main()
