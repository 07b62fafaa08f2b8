// The critical path on traces built by hand: one for each kind of evidence, worked out on paper.
#include "model/critical_path.h"

#include <doctest/doctest.h>

#include "derive/derive.h"
#include "model/trace_fixture.h"

namespace stepscope {
namespace {

using Ns = std::int64_t;

const std::string kGemm = "ampere_sgemm_128x64_tn";

CriticalPath path_of(TraceFixture& f) {
  REQUIRE(derive::derive(f.trace, {}));
  CriticalPath path = PathFinder(f.trace).whole();
  Ns at = path.window.start;  // every instant once
  for (const PathSegment& segment : path.segments) {
    REQUIRE(segment.when.start == at);
    REQUIRE(segment.when.end > at);
    at = segment.when.end;
  }
  REQUIRE(at == path.window.end);
  return path;
}

// "class name start-end evidence", one line per segment.
std::string text_of(const TraceFixture& f, const CriticalPath& path) {
  std::string out;
  for (const PathSegment& segment : path.segments) {
    out += std::string(to_string(segment.what)) + " " +
           (segment.slice == SliceId::none ? "-" : std::string(f.trace.name(segment.slice))) + " " +
           std::to_string(segment.when.start) + "-" + std::to_string(segment.when.end) + " " +
           std::string(to_string(segment.why)) + "\n";
  }
  return out;
}

TEST_CASE("critical path: a launch, the stream behind it, and the call that waited") {
  TraceFixture f;
  const TrackId cpu = f.host("1"), gpu = f.stream("7");
  f.op(cpu, "aten::mm", 0, 100);
  f.launch(cpu, "cudaLaunchKernel", 10, 20, 1);
  f.launch(cpu, "cudaLaunchKernel", 40, 20, 2);
  f.kernel(gpu, kGemm, 50, 200, 1);
  f.kernel(gpu, "relu_kernel", 252, 40, 2);
  f.launch(cpu, "cudaDeviceSynchronize", 120, 200, 3);
  f.op(cpu, "aten::add", 330, 10);
  CHECK(text_of(f, path_of(f)) ==
        "host_op aten::mm 0-10 none\n"
        "launch cudaLaunchKernel 10-50 program order\n"
        "compute ampere_sgemm_128x64_tn 50-250 launch\n"
        "device_gap relu_kernel 250-252 stream order\n"
        "compute relu_kernel 252-292 stream order\n"
        "sync_wait cudaDeviceSynchronize 292-320 sync call\n"
        "unknown - 320-330 program order\n"
        "host_op aten::add 330-340 program order\n");
}

TEST_CASE("critical path: every launch call counts, driver calls and graphs too") {
  for (const std::string_view call :
       {"cuLaunchKernelEx", "cudaLaunchKernelExC", "cudaGraphLaunch", "hipLaunchKernel"}) {
    TraceFixture f;
    const TrackId cpu = f.host("1"), gpu = f.stream("7"), side = f.stream("8");
    f.op(cpu, "aten::mm", 0, 100);
    f.launch(cpu, call, 10, 20, 1);
    f.kernel(gpu, kGemm, 50, 200, 1);
    f.kernel(side, "relu_kernel", 251, 40'000, 1);  // the same graph, on another stream
    const std::string text = text_of(f, path_of(f));
    CHECK_MESSAGE(text.find("launch " + std::string(call) + " 10-") != std::string::npos, text);
  }
}

TEST_CASE("critical path: an event of another stream") {
  TraceFixture f;
  const TrackId cpu = f.host("1"), gpu = f.stream("7"), side = f.stream("20");
  f.launch(cpu, "cudaLaunchKernel", 0, 5, 1);
  f.kernel(gpu, kGemm, 10, 50'000, 1);
  f.launch(cpu, "cudaEventRecord", 10, 5, 2);
  f.launch(cpu, "cudaLaunchKernel", 20, 5, 3);
  f.kernel(gpu, "late_kernel", 50'012, 90'000, 3);  // after the record: nobody waits for it
  f.launch(cpu, "cudaStreamWaitEvent", 30, 5, 4);
  f.device(side, "cuda_sync", "Stream Wait Event", 35, 1, 4);
  f.launch(cpu, "cudaLaunchKernel", 40, 5, 5);
  f.kernel(side, "reduce_kernel", 58'010, 200'000, 5);  // 8 µs after the event: too late to be inferred from the times
  f.trace.device.wait_stream = {};
  f.trace.device.wait_correlation = {};
  for (const Ns stream : {kAbsent, kAbsent, static_cast<Ns>(gpu), kAbsent})
    f.trace.device.wait_stream.push_back(stream);
  for (const Ns id : {kAbsent, kAbsent, Ns{2}, kAbsent}) f.trace.device.wait_correlation.push_back(id);
  CHECK(text_of(f, path_of(f)) ==
        "launch cudaLaunchKernel 0-10 none\n"
        "compute ampere_sgemm_128x64_tn 10-50010 launch\n"
        "device_gap reduce_kernel 50010-58010 event wait\n"
        "compute reduce_kernel 58010-258010 event wait\n");
}

TEST_CASE("critical path: without a recorded event, work that ended just before; without any, unknown") {
  for (const Ns start : {50'012, 90'000}) {
    TraceFixture f;
    const TrackId cpu = f.host("1"), gpu = f.stream("7"), side = f.stream("20");
    f.launch(cpu, "cudaLaunchKernel", 0, 5, 1);
    f.launch(cpu, "cudaLaunchKernel", 20, 5, 2);
    f.launch(cpu, "cudaLaunchKernel", 40, 5, 3);
    f.kernel(gpu, kGemm, 10, 50'000, 1);
    f.kernel(side, "first_kernel", 30, 100, 2);
    f.kernel(side, "reduce_kernel", start, 200'000, 3);
    const std::string text = text_of(f, path_of(f));
    const bool inferred = text.find("compute reduce_kernel 50012-250012 end to start") != std::string::npos;
    const bool unknown = text.find("unknown reduce_kernel 130-90000 stream order") != std::string::npos;
    CHECK_MESSAGE(inferred == (start == 50'012), text);
    CHECK_MESSAGE(unknown == (start == 90'000), text);
  }
}

TEST_CASE("critical path: a copy that its call waited for, and a flag that the host polled") {
  TraceFixture f;
  const TrackId cpu = f.host("1"), gpu = f.stream("7");
  f.annotation(cpu, "loop", 0, 1'000'000);
  f.launch(cpu, "cudaMemcpyAsync", 10, 500, 1);
  f.device(gpu, "gpu_memcpy", "Memcpy DtoH (Device -> Pageable)", 100, 300, 1);
  f.launch(cpu, "cudaLaunchKernel", 600, 10, 2);
  f.kernel(gpu, "ncclDevKernel_SendRecv", 620, 400'000, 2);
  f.op(cpu, "aten::empty", 401'000, 100);  // nothing before it since the launch, and the kernel has just ended
  CHECK(text_of(f, path_of(f)) ==
        "python loop 0-10 none\n"
        "launch cudaMemcpyAsync 10-100 program order\n"
        "copy Memcpy DtoH (Device -> Pageable) 100-400 launch\n"
        "sync_wait cudaMemcpyAsync 400-510 sync call\n"
        "python loop 510-600 program order\n"
        "launch cudaLaunchKernel 600-620 program order\n"
        "communication ncclDevKernel_SendRecv 620-400620 launch\n"
        "sync_wait loop 400620-401000 polled\n"
        "host_op aten::empty 401000-401100 program order\n"
        "python loop 401100-1000000 program order\n");
}

TEST_CASE("critical path: the autograd thread takes over and gives back") {
  TraceFixture f;
  const TrackId main = f.host("1"), autograd = f.host("2");
  for (const Ns t : {0, 1000}) {
    f.op(main, "aten::mm", t, 100, {.sequence = t + 1, .fwd_thread = 0});
    f.op(autograd, "MmBackward0", t + 150, 300, {.sequence = t + 1, .fwd_thread = 1});
    f.op(main, "aten::sub_", t + 500, 100);
  }
  f.op(main, "aten::end", 1700, 10);
  const std::string text = text_of(f, path_of(f));
  CHECK_MESSAGE(text ==
                    "host_op aten::mm 0-100 none\n"
                    "unknown - 100-150 program order\n"
                    "host_op MmBackward0 150-450 autograd\n"
                    "unknown - 450-500 autograd\n"
                    "host_op aten::sub_ 500-600 program order\n"
                    "unknown - 600-1000 program order\n"
                    "host_op aten::mm 1000-1100 program order\n"
                    "unknown - 1100-1150 program order\n"
                    "host_op MmBackward0 1150-1450 autograd\n"
                    "unknown - 1450-1500 autograd\n"
                    "host_op aten::sub_ 1500-1600 program order\n"
                    "unknown - 1600-1700 program order\n"
                    "host_op aten::end 1700-1710 program order\n",
                text);
}

TEST_CASE("critical path: slices that overlap without nesting, work without a launch, clocks that disagree") {
  TraceFixture f;
  const TrackId cpu = f.host("1"), gpu = f.stream("7");
  f.op(cpu, "a", 0, 100);
  f.op(cpu, "b", 50, 100);
  f.op(cpu, "c", 60, 10);
  f.launch(cpu, "cudaLaunchKernel", 400, 10, 1);
  f.kernel(gpu, kGemm, 390, 100, 1);       // before its launch
  f.kernel(gpu, "overlapping", 450, 100);  // no launch, and begins before the kernel before it ended
  for (int i = 0; i < 200; i++) f.kernel(gpu, "of no length", 550, 0);
  const CriticalPath path = path_of(f);
  CHECK(path.window == Interval{0, 550});
  const PathTimes times = path.times();
  CHECK(times[static_cast<std::size_t>(PathClass::compute)] == 160);
  CHECK(times[static_cast<std::size_t>(PathClass::host_op)] == 150);
}

TEST_CASE("critical path: nothing to walk") {
  TraceFixture f;
  CHECK(path_of(f).segments.empty());
  f.host("1");
  CHECK(path_of(f).segments.empty());
}

}  // namespace
}  // namespace stepscope
