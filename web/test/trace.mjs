// Makes a small synthetic trace in Kineto's format: data-parallel training of a transformer, some steps on some ranks.
// Everything in it is made up, and the same every time; run as a program it writes one file per rank.
//
//   node test/trace.mjs FOLDER [RANKS]
import { mkdirSync, writeFileSync } from "node:fs";
import { join, resolve } from "node:path";
import { fileURLToPath } from "node:url";

const MAIN = 100; // thread ids
const BACKWARD = 101;
const COMPUTE = 7; // streams
const NCCL = 20;

const BLOCK = [
  // op, kernel, microseconds on the device, grid, blocks per SM, occupancy
  ["aten::native_layer_norm", "void at::native::(anonymous namespace)::vectorized_layer_norm_kernel<c10::BFloat16, float>(int, float, c10::BFloat16 const*)", 21, 4096, 31, 75],
  ["aten::addmm", "ampere_bf16_s16816gemm_bf16_128x256_ldg8_f2f_stages_64x3_tn", 188, 384, 2.9, 19],
  ["aten::_scaled_dot_product_flash_attention", "void pytorch_flash::flash_fwd_kernel<pytorch_flash::Flash_fwd_kernel_traits<64, 128, 128, 4, false, false, cutlass::bfloat16_t> >(pytorch_flash::Flash_fwd_params)", 142, 512, 3.9, 25],
  ["aten::addmm", "ampere_bf16_s16816gemm_bf16_128x128_ldg8_f2f_stages_64x4_tn", 71, 256, 1.9, 19],
  ["aten::add", "void at::native::vectorized_elementwise_kernel<4, at::native::CUDAFunctor_add<c10::BFloat16>, at::detail::Array<char*, 3> >(int, at::native::CUDAFunctor_add<c10::BFloat16>)", 17, 8192, 62, 100],
  ["aten::gelu", "void at::native::vectorized_elementwise_kernel<4, at::native::GeluCUDAKernelImpl(at::TensorIteratorBase&)::{lambda()#2}>(int)", 26, 8192, 62, 100],
  ["aten::addmm", "ampere_bf16_s16816gemm_bf16_128x256_ldg8_f2f_stages_64x3_tn", 251, 512, 3.9, 19],
];

class Rank {
  constructor(rank, ranks, seed) {
    this.rank = rank;
    this.ranks = ranks;
    this.seed = seed;
    this.events = [];
    this.correlation = 1;
    this.sequence = 1;
    this.free = { [COMPUTE]: 0, [NCCL]: 0 };
  }
  random() {
    this.seed = (this.seed * 1103515245 + 12345) % 2147483648;
    return this.seed / 2147483648;
  }
  vary(us) {
    return us * (0.97 + 0.06 * this.random());
  }
  slice(cat, name, tid, ts, dur, args = {}) {
    this.events.push({ ph: "X", cat, name, pid: 4000 + this.rank, tid, ts: +ts.toFixed(3), dur: +dur.toFixed(3), args });
  }
  device(cat, name, stream, launched, us, args) {
    const start = Math.max(launched + 4, this.free[stream]);
    this.free[stream] = start + us;
    const place = { device: this.rank, context: 1, stream, correlation: this.correlation, ...args };
    this.events.push({ ph: "X", cat, name, pid: this.rank, tid: stream, ts: +start.toFixed(3), dur: +us.toFixed(3), args: place });
    return start + us;
  }
  launch(call, tid, at) {
    this.correlation++;
    this.slice("cuda_runtime", call, tid, at, 3.2, { cbid: 211, correlation: this.correlation });
    const flow = { cat: "ac2g", name: "ac2g", id: this.correlation, pid: 4000 + this.rank, tid, ts: +at.toFixed(3) };
    this.events.push({ ph: "s", ...flow });
    return at;
  }
  kernel(op, name, tid, at, us, grid, perSm, occupancy, sequence) {
    const host = this.vary(18);
    this.slice("cpu_op", op, tid, at, host, { "External id": this.correlation, "Sequence number": sequence, "Fwd thread id": tid === BACKWARD ? 1 : 0, "Input Dims": [[8, 1024, 1024], [1024, 1024]], "Input type": ["c10::BFloat16", "c10::BFloat16"] });
    const launched = this.launch("cudaLaunchKernel", tid, at + host * 0.6);
    this.device("kernel", name, COMPUTE, launched, this.vary(us), {
      grid: [grid, 1, 1], block: [256, 1, 1], "registers per thread": 128, "shared memory": 49152, "blocks per SM": perSm, "warps per SM": perSm * 8, "est. achieved occupancy %": occupancy,
    });
    return at + host + 2;
  }
  allReduce(tid, at, elements, us) {
    const meta = { "Collective name": "allreduce", dtype: "BFloat16", "In msg nelems": elements, "Out msg nelems": elements, "Group size": this.ranks, "Process Group Name": "0", "Process Group Description": "default_pg", "Process Group Ranks": `[${[...Array(this.ranks).keys()].join(", ")}]` };
    this.slice("cpu_op", "record_param_comms", tid, at, 30, meta);
    const launched = this.launch("cudaLaunchKernelExC", tid, at + 12);
    this.free[NCCL] = Math.max(this.free[NCCL], this.free[COMPUTE]);
    return this.device("kernel", "ncclDevKernel_AllReduce_Sum_bf16_RING_LL(ncclDevKernelArgsStorage<4096ul>)", NCCL, launched, this.vary(us), { grid: [24, 1, 1], block: [544, 1, 1], "registers per thread": 96, "shared memory": 0, "blocks per SM": 0.18, "warps per SM": 3.1, "est. achieved occupancy %": 5, ...meta });
  }
  step(number, at, layers) {
    const begin = at;
    const loading = number % 4 === 3 ? 2600 : 420;
    this.slice("user_annotation", "enumerate(DataLoader)#_MultiProcessingDataLoaderIter.__next__", MAIN, at, this.vary(loading));
    at += loading + 40;
    this.slice("cpu_op", "aten::copy_", MAIN, at, 40, {});
    this.device("gpu_memcpy", "Memcpy HtoD (Pinned -> Device)", COMPUTE, this.launch("cudaMemcpyAsync", MAIN, at + 10), 65, { bytes: 1048576, "memory bandwidth (GB/s)": 16.1 });
    at += 60;
    const forward = this.sequence;
    for (let layer = 0; layer < layers; layer++) {
      for (const [op, name, us, grid, perSm, occupancy] of BLOCK) at = this.kernel(op, name, MAIN, at, us, grid, perSm, occupancy, this.sequence++);
    }
    at += 60;
    const backwardStart = at;
    let sequence = this.sequence;
    let host = at;
    let reduced = 0;
    for (let layer = 0; layer < layers; layer++) {
      for (const [op, name, us, grid, perSm, occupancy] of [...BLOCK].reverse()) {
        host = this.kernel(`autograd::engine::evaluate_function: ${op.slice(6)}Backward0`, name.replace("_tn", "_nt").replace("fwd", "bwd"), BACKWARD, host, us * 1.9, grid, perSm, occupancy, --sequence);
      }
      if (layer % 3 === 2) reduced = this.allReduce(BACKWARD, host, 25_165_824, 1900 + 160 * this.rank);
    }
    void forward;
    this.slice("user_annotation", "backward", MAIN, backwardStart - 30, host - backwardStart + 40);
    at = host + 60;
    const optimizer = at;
    this.free[COMPUTE] = Math.max(this.free[COMPUTE], reduced);
    for (let i = 0; i < 4; i++) at = this.kernel("aten::_fused_adamw_", "void at::native::(anonymous namespace)::multi_tensor_apply_kernel<at::native::(anonymous namespace)::FusedOptimizerTensorListMetadata<4>, FusedAdamMathFunctor<float, 4> >(int)", MAIN, at, 240, 2560, 19, 50, 0);
    this.slice("user_annotation", "Optimizer.step#AdamW.step", MAIN, optimizer, at - optimizer);
    const sync = at + 10;
    const end = Math.max(at + 20, this.free[COMPUTE] + 12);
    this.slice("cuda_runtime", "cudaDeviceSynchronize", MAIN, sync, end - sync, { cbid: 165, correlation: ++this.correlation });
    this.slice("user_annotation", `ProfilerStep#${number}`, MAIN, begin, end + 30 - begin, {});
    return end + 40;
  }
}

export function syntheticTrace({ rank = 0, ranks = 2, steps = 6, layers = 6 } = {}) {
  const made = new Rank(rank, ranks, 17 + rank);
  let at = 1000;
  for (let i = 0; i < steps; i++) at = made.step(10 + i, at, layers);
  const pid = 4000 + rank;
  const meta = (name, at_pid, tid, args) => ({ ph: "M", name, pid: at_pid, tid, ts: 0, args });
  return {
    schemaVersion: 1,
    deviceProperties: [{ id: rank, name: "Made-up GPU", totalGlobalMem: 85899345920, computeMajor: 8, computeMinor: 0, maxThreadsPerBlock: 1024, maxThreadsPerMultiprocessor: 2048, regsPerBlock: 65536, warpSize: 32, sharedMemPerBlock: 49152, numSms: 132 }],
    distributedInfo: { backend: "nccl", rank, world_size: ranks, pg_count: 1 },
    traceName: `rank${rank}.json`,
    displayTimeUnit: "ms",
    baseTimeNanoseconds: 1760000000000000000,
    traceEvents: [
      ...made.events,
      meta("process_name", pid, 0, { name: "python train.py" }),
      meta("thread_name", pid, MAIN, { name: "main" }),
      meta("thread_name", pid, BACKWARD, { name: "pt_autograd_0" }),
      meta("process_name", rank, 0, { name: "python train.py" }),
      meta("thread_name", rank, COMPUTE, { name: "stream 7" }),
      meta("thread_name", rank, NCCL, { name: "stream 20" }),
    ],
  };
}

if (process.argv[1] && resolve(process.argv[1]) === fileURLToPath(import.meta.url)) {
  const [folder = "made", ranks = "2"] = process.argv.slice(2);
  mkdirSync(folder, { recursive: true });
  for (let rank = 0; rank < Number(ranks); rank++) {
    writeFileSync(join(folder, `rank${rank}.json`), JSON.stringify(syntheticTrace({ rank, ranks: Number(ranks) })));
  }
}
