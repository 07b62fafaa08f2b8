// The reader of rocprofv3's JSON on recordings that are made here: what each table becomes, in both schemas.
// Damage is in rocprof_json/damage_test.cc.
#include <doctest/doctest.h>

#include "analyze/answer_fixture.h"
#include "derive/derive.h"
#include "read/rocprof_json/recording_fixture.h"

using namespace stepscope;
using read::RecordingFile;
using read::RecordingFixture;
using read::Release;

namespace {

std::string track_of(const Trace& trace, SliceId slice) {
  const Track& track = trace.tracks[static_cast<std::size_t>(trace.slices.track[slice])];
  return std::string(trace.strings[track.process]) + "/" + std::string(trace.strings[track.thread]);
}

std::string lane_name(const Trace& trace, SliceId slice) {
  return std::string(trace.strings[trace.tracks[static_cast<std::size_t>(trace.slices.track[slice])].thread_name]);
}

SliceId slice_named(const Trace& trace, std::string_view name) {
  for (std::size_t row = 0; row < trace.slices.size(); row++) {
    if (trace.name(static_cast<SliceId>(row)) == name) return static_cast<SliceId>(row);
  }
  FAIL("no slice ", name);
  return SliceId::none;
}

const Issue* issue_of(const Trace& trace, std::string_view code) {
  for (const Issue& issue : trace.issues) {
    if (issue.code == code) return &issue;
  }
  return nullptr;
}

std::string said(const Trace& trace, std::string_view key) {
  for (const Metadata& each : trace.metadata) {
    if (each.key == key) return each.json;
  }
  return "";
}

Trace only(std::vector<Trace> traces) {
  REQUIRE(traces.size() == 1);
  return std::move(traces.front());
}

}  // namespace

TEST_CASE("rocprof: both schemas give kernels, calls and their links") {
  for (const Release release : {Release::rocm62, Release::rocm7}) {
    const bool is_new = release == Release::rocm7;
    CAPTURE(is_new);
    RecordingFixture f(release);
    f.hip("__hipPushCallConfiguration", 90, 95, 3);
    f.hip("hipLaunchKernel", 63'857'982'592'001, 63'857'982'592'018, 41);
    f.hip("hipModuleLaunchKernel", 63'857'982'592'020, 63'857'982'592'025, 42);
    f.hip("hipGraphLaunch", 63'857'982'592'030, 63'857'982'592'035, 43, 77);
    f.kernel(63'857'982'592'150, 63'857'982'592'251, 41);
    f.kernel(63'857'982'592'260, 63'857'982'592'300, 42, 2);
    f.kernel(63'857'982'592'310, 63'857'982'592'320, 43);
    f.kernel(63'857'982'592'330, 63'857'982'592'340, 43);
    f.kernel(63'857'982'592'350, 63'857'982'592'360, 99, 1, 3, RecordingFixture::kGpu1);
    Trace trace = only(f.read());
    CHECK(trace.issues.empty());
    CHECK(trace.source.format == "rocprof_json");
    CHECK(trace.source.writer == "rocprofv3");
    REQUIRE(trace.device.size() == 5);
    const SliceId first = trace.device.slice[0];
    CHECK(trace.name(first) == "gemm(float*)");
    CHECK(trace.kind(first) == SliceKind::kernel);
    CHECK(trace.slices.start_ns[first] == 63'857'982'592'150);
    CHECK(trace.slices.dur_ns[first] == 101);
    CHECK(track_of(trace, first) == (is_new ? "0/3" : "0/7"));
    CHECK(lane_name(trace, first) == (is_new ? "stream 3" : "queue 7"));
    CHECK(trace.device.device[4] == 1);
    CHECK(trace.device.stream[0] == (is_new ? 3 : 7));
    CHECK(trace.device.grid[0][0] == 4);  // 1,000 work-items in groups of 256
    CHECK(trace.device.grid[1][0] == 4);
    CHECK(trace.device.grid[2][0] == 1);
    CHECK(trace.device.block[0][0] == 256);
    CHECK(trace.device.shared_bytes[0] == 2048);
    CHECK(trace.device.registers[0] == (is_new ? 24 : DeviceRows::kNoCount));
    CHECK(track_of(trace, slice_named(trace, "hipGraphLaunch")) == "4242/77");
    CHECK(trace.kind(slice_named(trace, "__hipPushCallConfiguration")) == SliceKind::runtime);

    REQUIRE(derive::derive(trace, {}));
    CHECK(trace.device.launch[0] == slice_named(trace, "hipLaunchKernel"));
    CHECK(trace.device.launch[1] == slice_named(trace, "hipModuleLaunchKernel"));
    CHECK(trace.device.launch[2] == slice_named(trace, "hipGraphLaunch"));
    CHECK(trace.device.launch[3] == slice_named(trace, "hipGraphLaunch"));
    CHECK(trace.device.launch[4] == SliceId::none);  // an orphan is counted, not an issue
    CHECK(trace.links.device_linked == 4);
    CHECK(trace.links.device_unlinked == 1);
    CHECK(trace.links.launches_dropped == 0);
  }
}

TEST_CASE("rocprof: what is said of machine and process") {
  RecordingFixture f;
  f.hip("hipMalloc", 1, 2, 1);
  f.kernel(10, 20, 1, 1, 3, RecordingFixture::kGpu1);
  const Trace trace = only(f.read());
  CHECK(said(trace, "pid") == "4242");
  CHECK(said(trace, "hostname") == "\"node1\"");
  CHECK(said(trace, "command") == R"(["/usr/bin/python3","t.py"])");
  CHECK(said(trace, "init_time") == "1");
  CHECK(said(trace, "fini_time") == "1000000");
  CHECK(trace.clock_base_ns == kAbsent);
  REQUIRE(trace.devices.size() == 1);  // of the two, the one that was used
  CHECK(trace.devices[0].id == 1);
  CHECK(trace.devices[0].name == "AMD Instinct MI300X");
  CHECK(trace.devices[0].sm_count == 256);
  CHECK(trace.devices[0].max_threads_per_sm == 2048);
  CHECK(trace.devices[0].memory_bytes == 205'822'885'888);
  CHECK(trace.devices[0].compute_major == 9);
  CHECK(trace.devices[0].compute_minor == 4);
  const Track& host = trace.tracks[static_cast<std::size_t>(trace.slices.track[slice_named(trace, "hipMalloc")])];
  CHECK(trace.strings[host.process_name] == "python3");
}

TEST_CASE("rocprof: lanes are queues where streams were not recorded") {
  RecordingFixture f;
  f.metadata += R"(, "config": {"group_by_queue": true})";
  f.kernel(10, 20, 1, 1, 0, RecordingFixture::kGpu0, 18);
  f.copy("HOST_TO_DEVICE", 10, 20, 1, RecordingFixture::kCpu, RecordingFixture::kGpu0, 64);
  const Trace trace = only(f.read());
  CHECK(lane_name(trace, trace.device.slice[0]) == "queue 18");
  CHECK(lane_name(trace, trace.device.slice[1]) == "no stream");
}

TEST_CASE("rocprof: copies have direction, bytes and the device that they are on, in both schemas") {
  constexpr int cpu = RecordingFixture::kCpu, gpu0 = RecordingFixture::kGpu0, gpu1 = RecordingFixture::kGpu1;
  for (const Release release : {Release::rocm62, Release::rocm7}) {
    RecordingFixture f(release);
    f.copy("HOST_TO_DEVICE", 10, 20, 5, cpu, gpu1, 4096);
    f.copy("DEVICE_TO_HOST", 20, 31, 6, gpu0, cpu, 64);
    f.copy("DEVICE_TO_DEVICE", 40, 50, 7, gpu0, gpu0, 1);
    f.copy("DEVICE_TO_DEVICE", 50, 60, 8, gpu0, gpu1, 2);
    f.copy("of a release to come", 60, 70, 9, gpu0, cpu, 3);
    f.copy("of a release to come", 70, 80, 10, 555, gpu0, 4);
    const Trace trace = only(f.read());
    REQUIRE(trace.device.size() == 6);
    const auto name = [&](std::size_t row) { return trace.name(trace.device.slice[row]); };
    CHECK(name(0) == "Memcpy HtoD (Host -> Device)");
    CHECK(name(1) == "Memcpy DtoH (Device -> Host)");
    CHECK(name(2) == "Memcpy DtoD (Device -> Device)");
    CHECK(name(3) == "Memcpy PtoP (Device 0 -> Device 1)");
    CHECK(name(4) == "Memcpy DtoH (Device -> Host)");  // as its two ends say
    CHECK(name(5) == "Memcpy Unknown");
    CHECK(trace.device.device[0] == 1);
    CHECK(trace.device.device[1] == 0);
    CHECK(trace.device.device[3] == 1);
    CHECK(trace.device.bytes[0] == 4096);
    CHECK(trace.device.bytes[1] == 64);
    CHECK(trace.slices.dur_ns[trace.device.slice[1]] == 11);
    CHECK(trace.kind(trace.device.slice[0]) == SliceKind::memcpy);
    REQUIRE(issue_of(trace, "unknown_agent") != nullptr);
    CHECK(issue_of(trace, "unknown_agent")->count == 1);
  }
}

TEST_CASE("rocprof: a copy belongs to the call of HIP, also where HSA below it was recorded") {
  RecordingFixture f;
  constexpr int cpu = RecordingFixture::kCpu, gpu = RecordingFixture::kGpu0;
  f.hip("hipMemcpyAsync", 100, 200, 5);
  f.hsa("hsa_amd_memory_async_copy_on_engine", 120, 180, 6, 5);
  f.hsa("hsa_amd_memory_async_copy_on_engine", 300, 310, 8, 7);  // made in a range of ROCTx, which is no call
  f.copy("HOST_TO_DEVICE", 400, 500, 6, cpu, gpu, 64);
  f.copy("HOST_TO_DEVICE", 500, 600, 8, cpu, gpu, 64);
  Trace trace = only(f.read());
  REQUIRE(derive::derive(trace, {}));
  CHECK(trace.device.launch[0] == slice_named(trace, "hipMemcpyAsync"));
  REQUIRE(trace.device.launch[1] != SliceId::none);
  CHECK(trace.slices.start_ns[trace.device.launch[1]] == 300);
  CHECK(trace.links.launches_dropped == 0);
}

TEST_CASE("rocprof: ranges nest, marks are points, torch's become operators") {
  for (const Release release : {Release::rocm62, Release::rocm7}) {
    const bool is_new = release == Release::rocm7;
    CAPTURE(is_new);
    const std::string push = is_new ? "roctxThreadRangeA" : "roctxRangePushA";
    const std::string start = is_new ? "roctxProcessRangeA" : "roctxRangeStartA";
    RecordingFixture f(release);
    f.marker(push, "aten::linear, seq = 45, op_id = 12, sizes = [[8, 64], []]", 20, 80, 2);
    f.marker(push, "step", 10, 90, 1);  // written when it ends: after the inner one
    f.marker(start, "epoch", 5, 500, 3);
    f.marker("roctxMarkA", "loss", 50, 50, 4);
    f.marker(push, "never ended", 60, 0, 5);
    f.marker(push, "", 95, 99, 6);
    f.marker("roctxGetThreadId", "", 100, 101, 7);
    Trace trace = only(f.read());
    REQUIRE(trace.ops.size() == 1);
    CHECK(trace.name(trace.ops.slice[0]) == "aten::linear");
    CHECK(trace.kind(trace.ops.slice[0]) == SliceKind::cpu_op);
    CHECK(trace.ops.sequence[0] == 45);
    CHECK(trace.strings[trace.ops.input_dims[0]] == "[[8,64],[]]");
    const SliceId step = slice_named(trace, "step");
    CHECK(trace.kind(step) == SliceKind::user_annotation);
    CHECK(track_of(trace, slice_named(trace, "epoch")) == "4242/4242 ranges");  // may end on another thread
    REQUIRE(trace.instants.size() == 1);
    CHECK(trace.strings[trace.instants.name[0]] == "loss");
    CHECK(trace.instants.time_ns[0] == 50);
    CHECK(trace.slices.start_ns[slice_named(trace, push)] == 95);  // without a message: by its call
    REQUIRE(issue_of(trace, "open_range") != nullptr);
    CHECK(issue_of(trace, "open_range")->severity == Severity::lost);
    REQUIRE(derive::derive(trace, {}));
    CHECK(trace.slices.parent[trace.ops.slice[0]] == step);
    CHECK(trace.slices.size() == 5);
  }
}

TEST_CASE("rocprof: frees are paired with their allocations by address, in the order of time") {
  RecordingFixture f;
  f.memory("FREE", 50, 0, "0x00007f0000001000", 0);  // before its allocation in the file, not in time
  f.memory("ALLOCATE", 10, RecordingFixture::kGpu1, "0x00007f0000001000", 512);
  f.memory("VMEM_ALLOCATE", 20, RecordingFixture::kCpu, "0x20", 64);
  f.memory("FREE", 60, 0, "0x00007f0000001000", 0);  // a second time
  f.memory("ALLOCATE", 70, RecordingFixture::kGpu0, "0x0000000000000000", -1);
  const Trace trace = only(f.read());
  REQUIRE(trace.memory.size() == 3);
  CHECK(trace.memory.time_ns[0] == 10);
  CHECK(trace.memory.bytes[0] == 512);
  CHECK(trace.memory.address[0] == 0x7f0000001000);
  CHECK(trace.memory.device_index[0] == 1);
  CHECK(trace.memory.device_type[0] == 6);
  CHECK(trace.memory.device_type[1] == 0);  // the host's
  CHECK(trace.memory.bytes[2] == -512);
  CHECK(trace.memory.time_ns[2] == 50);
  CHECK(trace.memory.device_index[2] == 1);
  REQUIRE(issue_of(trace, "unknown_free") != nullptr);
  CHECK(issue_of(trace, "unknown_free")->count == 1);
  CHECK(issue_of(trace, "allocation_without_bytes") != nullptr);
}

TEST_CASE("rocprof: counters are summed over their instances, and their kernel is there once") {
  RecordingFixture f;
  f.counters(100, 200, 5, 1,
             R"({"counter_id": {"handle": 55}, "value": 1.5}, {"counter_id": {"handle": 55}, "value": 2},)"
             R"( {"counter_id": {"handle": 56}, "value": 7}, {"counter_id": {"handle": 57}, "value": NaN},)"
             R"( {"counter_id": {"handle": 58}, "value": -Infinity})");
  f.kernel(100, 200, 5);  // the same dispatch
  f.kernel(300, 400, 6);
  Run run;
  run.traces.push_back(only(f.read()));
  Trace& trace = run.traces.front();
  CHECK(trace.device.size() == 2);
  CHECK(trace.slices.size() == 3);
  REQUIRE(trace.counters.size() == 2);
  CHECK(trace.strings[trace.counters.name[0]] == "gemm(float*)");
  CHECK(trace.strings[trace.counters.key[0]] == "SQ_WAVES");
  CHECK(trace.counters.value[0] == 3.5);
  CHECK(trace.counters.time_ns[0] == 100);
  CHECK(trace.strings[trace.counters.key[1]] == "counter 56");
  CHECK(issue_of(trace, "unknown_counter") != nullptr);
  CHECK(issue_of(trace, "broken_record") == nullptr);
  REQUIRE(derive::derive(trace, {}));
  const Answer answer = answer_fixture::ask(run, "counters");
  CHECK(answer_fixture::cell(answer, "metrics", "metric", "SQ_WAVES", "sum") == Value(3.5));
}

TEST_CASE("rocprof: counters of ROCm 6.2 have no times, which is said") {
  RecordingFixture f(Release::rocm62);
  f.counters(100, 200, 5, 1, R"({"counter_id": {"handle": 55}, "value": 2})");
  f.kernel(100, 200, 5);
  const Trace trace = only(f.read());
  CHECK(trace.device.size() == 1);
  CHECK(trace.counters.size() == 0);
  REQUIRE(issue_of(trace, "counters_without_time") != nullptr);
  CHECK(issue_of(trace, "counters_without_time")->severity == Severity::lost);
}

TEST_CASE("rocprof: counters of ROCm 6.3 have times, and the registers that its symbols do not tell") {
  RecordingFixture f(Release::rocm62);
  f.record("counter_collection", R"("dispatch_data": {"start_timestamp": 100, "end_timestamp": 200, )" +
                                     f.dispatch(1, 9, RecordingFixture::kGpu0, 7) +
                                     R"(}, "records": [], "arch_vgpr_count": 8)");
  const Trace trace = only(f.read());
  REQUIRE(trace.device.size() == 1);
  CHECK(trace.device.registers[0] == 8);
}

TEST_CASE("rocprof: libraries' calls, scratch memory, and the tables that are not shown") {
  RecordingFixture f;
  f.rccl("ncclAllReduce", 10, 20, 4);
  f.scratch("ALLOC", 30, 40);
  f.record("pc_sample_host_trap", R"("record": {"timestamp": 5})");
  f.record("pc_sample_host_trap", R"("record": {"timestamp": 6})");
  f.record("of_a_release_to_come", R"("start_timestamp": 5)");
  const Trace trace = only(f.read());
  CHECK(trace.kind(slice_named(trace, "ncclAllReduce")) == SliceKind::other);  // a library's call, not the runtime's
  CHECK(track_of(trace, slice_named(trace, "SCRATCH_MEMORY_ALLOC")) == "4242/scratch memory of queue 7");
  CHECK(trace.launches.size() == 0);
  REQUIRE(issue_of(trace, "tables_not_shown") != nullptr);
  CHECK(issue_of(trace, "tables_not_shown")->sentence.find("of_a_release_to_come (1), pc_sample_host_trap (2)") !=
        std::string::npos);
}

TEST_CASE("rocprof: each process is a trace, with its own names and agents") {
  RecordingFixture one, two, three;
  one.kernel(100, 200, 5);
  two.metadata = R"("pid": 4343)";
  two.kernels[1] = "other.kd";
  two.kernel(150, 250, 5);
  two.kernel(150, 250, 5, 17);  // without a name
  const auto traces = RecordingFile(RecordingFixture::file({one.process(), two.process(), three.process()})).read();
  REQUIRE(traces);
  REQUIRE(traces->size() == 3);
  CHECK((*traces)[0].name((*traces)[0].device.slice[0]) == "gemm(float*)");
  CHECK((*traces)[1].name((*traces)[1].device.slice[0]) == "other");  // without the suffix of its descriptor
  CHECK((*traces)[1].name((*traces)[1].device.slice[1]) == "kernel 17");
  CHECK(issue_of((*traces)[1], "unknown_kernel") != nullptr);
  CHECK(said((*traces)[1], "pid") == "4343");
  CHECK(issue_of((*traces)[0], "no_events") == nullptr);
  CHECK(issue_of((*traces)[2], "no_events") != nullptr);
}

TEST_CASE("rocprof: tables in another order, and words instead of numbers, as tools write them that rewrite CSV") {
  RecordingFixture f;
  f.record("hip_api", R"("operation": "hipLaunchKernel", "start_timestamp": 10, "end_timestamp": 20, "thread_id": 7,)"
                      R"( "correlation_id": {"internal": 5})");
  f.kernel(100, 200, 5);
  const std::string text = RecordingFixture::file({"{" + f.records() + ", " + f.names() + ", " + f.head() + "}"});
  Trace trace = only(*RecordingFile(text).read());
  CHECK(trace.issues.empty());
  CHECK(trace.name(trace.device.slice[0]) == "gemm(float*)");
  REQUIRE(derive::derive(trace, {}));
  CHECK(trace.device.launch[0] == slice_named(trace, "hipLaunchKernel"));
}

TEST_CASE("rocprof: a record can be shown again as the file has it") {
  RecordingFixture f;
  f.hip("hipMalloc", 10, 20, 5);
  f.counters(100, 200, 5, 1, R"({"counter_id": {"handle": 55}, "value": 2})");
  const RecordingFile file(f.text());
  const Trace trace = only(*file.read());
  REQUIRE(trace.slices.size() == 3);
  std::vector<std::uint64_t> places;
  for (std::size_t row = 0; row < 3; row++) places.push_back(trace.source.blocks[0].offset + trace.slices.place[row]);
  CHECK(places[0] == places[1]);  // a kernel and its counters are one record
  const auto texts = read::reader_named("rocprof_json")->event_text(trace, places);
  REQUIRE(texts);
  CHECK(texts->at(0) == texts->at(1));
  CHECK(texts->at(0).find(R"("records": [{"counter_id")") != std::string::npos);
  CHECK(texts->at(2).starts_with(R"({"size": 64, "kind": 3, "operation": 6)"));
  CHECK(texts->at(2).ends_with("}"));
  const std::uint64_t behind = f.text().size() + 5;
  CHECK_FALSE(read::reader_named("rocprof_json")->event_text(trace, std::span(&behind, 1)));
}

TEST_CASE("rocprof: the standard answers on a recording that can be checked by hand") {
  using namespace answer_fixture;
  RecordingFixture f;
  for (int i = 0; i < 4; i++) {  // each 10 µs: 1 µs of launching, 4 µs of GEMM right behind it
    const std::int64_t at = 1'000'000 + 10'000 * i;
    f.hip("hipLaunchKernel", at, at + 1'000, 10 + i);
    f.kernel(at + 1'000, at + 5'000, 10 + i);
  }
  f.hip("hipMemcpyAsync", 1'006'000, 1'006'500, 20);
  f.copy("HOST_TO_DEVICE", 1'007'000, 1'009'000, 20, RecordingFixture::kCpu, RecordingFixture::kGpu0, 8'000);
  Run run;
  run.traces.push_back(only(f.read()));
  REQUIRE(derive::derive(run.traces.front(), {}));
  const Answer kernels = ask(run, "kernels");
  CHECK(ns(kernels, "device_event_count") == 5);
  CHECK(ns(kernels, "device_time_ns") == 18'000);
  CHECK(cell(kernels, "kernels", "name", "gemm(float*)", "total_ns") == Value(Ns{16'000}));
  CHECK(cell(kernels, "kernels", "name", "gemm(float*)", "family") == Value(std::string("GEMM")));
  const Answer launches = ask(run, "launches");
  CHECK(ns(launches, "launch_count") == 5);
  CHECK(ns(launches, "without_work_count") == 0);
  CHECK(ns(launches, "host_ns") == 4'500);
  CHECK(cell(launches, "calls", "call", "hipLaunchKernel", "device_ns") == Value(Ns{16'000}));
  const Answer copies = ask(run, "copies");
  CHECK(ns(copies, "copy_count") == 1);
  CHECK(ns(copies, "exposed_ns") == 2'000);
  CHECK(cell(copies, "directions", "direction", "HtoD", "bytes") == Value(Ns{8'000}));
  CHECK(cell(copies, "directions", "direction", "HtoD", "gb_per_s") == Value(4.0));
  CHECK(real(ask(run, "overview"), "gpu_utilization_span") == 18.0 / 34.0);  // of 1,001 to 1,035 µs
}

TEST_CASE("rocprof: recognized by its first key alone") {
  const read::Reader* reader = read::reader_named("rocprof_json");
  CHECK(reader->recognizes(R"({"rocprofiler-sdk-tool":[{"metadata")"));
  CHECK(reader->recognizes("\xEF\xBB\xBF {\n \"rocprofiler-sdk-tool\": ["));
  CHECK_FALSE(reader->recognizes(R"({"traceEvents": [{"name": "rocprofiler-sdk-tool"}]})"));
  CHECK_FALSE(reader->recognizes(R"(["rocprofiler-sdk-tool"])"));
  CHECK_FALSE(reader->recognizes(R"({"rocprofiler-sdk-tools": []})"));
  CHECK_FALSE(reader->recognizes("{"));
  CHECK_FALSE(reader->recognizes(""));
  const std::string text = RecordingFixture().text();
  for (const read::Reader& each : read::readers()) {
    CAPTURE(each.name);
    CHECK(each.recognizes(text) == (each.name == "rocprof_json"));
  }
}
