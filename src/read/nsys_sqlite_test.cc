// The reader of nsys on databases that are made here: every schema, damage and what a row becomes.
#include <doctest/doctest.h>
#include <sys/stat.h>

#include "base/whole_file.h"
#include "derive/derive.h"
#include "read/nsys_sqlite/export_fixture.h"

using namespace stepscope;
using read::ExportFixture;
using read::global_id;
using read::issue_of;

namespace {

std::string track_of(const Trace& trace, SliceId slice) {
  const Track& track = trace.tracks[static_cast<std::size_t>(trace.slices.track[slice])];
  return std::string(trace.strings[track.process]) + "/" + std::string(trace.strings[track.thread]);
}

SliceId slice_named(const Trace& trace, std::string_view name) {
  for (std::size_t row = 0; row < trace.slices.size(); row++) {
    if (trace.name(static_cast<SliceId>(row)) == name) return static_cast<SliceId>(row);
  }
  FAIL("no slice ", name);
  return SliceId::none;
}

void two_kernels(ExportFixture& f) {
  f.old_schema();
  f.string(1, "gemm");
  f.string(2, "cudaLaunchKernel_v7000");
  f.call(100, 110, 41, 2);
  f.kernel(150, 250, 41);
  f.kernel(260, 300, 42);
}

}  // namespace

TEST_CASE("53: the oldest schema in use gives kernels, calls and their link") {
  ExportFixture f;
  two_kernels(f);
  std::vector<Trace> traces = f.read();
  REQUIRE(traces.size() == 1);
  Trace& trace = traces.front();
  CHECK(trace.source.format == "nsys_sqlite");
  CHECK(trace.source.writer == "nsys");
  CHECK(trace.issues.empty());
  REQUIRE(trace.device.size() == 2);
  CHECK(trace.name(trace.device.slice[0]) == "gemm");
  CHECK(track_of(trace, trace.device.slice[0]) == "0/13");
  CHECK(trace.device.grid[0][0] == 4);
  CHECK(trace.device.grid[1][0] == 2);
  CHECK(trace.device.block[0][0] == 128);
  CHECK(trace.device.registers[0] == 32);
  CHECK(trace.device.shared_bytes[0] == 1536);
  const SliceId call = slice_named(trace, "cudaLaunchKernel");  // without nsys's suffix
  CHECK(track_of(trace, call) == "7/7");
  REQUIRE(derive::derive(trace, {}));
  CHECK(trace.device.launch[0] == call);
  CHECK(trace.device.launch[1] == SliceId::none);  // an orphan is counted, not an issue
  CHECK(trace.links.device_unlinked == 1);
  bool version = false;
  for (const Metadata& each : trace.metadata) version |= each.key == "nsys_schema" && each.json == "\"3.1.2\"";
  CHECK(version);
}

TEST_CASE("nsys: copies, fills and waits are named as Kineto names them, with and without enum tables") {
  for (const bool enums : {false, true}) {
    CAPTURE(enums);
    ExportFixture f;
    f.strings();
    f.sql(
        "CREATE TABLE META_DATA_EXPORT (name TEXT, value TEXT);"
        "CREATE TABLE CUPTI_ACTIVITY_KIND_MEMCPY (start INT, end INT, deviceId INT, streamId INT, correlationId INT,"
        " globalPid INT, contextId INT, bytes INT, copyKind INT, srcKind INT, dstKind INT);"
        "CREATE TABLE CUPTI_ACTIVITY_KIND_MEMSET (start INT, end INT, deviceId INT, streamId INT, correlationId INT,"
        " globalPid INT, contextId INT, bytes INT, memKind INT);"
        "CREATE TABLE CUPTI_ACTIVITY_KIND_SYNCHRONIZATION (start INT, end INT, deviceId INT, streamId INT,"
        " correlationId INT, globalPid INT, contextId INT, syncType INT, eventId INT, eventSyncId INT);"
        "CREATE TABLE CUPTI_ACTIVITY_KIND_CUDA_EVENT (timestamp INT, deviceId INT, contextId INT, streamId INT,"
        " correlationId INT, globalPid INT, eventId INT, eventSyncId INT)");
    if (enums) {  // an export that numbers them otherwise is believed
      f.sql(
          "CREATE TABLE ENUM_CUDA_MEMCPY_OPER (id INT, name TEXT, label TEXT);"
          "INSERT INTO ENUM_CUDA_MEMCPY_OPER VALUES (1, 'CUDA_MEMCPY_KIND_DTOH', 'x'),"
          " (11, 'CUDA_MEMCPY_KIND_UVM_HTOD', 'x')");
    }
    const std::string pid = std::to_string(global_id(7));
    f.sql("INSERT INTO CUPTI_ACTIVITY_KIND_MEMCPY VALUES (10, 20, 1, 7, 5, " + pid +
          ", 3, 4096, 1, 0, 2),"
          " (20, 30, 1, 7, 6, " +
          pid + ", 3, 4096, 11, NULL, NULL), (30, 31, 1, 7, 6, " + pid +
          ", 3, 1, 99, 0, 2);"
          "INSERT INTO CUPTI_ACTIVITY_KIND_MEMSET VALUES (40, 50, 1, 7, 8, " +
          pid +
          ", 3, 64, 2);"
          "INSERT INTO CUPTI_ACTIVITY_KIND_CUDA_EVENT VALUES (41, 1, 3, 9, 77, " +
          pid +
          ", 5, 6);"
          "INSERT INTO CUPTI_ACTIVITY_KIND_SYNCHRONIZATION VALUES (42, 43, 0, 7, 9, " +
          pid +
          ", 3, 2, 5, 6),"
          " (44, 48, 0, 4294967295, 10, " +
          pid + ", 3, 4, 0, 0)");
    const Trace trace = std::move(f.read().front());
    REQUIRE(trace.device.size() == 6);
    CHECK(trace.name(trace.device.slice[0]) ==
          (enums ? "Memcpy DtoH (Pageable -> Device)" : "Memcpy HtoD (Pageable -> Device)"));
    CHECK(trace.device.bytes[0] == 4096);
    CHECK(trace.name(trace.device.slice[1]) == "Memcpy HtoD (Unified)");
    CHECK(trace.name(trace.device.slice[2]) == "Memcpy Unknown (Pageable -> Device)");
    CHECK(trace.name(trace.device.slice[3]) == "Memset (Device)");
    CHECK(trace.name(trace.device.slice[4]) == "Stream Wait Event");
    CHECK(trace.kind(trace.device.slice[4]) == SliceKind::sync);
    CHECK(trace.device.device[4] == 1);  // that of its context: the row itself says 0
    CHECK(trace.device.wait_stream[4] == 9);
    CHECK(trace.device.wait_correlation[4] == 77);
    CHECK(trace.name(trace.device.slice[5]) == "Context Sync");
    CHECK(trace.device.stream[5] == kAbsent);
    REQUIRE(trace.instants.size() == 1);
    CHECK(trace.instants.time_ns[0] == 41);
  }
}

TEST_CASE("nsys: torch's ranges become operators, whatever else was said of the call apart") {
  ExportFixture f;
  two_kernels(f);
  f.nvtx_table();
  f.range(10, "90", 59, "aten::linear, seq = 45, op_id = 12, sizes = [[8, 64], []], input_op_ids = [(3,0),(4,1)]");
  f.range(20, "80", 59, "aten::linear, seq = 46, op_id = 13");
  f.range(30, "40", 59, "FSDP::pre_forward (block.1), op_id = 14");
  f.range(31, "39", 59, "c10d::allreduce_, op_id = 15");
  f.range(32, "38", 59, "a, seq = x");
  f.range(33, "NULL", 59, "never ended");
  f.range(5, "500", 60, "epoch");
  f.range(50, "NULL", 34, "loss");
  const Trace trace = std::move(f.read().front());
  REQUIRE(trace.ops.size() == 4);
  const SliceId first = trace.ops.slice[0];
  CHECK(trace.name(first) == "aten::linear");
  CHECK(trace.name(trace.ops.slice[1]) == "aten::linear");
  CHECK(trace.kind(first) == SliceKind::cpu_op);
  CHECK(trace.ops.sequence[0] == 45);
  CHECK(trace.ops.record_function_id[0] == 12);
  CHECK(trace.strings[trace.ops.input_dims[0]] == "[[8,64],[]]");
  CHECK(trace.ops.input_dims[1] == StringId::none);
  CHECK(trace.kind(trace.ops.slice[2]) == SliceKind::user_annotation);
  CHECK(trace.kind(trace.ops.slice[3]) == SliceKind::cpu_op);
  CHECK(trace.kind(slice_named(trace, "a, seq = x")) == SliceKind::user_annotation);
  const SliceId epoch = slice_named(trace, "epoch");
  CHECK(track_of(trace, epoch) == "7/7 ranges");  // it may end anywhere: not among the calls
  REQUIRE(trace.instants.size() == 1);
  CHECK(trace.strings[trace.instants.name[0]] == "loss");
  REQUIRE(issue_of(trace, "open_range") != nullptr);
  CHECK(issue_of(trace, "open_range")->severity == Severity::lost);
}

TEST_CASE("nsys: processes with device work are ranks, by device; the others go with the first") {
  ExportFixture f;
  f.old_schema();
  f.string(1, "gemm");
  f.string(2, "cudaLaunchKernel_v7000");
  f.sql("CREATE TABLE PROCESSES (globalPid INT, pid INT, name TEXT); INSERT INTO PROCESSES VALUES (" +
        std::to_string(global_id(9)) + ", 9, 'worker')");
  f.kernel(100, 200, 5, 8, 1);
  f.kernel(100, 180, 5, 7, 0);
  f.call(90, 95, 5, 2, 8);
  f.call(91, 95, 5, 2, 7);
  f.call(10, 20, 5, 2, 9);  // has no device work, and the same correlation id
  std::vector<Trace> traces = f.read();
  REQUIRE(traces.size() == 2);
  CHECK(traces[0].device.device[0] == 0);
  CHECK(traces[1].device.device[0] == 1);
  CHECK(traces[1].slices.size() == 2);
  REQUIRE(traces[0].slices.size() == 3);
  const SliceId other = static_cast<SliceId>(2);
  CHECK(track_of(traces[0], other) == "9/9");
  CHECK(traces[0].strings[traces[0].tracks.back().process_name] == "worker");
  CHECK(traces[0].launches.size() == 1);
  REQUIRE(derive::derive(traces[0], {}));
  CHECK(traces[0].slices.start_ns[traces[0].device.launch[0]] == 91);
}

TEST_CASE("nsys: payloads of NCCL give groups, sizes and ranks") {
  ExportFixture f;
  two_kernels(f);
  f.nvtx_table();
  f.sql(
      "CREATE TABLE NVTX_PAYLOAD_SCHEMA_ENTRIES (domainId INT, schemaId INT, idx INT, flags INT, type INT, name TEXT,"
      " description TEXT, arrayOrUnionDetail INT, offset INT);"
      "INSERT INTO NVTX_PAYLOAD_SCHEMA_ENTRIES VALUES"
      " (1, 16777218, 0, NULL, 18, 'NCCL communicator ID', NULL, NULL, NULL),"
      " (1, 16777218, 1, NULL, 5, 'No. of ranks', NULL, NULL, 8), (1, 16777218, 2, NULL, 5, 'Rank', NULL, NULL, 12),"
      " (1, 16777220, 0, NULL, 18, 'NCCL communicator ID', NULL, NULL, NULL),"
      " (1, 16777220, 1, NULL, 22, 'Message size [bytes]', NULL, NULL, 8)");
  const std::string one = "0100000000000000", comm = "AB00000000000000";
  f.range(1, "2", 75, "NCCL", 1);
  f.range(20, "40", 59, "ncclAllGather", 1,
          "x'" + one + "0400000100000000" + "1000000000000000" + "3000000000000000" + comm + "0010000000000000'");
  // the same bytes as text, as tools write them that rewrite exports
  f.range(50, "60", 59, "ncclAllReduce", 1,
          "'" + one + "0400000100000000" + "1000000000000000" + "3000000000000000" + comm + "0010000000000000'");
  f.range(5, "6", 59, "ncclCommInitRank", 1,
          "x'" + one + "0200000100000000" + "1000000000000000" + "3000000000000000" + comm + "04000000" + "03000000'");
  f.range(70, "71", 59, "ncclAllReduce", 1, "x'00'");
  const Trace trace = std::move(f.read().front());
  REQUIRE(trace.collectives.size() == 2);
  CHECK(trace.collectives.group_size[0] == 4);
  CHECK(trace.collectives.in_elements[0] == 4096);
  CHECK(trace.collectives.out_elements[0] == 4 * 4096);  // the whole of what is gathered
  CHECK(trace.collectives.in_elements[1] == 4096);
  CHECK(trace.collectives.out_elements[1] == 4096);
  CHECK(trace.rank.rank == 3);
  CHECK(trace.rank.world_size == 4);
  CHECK(trace.rank.source == RankSource::communicator);
  CHECK(trace.kind(slice_named(trace, "ncclAllGather")) == SliceKind::other);  // a library's call, no part of the model
  const std::uint64_t place =
      trace.source.blocks.back().offset + trace.slices.place[slice_named(trace, "ncclAllGather")];
  const auto text = read::reader_named("nsys_sqlite")->event_text(trace, std::span(&place, 1));
  REQUIRE(text);
  CHECK(text->front().find(R"("binaryData": {"NCCL communicator ID": "171", "Message size [bytes]": "4096"})") !=
        std::string::npos);
}

TEST_CASE("nsys: metrics and memory become counters and memory events") {
  ExportFixture f;
  two_kernels(f);
  f.sql(
      "CREATE TABLE GPU_METRICS (timestamp INT, typeId INT, metricId INT, value INT);"
      "CREATE TABLE TARGET_INFO_GPU_METRICS (typeId INT, sourceId INT, typeName TEXT, metricId INT, metricName TEXT);"
      "INSERT INTO TARGET_INFO_GPU_METRICS VALUES (512, 1, 'GA', 3, 'SM Active [Throughput %]');"
      "INSERT INTO GPU_METRICS VALUES (100, 512, 3, 88), (200, 512, 4, 7);"
      "CREATE TABLE NET_NIC_METRIC (start INT, end INT, globalId INT, portId INT, metricsListId INT, metricsIdx INT,"
      " value INT); INSERT INTO NET_NIC_METRIC VALUES (100, 200, 5, 1, 1, 2, 1000);"
      "CREATE TABLE TARGET_INFO_NETWORK_METRICS (metricsListId INT, metricsIdx INT, name TEXT);"
      "INSERT INTO TARGET_INFO_NETWORK_METRICS VALUES (1, 2, 'Bytes sent');"
      "CREATE TABLE CUDA_GPU_MEMORY_USAGE_EVENTS (start INT, globalPid INT, deviceId INT, address INT, bytes INT,"
      " memoryOperationType INT, memKind INT);"
      "INSERT INTO CUDA_GPU_MEMORY_USAGE_EVENTS VALUES (10, NULL, 0, 64, 512, 0, 2), (20, NULL, 0, 64, 512, 1, 2)");
  const Trace trace = std::move(f.read().front());
  REQUIRE(trace.counters.size() == 3);
  CHECK(trace.strings[trace.counters.name[0]] == "SM Active [Throughput %]");
  CHECK(trace.counters.value[0] == 88);
  CHECK(trace.strings[trace.counters.name[1]] == "metric 4");
  CHECK(trace.strings[trace.counters.name[2]] == "Bytes sent");
  REQUIRE(trace.memory.size() == 2);
  CHECK(trace.memory.bytes[0] == 512);
  CHECK(trace.memory.bytes[1] == -512);
}

TEST_CASE("nsys: devices under the numbers of their process; the environment stays where it is") {
  ExportFixture f;
  two_kernels(f);
  f.sql(
      "CREATE TABLE TARGET_INFO_GPU (id INT, name TEXT, smCount INT, maxWarpsPerSm INT, threadsPerWarp INT,"
      " totalMemory INT, computeMajor INT, computeMinor INT);"
      "INSERT INTO TARGET_INFO_GPU VALUES (0, 'other', 1, 1, 1, 1, 1, 1), (3, 'H100', 132, 64, 32, 85899345920, 9, 0);"
      "CREATE TABLE TARGET_INFO_CUDA_DEVICE (gpuId INT, cudaId INT, pid INT);"
      "INSERT INTO TARGET_INFO_CUDA_DEVICE VALUES (3, 0, 7);"
      "CREATE TABLE TARGET_INFO_SESSION_START_TIME (utcEpochNs INT);"
      "INSERT INTO TARGET_INFO_SESSION_START_TIME VALUES (1779782330176752435);"
      "CREATE TABLE TARGET_INFO_SYSTEM_ENV (name TEXT, value TEXT);"
      "INSERT INTO TARGET_INFO_SYSTEM_ENV VALUES ('Hostname', 'node1'), ('EnvVariables', 'API_KEY=secret')");
  const Trace trace = std::move(f.read().front());
  REQUIRE(trace.devices.size() == 1);
  CHECK(trace.devices[0].id == 0);
  CHECK(trace.devices[0].name == "H100");
  CHECK(trace.devices[0].sm_count == 132);
  CHECK(trace.devices[0].max_threads_per_sm == 2048);
  CHECK(trace.clock_base_ns == 1779782330176752435);
  for (const Metadata& each : trace.metadata) CHECK(each.json.find("secret") == std::string::npos);
}

TEST_CASE("nsys: bad rows are counted, never guessed") {
  ExportFixture f;
  two_kernels(f);
  f.kernel(500, 400, 43);
  f.sql(
      "INSERT INTO CUPTI_ACTIVITY_KIND_KERNEL (start, end, demangledName) VALUES (NULL, 5, 1), ('text', 5, 1),"
      " (-9223372036854775807, 5, 1)");
  f.string(3, "bad' || char(1) || x'ff' || '");
  f.call(600, 610, 44, 3);
  const std::vector<Trace> traces = f.read();
  REQUIRE(traces.size() == 1);  // rows that say nothing of when make no rank of their own
  const Trace& trace = traces.front();
  CHECK(trace.device.size() == 3);
  CHECK(issue_of(trace, "negative_duration") != nullptr);
  CHECK(issue_of(trace, "repaired_text") != nullptr);
  REQUIRE(issue_of(trace, "missing_time") != nullptr);
  CHECK(issue_of(trace, "missing_time")->count == 3);
}

TEST_CASE("53: a write-ahead log that was left over is read, and nothing is written") {
  ExportFixture f;
  f.sql("PRAGMA journal_mode=wal; PRAGMA wal_autocheckpoint=0");
  two_kernels(f);
  const TempFolder copy;
  std::filesystem::copy(f.path, copy / "a.sqlite");
  std::filesystem::copy(f.path + "-wal", copy / "a.sqlite-wal");
  const std::string before = whole_file(copy / "a.sqlite"), log = whole_file(copy / "a.sqlite-wal");
  REQUIRE(before.size() < log.size());  // the rows stand in the log only
  const auto traces = read::reader_named("nsys_sqlite")->read(copy / "a.sqlite", {});
  REQUIRE(traces);
  CHECK(traces->front().device.size() == 2);
  CHECK(issue_of(traces->front(), "wal_read") != nullptr);
  CHECK(std::distance(std::filesystem::directory_iterator(copy.path()), {}) == 2);
  CHECK(whole_file(copy / "a.sqlite") == before);
  CHECK(whole_file(copy / "a.sqlite-wal") == log);
}

TEST_CASE("53: a damaged page costs the rest of its table, and the report says so") {
  ExportFixture f;
  two_kernels(f);
  for (int i = 0; i < 2000; i++) f.kernel(1000 + i * 10, 1005 + i * 10, 100 + i);
  const std::size_t whole = 2002;
  f.close();
  {
    std::fstream file(f.path, std::ios::binary | std::ios::in | std::ios::out);
    file.seekp(static_cast<std::streamoff>(std::filesystem::file_size(f.path) / 4096 / 2 * 4096));
    file << std::string(4096, '\xEE');
  }
  const Trace trace = std::move(f.read().front());
  CHECK(trace.device.size() > 0);
  CHECK(trace.device.size() < whole);
  REQUIRE(issue_of(trace, "broken_table") != nullptr);
  CHECK(issue_of(trace, "broken_table")->severity == Severity::lost);
  // cut in its first page there is nothing left to read
  std::filesystem::resize_file(f.path, 700);
  CHECK(f.refused().kind == ErrorKind::malformed);
}

TEST_CASE("53: without any table but those that make an export the trace is empty and says so") {
  ExportFixture f;
  f.sql("CREATE TABLE META_DATA_EXPORT (name TEXT, value TEXT)");
  const std::vector<Trace> traces = f.read();
  REQUIRE(traces.size() == 1);
  CHECK(traces[0].slices.size() == 0);
  CHECK(issue_of(traces[0], "no_events") != nullptr);
}

TEST_CASE("nsys: another SQLite database is refused by the names of its tables") {
  ExportFixture f;
  f.sql("CREATE TABLE runs (id INT); CREATE TABLE metrics (id INT)");
  const Error error = f.refused();
  CHECK(error.kind == ErrorKind::unrecognized);
  CHECK(error.message == "is an SQLite database, but no export of nsys: its tables are runs, metrics");
}

TEST_CASE("nsys: a table that lacks what every row needs is not read, and that is said") {
  ExportFixture f;
  f.sql(
      "CREATE TABLE META_DATA_EXPORT (name TEXT, value TEXT);"
      "CREATE TABLE CUPTI_ACTIVITY_KIND_KERNEL (begin INT, finish INT); INSERT INTO CUPTI_ACTIVITY_KIND_KERNEL"
      " VALUES (1, 2)");
  const Trace trace = std::move(f.read().front());
  CHECK(trace.device.size() == 0);
  REQUIRE(issue_of(trace, "unknown_table_form") != nullptr);
  CHECK(issue_of(trace, "unknown_table_form")->sentence.find("start") != std::string::npos);
}

TEST_CASE("nsys: the hooks' own mark says which rank a process is") {
  for (const bool whole : {true, false}) {
    CAPTURE(whole);
    ExportFixture f;
    two_kernels(f);
    f.nvtx_table();
    f.range(10, "11", 59, whole ? "stepscope.rank: 3 of 8, op_id = 4" : "stepscope.rank: 8 of 8");
    const Trace trace = std::move(f.read().front());
    CHECK(trace.rank.rank == (whole ? 3 : 0));
    CHECK(trace.rank.world_size == (whole ? 8 : 0));
    CHECK(trace.rank.source == (whole ? RankSource::distributed_info : RankSource::order));
  }
}

TEST_CASE("nsys: a report is exported by nsys where there is one, else the sentence gives the command") {
  const TempFolder folder;
  const std::string report = folder / "run.nsys-rep", tool = folder / "nsys", path = std::getenv("PATH");
  std::ofstream(report) << "NVIDIA Tegra Profiler Report 1.\n";
  const read::Reader* reader = read::reader_named("nsys_sqlite");
  REQUIRE(reader->recognizes("NVIDIA Tegra Profiler Report 1.\n"));
  REQUIRE(setenv("PATH", (folder / "").c_str(), 1) == 0);
  const auto refused = reader->read(report, {});
  setenv("PATH", path.c_str(), 1);
  REQUIRE_FALSE(refused);
  CHECK(refused.error().kind == ErrorKind::unsupported);
  CHECK(refused.error().hint.find("nsys export --type sqlite") != std::string::npos);

  ExportFixture f;
  two_kernels(f);
  f.close();
  // stands in for nsys: an older one, which does not know the option for payloads
  std::ofstream(tool) << "#!/bin/sh\n[ \"$1\" = --version ] && exit 0\ncase \"$*\" in *include-blobs*) exit 1;; esac\n"
                         "cp '" +
                             f.path + "' \"$5\"\n";
  chmod(tool.c_str(), 0700);
  setenv("PATH", (folder / "" + ":" + path).c_str(), 1);
  const auto traces = reader->read(report, {});
  setenv("PATH", path.c_str(), 1);
  REQUIRE_MESSAGE(traces, to_text(traces.error()));
  CHECK(traces->front().device.size() == 2);
  CHECK(traces->front().source.path == report);
}
