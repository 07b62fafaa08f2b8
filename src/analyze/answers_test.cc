// The eight answers on traces built by hand, where every figure can be worked out on paper.
#include <doctest/doctest.h>

#include <algorithm>

#include "analyze/answer_fixture.h"

namespace stepscope {
namespace {

using namespace answer_fixture;

const std::string kAllReduce = "ncclDevKernel_AllReduce_Sum_f32_RING_LL(ncclDevKernelArgsStorage<4096ul>)";
const std::string kGemm = "ampere_sgemm_128x64_tn";

TEST_CASE("communication: hidden behind compute, exposed without it, copies hide nothing") {
  TraceFixture f;
  const TrackId compute = f.stream("7"), side = f.stream("20");
  f.kernel(compute, kGemm, 0, 100);
  f.kernel(side, kAllReduce, 50, 100);
  f.device(compute, "gpu_memcpy", "Memcpy DtoH (Device -> Pinned)", 120, 10);
  f.kernel(compute, kGemm, 200, 20);
  const Run run = run_of(std::move(f));
  const Answer answer = ask(run, "communication");
  CHECK(ns(answer, "span_ns") == 220);
  CHECK(ns(answer, "communication_span_ns") == 100);
  CHECK(ns(answer, "communication_hidden_span_ns") == 50);
  CHECK(ns(answer, "communication_exposed_span_ns") == 50);
  CHECK(real(answer, "communication_hidden_ratio") == 0.5);
  const Answer overview = ask(run, "overview");
  CHECK(ns(overview, "busy_span_ns") == 170);
  CHECK(ns(overview, "idle_span_ns") == 50);
  CHECK(cell(overview, "breakdown", "part", "compute", "time_ns") == Value(Ns{120}));
  CHECK(cell(overview, "breakdown", "part", "communication exposed", "time_ns") == Value(Ns{50}));
  Ns parts = 0;
  for (const auto& row : overview.table("breakdown")->rows) parts += std::get<Ns>(row[3]);
  CHECK(parts == 220);  // the copy lies under communication; the rest is idle
}

TEST_CASE("communication: bytes and bandwidth by the convention of NCCL's tests") {
  TraceFixture f;
  const TrackId gpu = f.stream("20");
  const SliceId reduce = f.kernel(gpu, kAllReduce, 0, 1000);
  f.collective(reduce, "allreduce", 1000, 4);
  f.kernel(gpu, "void deep_ep::internode::dispatch<false, 8>(int)", 2000, 100);
  const Run run = run_of(std::move(f));
  const Answer answer = ask(run, "communication");
  CHECK(cell(answer, "collectives", "kind", "all-reduce", "bytes") == Value(Ns{4000}));
  CHECK(cell(answer, "collectives", "kind", "all-reduce", "algorithm_gb_per_s") == Value(4.0));
  CHECK(cell(answer, "collectives", "kind", "all-reduce", "bus_gb_per_s") == Value(6.0));  // × 2 × 3 / 4
  const Table& table = *answer.table("collectives");
  REQUIRE(table.rows.size() == 2);
  CHECK(table.rows[1][8] == Value());   // bytes of the kernel without metadata
  CHECK(table.rows[1][12] == Value());  // and its bandwidth
  CHECK(answer.notes.size() == 1);      // which says why
}

TEST_CASE("steps: each instant in one part, in order of priority, to the nanosecond") {
  TraceFixture f;
  const TrackId cpu = f.host("1"), gpu = f.stream("7"), side = f.stream("20");
  for (int step = 0; step < 3; step++) {
    const Ns t = step * 1000;
    f.annotation(cpu, "ProfilerStep#" + std::to_string(step), t, 1000);
    f.annotation(cpu, "enumerate(DataLoader)#_SingleProcessDataLoaderIter.__next__", t + 10, 100);
    f.op(cpu, "aten::stack", t + 20, 40);  // inside the data loader: the loader goes before operators
    f.op(cpu, "aten::mm", t + 200, 100);
    f.launch(cpu, "cudaLaunchKernel", t + 210, 20, step * 10 + 1);
    f.kernel(gpu, kGemm, t + 240, 300, step * 10 + 1);
    f.op(cpu, "c10d::allreduce_", t + 310, 30);
    f.launch(cpu, "cudaLaunchKernelExC", t + 315, 10, step * 10 + 2);
    f.kernel(side, kAllReduce, t + 400, 240, step * 10 + 2);
    f.launch(cpu, "cudaDeviceSynchronize", t + 600, 60, step * 10 + 3);
  }
  const Run run = run_of(std::move(f));
  const Answer answer = ask(run, "steps");
  const Table& steps = *answer.table("steps");
  REQUIRE(steps.rows.size() == 3);
  for (const auto& row : steps.rows) {
    Ns sum = 0;
    for (std::size_t part = 7; part < row.size(); part++) sum += std::get<Ns>(row[part]);
    CHECK(sum == std::get<Ns>(row[5]));
  }
  const auto part = [&](std::string_view name) { return cell(answer, "breakdown", "part", name, "priority_ns"); };
  CHECK(part("kernel") == Value(Ns{300}));
  CHECK(part("communication") == Value(Ns{100}));  // 540..640
  CHECK(part("runtime") == Value(Ns{40}));         // 210..230 and 640..660
  CHECK(part("dataloader") == Value(Ns{100}));
  CHECK(part("cpu_op") == Value(Ns{20}));  // 200..210 and 230..240
  CHECK(part("other") == Value(Ns{440}));
  const auto bound = [&](std::string_view name) { return cell(answer, "breakdown", "part", name, "critical_ns"); };
  CHECK(bound("kernel") == Value(Ns{0}));           // nothing waited for it
  CHECK(bound("communication") == Value(Ns{240}));  // the synchronizing call did
  CHECK(bound("runtime") == Value(Ns{125}));        // 210..230, 315..400 on its way to the device, 640..660
  CHECK(bound("dataloader") == Value(Ns{100}));
  CHECK(bound("cpu_op") == Value(Ns{85}));  // 200..210, 230..300, 310..315
  CHECK(bound("other") == Value(Ns{450}));
  CHECK(ns(answer, "step_time_median_ns") == 1000);
  REQUIRE(answer.series.size() == 1);
  CHECK(answer.series[0].v == std::vector<double>{1000, 1000, 1000});
}

TEST_CASE("steps: device work that outlasts its step moves the border, and is counted once") {
  TraceFixture f;
  const TrackId cpu = f.host("1"), gpu = f.stream("7");
  for (int step = 0; step < 3; step++) {
    f.annotation(cpu, "ProfilerStep#" + std::to_string(step), step * 100, 100);
    f.launch(cpu, "cudaLaunchKernel", step * 100 + 10, 5, step + 1);
    f.kernel(gpu, kGemm, step * 400 + 20, 400, step + 1);
  }
  const Run run = run_of(std::move(f));
  const Answer answer = ask(run, "steps");
  const Table& steps = *answer.table("steps");
  Ns walls = 0;
  for (const auto& row : steps.rows) walls += std::get<Ns>(row[5]);
  CHECK(walls == 1220);
  CHECK(steps.rows[1][4] == Value(Ns{420}));  // starts where the device finished the step before
  CHECK(steps.rows[1][5] == Value(Ns{400}));
}

TEST_CASE("operators: self and total, nested calls of one name once, kernels on two streams once") {
  TraceFixture f;
  const TrackId cpu = f.host("1"), gpu = f.stream("7"), side = f.stream("20");
  f.op(cpu, "aten::to", 0, 100);
  f.op(cpu, "aten::to", 10, 80);
  f.op(cpu, "aten::copy_", 20, 50);
  f.launch(cpu, "cudaLaunchKernel", 30, 10, 1);
  f.launch(cpu, "cudaLaunchKernel", 50, 10, 2);
  f.kernel(gpu, "copy_kernel", 100, 50, 1);
  f.kernel(side, "copy_kernel", 120, 50, 2);
  for (const Ns time : {25, 60, 95}) {
    f.trace.memory.time_ns.push_back(time);
    f.trace.memory.track.push_back(cpu);
    f.trace.memory.bytes.push_back(512);
  }
  f.trace.memory.time_ns.push_back(99);
  f.trace.memory.track.push_back(cpu);
  f.trace.memory.bytes.push_back(-512);  // a free is not an allocation
  f.trace.memory.time_ns.push_back(500);
  f.trace.memory.track.push_back(cpu);
  f.trace.memory.bytes.push_back(64);  // outside all operators
  const Run run = run_of(std::move(f));
  const Answer answer = ask(run, "operators");
  const auto of = [&](std::string_view name, std::string_view column) {
    return cell(answer, "by_name", "name", name, column);
  };
  CHECK(of("aten::to", "calls") == Value(Ns{2}));
  CHECK(of("aten::to", "host_self_ns") == Value(Ns{20 + 30}));
  CHECK(of("aten::to", "host_total_ns") == Value(Ns{100}));
  CHECK(of("aten::copy_", "host_self_ns") == Value(Ns{30}));
  CHECK(of("aten::copy_", "device_self_ns") == Value(Ns{70}));
  CHECK(of("aten::to", "device_self_ns") == Value(Ns{0}));
  CHECK(of("aten::to", "device_total_ns") == Value(Ns{70}));
  CHECK(of("aten::copy_", "self_allocated_bytes") == Value(Ns{1024}));
  CHECK(of("aten::to", "self_allocated_bytes") == Value(Ns{512}));
  CHECK(of("aten::to", "total_allocated_bytes") == Value(Ns{1536}));
  CHECK(ns(answer, "allocated_without_op_bytes") == 64);
  CHECK(answer.table("by_shape") == nullptr);  // not recorded, and a note says how to
  CHECK(ask(run, "operators", 1).table("by_name")->rows.size() == 1);
}

TEST_CASE("operators: a sum of self times is the time in operators") {
  TraceFixture f;
  const TrackId cpu = f.host("1");
  f.op(cpu, "a", 0, 100);
  f.op(cpu, "b", 10, 30);
  f.op(cpu, "b", 15, 10);
  f.op(cpu, "c", 60, 40);
  f.op(cpu, "d", 200, 7);
  const Run run = run_of(std::move(f));
  CHECK(ns(ask(run, "operators"), "host_self_ns") == 107);
}

TEST_CASE("operators: the Python frames around an operator are its stack") {
  TraceFixture f;
  const TrackId cpu = f.host("1");
  f.slice(cpu, "python_function", "train.py(10): main", 0, 1000);
  f.slice(cpu, "python_function", "train.py(20): step", 10, 200);
  f.op(cpu, "aten::mm", 20, 50);
  f.slice(cpu, "python_function", "train.py(30): eval", 300, 200);
  f.op(cpu, "aten::mm", 320, 70);
  const Run run = run_of(std::move(f));
  const Answer answer = ask(run, "operators");
  CHECK(cell(answer, "by_stack", "stack", "train.py(30): eval; train.py(10): main", "host_self_ns") == Value(Ns{70}));
  CHECK(cell(answer, "by_stack", "stack", "train.py(20): step; train.py(10): main", "host_self_ns") == Value(Ns{50}));
}

// A device that works 0..100, is idle 100..1000, and works again; `host` says what happens meanwhile.
template <class Host>
Answer idle_with(const Host& host) {
  TraceFixture f;
  const TrackId cpu = f.host("1"), gpu = f.stream("7");
  f.op(cpu, "aten::first", 0, 20);
  f.launch(cpu, "cudaLaunchKernel", 5, 5, 1);
  f.kernel(gpu, kGemm, 20, 80, 1);
  host(f, cpu, gpu);
  return ask(run_of(std::move(f)), "idle");
}

std::string cause_of(const Answer& answer) {
  const Table& gaps = *answer.table("gaps");
  REQUIRE(!gaps.rows.empty());  // the longest first
  return std::get<std::string>(gaps.rows[0][4]);
}

TEST_CASE("idle: the host was busy with an operator") {
  const Answer answer = idle_with([](TraceFixture& f, TrackId cpu, TrackId gpu) {
    f.op(cpu, "aten::nonzero", 90, 800);
    f.op(cpu, "aten::mm", 900, 60);
    f.launch(cpu, "cudaLaunchKernel", 950, 5, 2);
    f.kernel(gpu, kGemm, 1000, 100, 2);
  });
  CHECK(cause_of(answer) == "host-bound");
  CHECK(cell(answer, "by_op", "cause", "host-bound", "op") == Value(std::string("aten::nonzero")));
  CHECK(ns(answer, "idle_span_ns") == 900);
  CHECK(ns(answer, "busy_span_ns") == 180);
  REQUIRE(answer.findings.size() == 1);
  CHECK(answer.findings[0].id == "host_bound_idle");
  CHECK(answer.findings[0].where.t_ns == 100);  // when the longest gap begins
  CHECK(answer.findings[0].where.op == "aten::nonzero");
}

TEST_CASE("idle: the host waited for the device and was late afterwards") {
  CHECK(cause_of(idle_with([](TraceFixture& f, TrackId cpu, TrackId gpu) {
          f.op(cpu, "aten::item", 30, 75);
          f.slice(cpu, "cuda_runtime", "cudaStreamSynchronize", 40, 62);
          f.op(cpu, "aten::mm", 900, 60);
          f.launch(cpu, "cudaLaunchKernel", 950, 5, 2);
          f.kernel(gpu, kGemm, 1000, 100, 2);
        })) == "synchronization");
}

TEST_CASE("idle: the host waited for data") {
  const Answer answer = idle_with([](TraceFixture& f, TrackId cpu, TrackId gpu) {
    f.annotation(cpu, "enumerate(DataLoader)#_MultiProcessingDataLoaderIter.__next__", 80, 800);
    f.op(cpu, "aten::mm", 900, 60);
    f.launch(cpu, "cudaLaunchKernel", 950, 5, 2);
    f.kernel(gpu, kGemm, 1000, 100, 2);
  });
  CHECK(cause_of(answer) == "data wait");
  CHECK(cell(answer, "gaps", "cause", "data wait", "phase") == Value(std::string("dataloader")));
}

TEST_CASE("idle: launched just before, waiting for another stream, and what cannot be shown") {
  CHECK(cause_of(idle_with([](TraceFixture& f, TrackId cpu, TrackId gpu) {
          f.launch(cpu, "cudaLaunchKernel", 95, 5, 2);
          f.kernel(gpu, kGemm, 1000, 100, 2);
        })) == "launch-bound");
  CHECK(cause_of(idle_with([](TraceFixture& f, TrackId cpu, TrackId gpu) {
          f.launch(cpu, "cudaLaunchKernel", 30, 5, 2);
          f.kernel(gpu, kGemm, 100'000, 100, 2);
        })) == "unknown");
  CHECK(cause_of(idle_with([](TraceFixture& f, TrackId, TrackId gpu) { f.kernel(gpu, kGemm, 1000, 100); })) ==
        "unknown");
  const auto after_wait = [](std::string_view waited_for) {
    TraceFixture f;
    const TrackId cpu = f.host("1"), gpu = f.stream("7"), side = f.stream("20");
    f.launch(cpu, "cudaLaunchKernel", 0, 5, 1);
    f.launch(cpu, "cudaLaunchKernel", 6, 5, 2);
    f.kernel(side, waited_for, 20, 100'000, 1);
    const SliceId wait = f.device(gpu, "cuda_sync", "Stream Wait Event", 30, 100'050);
    f.trace.device.wait_stream.set(f.trace.device.size() - 1, static_cast<Ns>(side));
    (void)wait;
    f.kernel(gpu, kGemm, 100'100, 100, 2);
    return cause_of(ask(run_of(std::move(f)), "idle"));
  };
  CHECK(after_wait(kGemm) == "dependency");
  CHECK(after_wait(kAllReduce) == "communication wait");
}

TEST_CASE("idle: causes add up to the idle time in both windows") {
  TraceFixture f;
  const TrackId cpu = f.host("1"), gpu = f.stream("7");
  for (int step = 0; step < 4; step++) {
    f.annotation(cpu, "ProfilerStep#" + std::to_string(step), step * 1000, 1000);
    for (int i = 0; i < 5; i++) {
      const int id = step * 5 + i + 1;
      f.op(cpu, "aten::mm", step * 1000 + i * 150, 100);
      f.launch(cpu, "cudaLaunchKernel", step * 1000 + i * 150 + 20, 10, id);
      f.kernel(gpu, kGemm, step * 1000 + i * 150 + 60, 30 + 20 * i, id);
    }
  }
  const Run run = run_of(std::move(f));
  const Answer answer = ask(run, "idle");
  Ns span = 0, steps = 0;
  for (const auto& row : answer.table("causes")->rows) {
    span += std::get<Ns>(row[4]);
    steps += std::get<Ns>(row[5]);
  }
  CHECK(span == ns(answer, "idle_span_ns"));
  CHECK(steps == ns(answer, "idle_steps_ns"));
}

TEST_CASE("kernels and utilization: weighted by duration, unknown where nothing is recorded") {
  TraceFixture f;
  f.trace.devices.push_back({.id = 0, .name = "A100", .sm_count = 100, .max_threads_per_sm = 2048});
  const TrackId gpu = f.stream("7");
  f.kernel(gpu, "sm80_xmma_gemm_bf16bf16_bf16f32_f32_tn_n_tilesize128x128x64_tensor16x8x16_kernel", 0, 300);
  f.kernel(gpu, "tiny", 400, 100);
  f.kernel(gpu, "tiny", 900, 100);
  DeviceRows& rows = f.trace.device;
  for (int row = 0; row < 3; row++) {
    rows.grid[0][row] = row == 0 ? 400 : 50;
    rows.grid[1][row] = rows.grid[2][row] = 1;
    rows.block[0][row] = 256;
    rows.block[1][row] = rows.block[2][row] = 1;
  }
  const Run run = run_of(std::move(f));
  const Answer kernels = ask(run, "kernels");
  CHECK(ns(kernels, "device_event_count") == 3);
  CHECK(ns(kernels, "device_time_ns") == 500);
  CHECK(cell(kernels, "kernels", "name", "tiny", "total_ns") == Value(Ns{200}));
  CHECK(cell(kernels, "kernels", "name", "tiny", "share") == Value(0.4));
  CHECK(cell(kernels, "kernels", "name", "tiny", "blocks_per_sm") == Value(0.5));
  CHECK(cell(kernels, "variants", "grid", "50,1,1", "count") == Value(Ns{2}));
  const Answer use = ask(run, "utilization");
  CHECK(real(use, "gpu_utilization_span") == 0.5);
  CHECK(real(use, "sm_efficiency_span") == doctest::Approx(0.4));  // (300 + 2 × 50) / 1000
  CHECK(real(use, "occupancy") == doctest::Approx((300 * 0.5 + 200 * 0.0625) / 500));
  CHECK(real(use, "tensor_core_share") == doctest::Approx(0.6));
  const auto mean_of = [&](std::string_view name) {
    const auto series =
        std::find_if(use.series.begin(), use.series.end(), [&](const Series& s) { return s.name == name; });
    REQUIRE_MESSAGE(series != use.series.end(), name);
    CHECK(series->v.size() <= 200);
    double sum = 0;
    for (const double v : series->v) sum += v;
    return sum / static_cast<double>(series->v.size());
  };
  CHECK(mean_of("gpu_utilization_rank0_device0") == doctest::Approx(0.5));
  CHECK(mean_of("sm_efficiency_rank0_device0") == doctest::Approx(0.4));
}

TEST_CASE("a run without a device: the host is answered, the device is unknown with the reason") {
  TraceFixture f;
  const TrackId cpu = f.host("1");
  for (int step = 0; step < 3; step++) {
    f.annotation(cpu, "ProfilerStep#" + std::to_string(step), step * 1000, 1000);
    f.op(cpu, "aten::addmm", step * 1000 + 100, 600);
  }
  const Run run = run_of(std::move(f));
  const Answer overview = ask(run, "overview");
  CHECK(ns(overview, "step_time_median_ns") == 1000);
  CHECK(unknown(overview, "busy_span_ns"));
  CHECK(unknown(overview, "gpu_utilization_span"));
  CHECK(cell(overview, "breakdown", "part", "cpu_op", "share") == Value(0.6));
  CHECK(cell(overview, "top_operators", "name", "aten::addmm", "device_self_ns") == Value());
  CHECK(cell(ask(run, "operators"), "by_name", "name", "aten::addmm", "host_self_ns") == Value(Ns{1800}));
  CHECK(cell(ask(run, "operators"), "by_name", "name", "aten::addmm", "self_allocated_bytes") == Value());
  CHECK(unknown(ask(run, "idle"), "idle_span_ns"));
  CHECK(unknown(ask(run, "utilization"), "occupancy"));
  CHECK(unknown(ask(run, "kernels"), "device_time_ns"));
  CHECK(unknown(ask(run, "communication"), "communication_hidden_ratio"));
  const Answer quality = ask(run, "quality");
  CHECK(cell(quality, "missing", "what", "device work", "how") != Value());
  CHECK(unknown(quality, "unclassified_ratio"));
}

TEST_CASE("nothing at all, and an empty trace: answers, not failures") {
  for (const bool with_trace : {false, true}) {
    Run run;
    if (with_trace) run = run_of(TraceFixture{});
    for (const analyze::Analysis& analysis : analyze::analyses()) {
      const Answer answer = ask(run, analysis.name);
      CHECK(answer.name == analysis.name);
      CHECK_FALSE(answer.summary.empty());
      for (const Scalar& scalar : answer.scalars) CHECK_MESSAGE(!scalar.meaning.empty(), scalar.name);
    }
  }
}

TEST_CASE("several ranks and devices: rows name them, scalars are means") {
  Run run;
  for (int rank = 0; rank < 2; rank++) {
    TraceFixture f;
    const TrackId gpu = f.stream("7");
    f.trace.rank.rank = rank;
    f.kernel(gpu, kGemm, 0, 100 + 100 * rank);
    f.kernel(gpu, kAllReduce, 500, 100);
    Run one = run_of(std::move(f));
    run.traces.push_back(std::move(one.traces[0]));
  }
  const Answer answer = ask(run, "communication");
  REQUIRE(answer.table("devices")->rows.size() == 2);
  CHECK(answer.table("devices")->rows[1][0] == Value(Ns{1}));
  CHECK(answer.scalar("communication_span_ns")->meaning.find("mean over 2 devices") != std::string::npos);
  CHECK(ns(ask(run, "idle"), "busy_span_ns") == 250);
}

TEST_CASE("quality: launches without work, unclassified work and missing data are named") {
  TraceFixture f;
  const TrackId cpu = f.host("1"), gpu = f.stream("7");
  f.op(cpu, "aten::mm", 0, 100);
  f.launch(cpu, "cudaLaunchKernel", 10, 5, 1);
  f.launch(cpu, "cudaLaunchKernel", 30, 5, 2);
  f.kernel(gpu, "zzz_nobody_knows_this", 50, 100, 1);
  const Run run = run_of(std::move(f));
  const Answer answer = ask(run, "quality");
  CHECK(real(answer, "unclassified_ratio") == 1.0);
  CHECK(ns(answer, "launches_dropped_count") == 1);
  CHECK(cell(answer, "unclassified", "name", "zzz_nobody_knows_this", "total_ns") == Value(Ns{100}));
  CHECK(cell(answer, "missing", "what", "shapes", "how") == Value(std::string("Record with record_shapes=True")));
  std::vector<std::string> found;
  for (const Finding& finding : answer.findings) found.push_back(finding.id);
  CHECK(found == std::vector<std::string>{"unclassified_work", "launches_without_work"});
}

}  // namespace
}  // namespace stepscope
