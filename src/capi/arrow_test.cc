// Tables of hand-made traces, read back through the C structs as a consumer would.
#include "stepscope/arrow.h"

#include <doctest/doctest.h>

#include <cstring>
#include <limits>
#include <map>

#include "capi/arrow_source.h"

using namespace stepscope;
using capi::alive;

namespace {

const tables::TableSpec& spec(std::string_view name) {
  for (const tables::TableSpec& one : tables::model_tables()) {
    if (one.name == name) return one;
  }
  FAIL("no such table");
  return tables::model_tables()[0];
}

// Two slices on one track, the second inside the first, and a kernel on a device track.
Trace small_trace(std::int64_t rank, std::string_view op = "aten::mm") {
  Trace trace;
  trace.rank.rank = rank;
  const auto host = trace.strings.intern("cpu_op"), gpu = trace.strings.intern("kernel");
  trace.strings.intern("never used by a slice");
  trace.categories = {{host, SliceKind::cpu_op}, {gpu, SliceKind::kernel}};
  trace.tracks.resize(2);
  trace.tracks[0].process = trace.strings.intern("77");
  trace.tracks[0].thread = trace.strings.intern("78");
  trace.tracks[1].process = trace.strings.intern("0");
  trace.tracks[1].device = true;
  Slices& s = trace.slices;
  const auto add = [&](std::string_view name, std::int64_t start, std::int64_t dur, int track, SliceId parent) {
    s.start_ns.push_back(start);
    s.dur_ns.push_back(dur);
    s.name.push_back(trace.strings.intern(name));
    s.track.push_back(static_cast<TrackId>(track));
    s.category.push_back(static_cast<CategoryId>(track));
    s.place.push_back(0);
    s.parent.push_back(parent);
    s.depth.push_back(parent == SliceId::none ? 0 : 1);
    s.phase.push_back(static_cast<std::uint8_t>(Phase::forward));
  };
  add(op, 1'000, 500, 0, SliceId::none);
  add("aten::empty", 1'100, 10, 0, static_cast<SliceId>(0));
  add("gemm", 1'400, std::int64_t{1} << 40, 1, SliceId::none);
  return trace;
}

std::shared_ptr<const Run> make_run(std::vector<Trace> traces) {
  auto run = std::make_shared<Run>();
  run->traces = std::move(traces);
  return run;
}

std::vector<Trace> two_ranks() {
  std::vector<Trace> traces;
  traces.push_back(small_trace(0));
  traces.push_back(small_trace(1, "aten::addmm"));
  return traces;
}

// A consumer: takes the whole stream and looks columns up by name.
struct Taken {
  ArrowSchema schema{};
  std::vector<ArrowArray> batches;

  explicit Taken(ArrowArrayStream stream) {
    REQUIRE(stream.get_schema(&stream, &schema) == 0);
    for (ArrowArray batch; stream.get_next(&stream, &batch) == 0 && batch.release != nullptr;) batches.push_back(batch);
    stream.release(&stream);
  }
  ~Taken() {
    for (ArrowArray& batch : batches) batch.release(&batch);
    schema.release(&schema);
  }
  Taken(const Taken&) = delete;
  Taken& operator=(const Taken&) = delete;

  std::size_t index(std::string_view name) const {
    for (std::int64_t i = 0; i < schema.n_children; i++) {
      if (schema.children[i]->name == name) return static_cast<std::size_t>(i);
    }
    FAIL("no column ", std::string(name));
    return 0;
  }
  const ArrowArray& column(std::size_t batch, std::string_view name) const {
    return *batches[batch].children[index(name)];
  }
  std::string format(std::string_view name) const { return schema.children[index(name)]->format; }
};

bool valid(const ArrowArray& array, std::size_t row) {
  const auto* bits = static_cast<const std::uint8_t*>(array.buffers[0]);
  return bits == nullptr || ((bits[row / 8] >> (row % 8)) & 1) != 0;
}
template <class T>
T at(const ArrowArray& array, std::size_t row) {
  return static_cast<const T*>(array.buffers[1])[row];
}
std::string text(const ArrowArray& array, std::size_t row) {
  if (array.dictionary != nullptr)
    return text(*array.dictionary, static_cast<std::size_t>(at<std::int32_t>(array, row)));
  const auto* ends = static_cast<const std::int64_t*>(array.buffers[1]);
  return {static_cast<const char*>(array.buffers[2]) + ends[row], static_cast<std::size_t>(ends[row + 1] - ends[row])};
}

// Arrow's metadata encoding, read back.
std::map<std::string, std::string> metadata(const char* at) {
  std::map<std::string, std::string> found;
  const auto number = [&] {
    std::int32_t value;
    std::memcpy(&value, at, 4);
    at += 4;
    return value;
  };
  const auto word = [&] {
    const std::int32_t size = number();
    std::string value(at, static_cast<std::size_t>(size));
    at += size;
    return value;
  };
  for (std::int32_t left = number(); left > 0; left--) {
    const std::string key = word();
    found[key] = word();
  }
  return found;
}

}  // namespace

TEST_CASE("slices leave as Arrow with their strings, nulls, units and meanings") {
  const std::int64_t before = alive();
  {
    const Taken taken(capi::make_stream(capi::model_source(spec("slices"), make_run(two_ranks()))));
    REQUIRE(taken.batches.size() == 2);
    CHECK(std::string(taken.schema.format) == "+s");
    CHECK(metadata(taken.schema.metadata)["stepscope.table"] == "slices");
    CHECK(metadata(taken.schema.children[taken.index("dur_ns")]->metadata)["unit"] == "ns");
    CHECK_FALSE(metadata(taken.schema.children[taken.index("parent")]->metadata)["meaning"].empty());
    CHECK(taken.batches[1].length == 3);
    CHECK(at<std::int64_t>(taken.column(0, "rank"), 2) == 0);
    CHECK(at<std::int64_t>(taken.column(1, "rank"), 0) == 1);
    CHECK(at<std::int64_t>(taken.column(0, "dur_ns"), 2) == std::int64_t{1} << 40);
    CHECK(text(taken.column(0, "name"), 0) == "aten::mm");
    CHECK(text(taken.column(1, "name"), 0) == "aten::addmm");
    CHECK(text(taken.column(0, "category"), 2) == "kernel");
    CHECK(text(taken.column(0, "kind"), 0) == "cpu_op");
    CHECK(text(taken.column(0, "phase"), 0) == "forward");
    CHECK(text(taken.column(0, "thread"), 0) == "78");
    CHECK_FALSE(valid(taken.column(0, "thread"), 2));  // the device track has no thread
    CHECK(taken.column(0, "parent").null_count == 2);
    CHECK(valid(taken.column(0, "parent"), 1));
    CHECK(at<std::uint32_t>(taken.column(0, "parent"), 1) == 0);
    CHECK(taken.column(0, "start_ns").null_count == 0);
    CHECK(taken.column(0, "start_ns").buffers[0] == nullptr);
  }
  CHECK(alive() == before);
}

TEST_CASE("a column that is stored as Arrow wants it is not copied") {
  const auto run = make_run(two_ranks());
  const Taken taken(capi::make_stream(capi::model_source(spec("slices"), run)));
  CHECK(taken.column(1, "start_ns").buffers[1] == run->traces[1].slices.start_ns.data());
  CHECK(taken.column(1, "parent").buffers[1] == static_cast<const void*>(run->traces[1].slices.parent.data()));
}

TEST_CASE("a dictionary holds the texts of its column only, and is the same in every batch") {
  const Taken taken(capi::make_stream(capi::model_source(spec("slices"), make_run(two_ranks()))));
  const ArrowArray& first = *taken.column(0, "name").dictionary;
  const ArrowArray& second = *taken.column(1, "name").dictionary;
  CHECK(first.length == 4);  // aten::mm, aten::empty, gemm, aten::addmm
  CHECK(first.buffers[2] == second.buffers[2]);
  CHECK(taken.column(0, "category").dictionary->length == 2);
}

TEST_CASE("batches outlive the run, the stream and their parent array") {
  const std::int64_t before = alive();
  auto run = make_run(two_ranks());
  const std::weak_ptr<const Run> watch = run;
  ArrowArrayStream stream = capi::make_stream(capi::model_source(spec("slices"), std::move(run)));
  ArrowArray batch{};
  REQUIRE(stream.get_next(&stream, &batch) == 0);
  stream.release(&stream);
  CHECK((stream.release == nullptr));

  ArrowArray moved = *batch.children[2];  // as the interface allows: take a child, release the rest
  batch.children[2]->release = nullptr;
  batch.release(&batch);
  CHECK_FALSE(watch.expired());
  CHECK(at<std::int64_t>(moved, 1) == 1'100);
  moved.release(&moved);
  CHECK(watch.expired());
  CHECK(alive() == before);
}

TEST_CASE("traces without rows, without derived columns and runs without traces give well-formed tables") {
  for (const tables::TableSpec& table : tables::model_tables()) {
    CAPTURE(table.name);
    const Taken none(capi::make_stream(capi::model_source(table, make_run({}))));
    CHECK(none.batches.empty());
    if (table.traces != &Run::traces) continue;  // what lies beside them
    std::vector<Trace> empty(1);
    const Taken zero(capi::make_stream(capi::model_source(table, make_run(std::move(empty)))));
    REQUIRE(zero.batches.size() == 1);
    CHECK(zero.batches[0].length == 0);
    for (std::int64_t i = 0; i < zero.batches[0].n_children; i++) {
      CHECK(zero.batches[0].children[i]->buffers[1] != nullptr);
    }
  }
  std::vector<Trace> traces;
  traces.push_back(small_trace(0));
  traces[0].slices.parent.clear();
  traces[0].slices.depth.clear();
  traces[0].slices.phase.clear();
  const Taken taken(capi::make_stream(capi::model_source(spec("slices"), make_run(std::move(traces)))));
  for (const char* name : {"parent", "depth", "phase"}) CHECK(taken.column(0, name).null_count == 3);
}

TEST_CASE("invalid UTF-8 and ids out of range stay inside the table") {
  std::vector<Trace> traces;
  traces.push_back(small_trace(0, "bad \xff\xc3 name"));
  traces[0].slices.track[0] = static_cast<TrackId>(999);
  traces[0].slices.category[1] = CategoryId::none;
  const Taken taken(capi::make_stream(capi::model_source(spec("slices"), make_run(std::move(traces)))));
  CHECK(text(taken.column(0, "name"), 0) == "bad \xef\xbf\xbd\xef\xbf\xbd name");
  CHECK_FALSE(valid(taken.column(0, "process"), 0));
  CHECK_FALSE(valid(taken.column(0, "category"), 1));
}

TEST_CASE("device work: class and family from the rule, absent values as nulls") {
  Trace trace = small_trace(3);
  trace.class_rules = {{}, {"gemm_names", "gemm", "GEMM", DeviceClass::compute, "Names of matrix products."}};
  DeviceRows& d = trace.device;
  for (const SliceId launch : {static_cast<SliceId>(0), SliceId::none}) {
    d.slice.push_back(static_cast<SliceId>(2));
    for (NarrowColumn* ids : {&d.correlation, &d.external_id, &d.bytes, &d.wait_stream, &d.wait_correlation}) {
      ids->push_back(kAbsent);
    }
    d.device.push_back(-1);
    d.stream.push_back(7);
    for (int axis = 0; axis < 3; axis++) {
      d.grid[axis].push_back(0);
      d.block[axis].push_back(128);
    }
    d.registers.push_back(DeviceRows::kNoCount);
    d.shared_bytes.push_back(0);
    for (Column<float>* share : {&d.blocks_per_sm, &d.warps_per_sm, &d.occupancy_percent}) {
      share->push_back(std::numeric_limits<float>::quiet_NaN());
    }
    d.launch.push_back(launch);
    d.op.push_back(SliceId::none);
    d.step.push_back(launch == SliceId::none ? StepId::none : static_cast<StepId>(1));
    d.phase.push_back(static_cast<std::uint8_t>(Phase::backward));
    d.device_class.push_back(launch == SliceId::none ? 0 : static_cast<std::uint8_t>(DeviceClass::compute));
    d.rule.push_back(launch == SliceId::none ? 0 : 1);
  }
  std::vector<Trace> traces;
  traces.push_back(std::move(trace));
  const Taken taken(capi::make_stream(capi::model_source(spec("device_work"), make_run(std::move(traces)))));
  CHECK(text(taken.column(0, "name"), 0) == "gemm");
  CHECK(text(taken.column(0, "family"), 0) == "GEMM");
  CHECK(text(taken.column(0, "rule"), 0) == "gemm_names");
  CHECK(text(taken.column(0, "class"), 0) == "compute");
  CHECK(text(taken.column(0, "class"), 1) == "unclassified");
  CHECK_FALSE(valid(taken.column(0, "family"), 1));
  CHECK(at<std::uint32_t>(taken.column(0, "step"), 0) == 1);
  CHECK(text(taken.column(0, "phase"), 0) == "backward");
  CHECK_FALSE(valid(taken.column(0, "step"), 1));
  CHECK(taken.column(0, "device").null_count == 2);
  CHECK(taken.column(0, "grid_x").null_count == 2);
  CHECK(taken.column(0, "block_x").null_count == 0);
  CHECK(taken.column(0, "registers").null_count == 2);
  CHECK(at<std::uint32_t>(taken.column(0, "shared_bytes"), 0) == 0);
  CHECK(taken.column(0, "occupancy_percent").null_count == 2);
  CHECK(taken.format("occupancy_percent") == "f");
  CHECK(taken.format("stream") == "l");
}

TEST_CASE("answers leave as Arrow, unknown values as nulls") {
  const std::int64_t before = alive();
  Table table{"by_name",
              {{"name", ValueType::text, Unit::none, "A name."},
               {"total_ns", ValueType::integer, Unit::ns, "A time."},
               {"share", ValueType::real, Unit::ratio, "A share."},
               {"hidden", ValueType::boolean, Unit::none, "A fact."}},
              {}};
  table.rows.resize(3);
  const std::vector<Value> full{std::string("gemm"), std::int64_t{5}, 0.5, true};
  table.rows[0] = full;
  table.rows[1] = {Value(), Value(), std::int64_t{1}, false};
  table.rows[2].emplace_back(std::string("short row"));
  {
    const auto shared = std::make_shared<const Table>(std::move(table));
    const Taken taken(capi::make_stream(capi::value_source("answers.kernels.by_name", "Which kernels?", shared)));
    REQUIRE(taken.batches.size() == 1);
    CHECK(taken.batches[0].length == 3);
    CHECK(text(taken.column(0, "name"), 0) == "gemm");
    CHECK_FALSE(valid(taken.column(0, "name"), 1));
    CHECK(text(taken.column(0, "name"), 2) == "short row");
    CHECK(at<std::int64_t>(taken.column(0, "total_ns"), 0) == 5);
    CHECK(taken.column(0, "total_ns").null_count == 2);
    CHECK(at<double>(taken.column(0, "share"), 1) == 1.0);
    CHECK(taken.column(0, "hidden").null_count == 1);
    CHECK((at<std::uint8_t>(taken.column(0, "hidden"), 0) & 3) == 1);
    CHECK(metadata(taken.schema.children[2]->metadata)["unit"] == "ratio");
  }
  Series series{"memory", Unit::bytes, {}, {}};
  series.t_ns = {1, 2, 3};
  series.v = {1.0, std::numeric_limits<double>::quiet_NaN(), 3.0};
  {
    const auto shared = std::make_shared<const Series>(std::move(series));
    const Taken taken(capi::make_stream(capi::series_source("answers.x.series.memory", shared)));
    CHECK(taken.column(0, "v").null_count == 1);
    CHECK(at<double>(taken.column(0, "v"), 2) == 3.0);
    CHECK(taken.column(0, "t_ns").buffers[1] == shared->t_ns.data());
  }
  CHECK(alive() == before);
}
