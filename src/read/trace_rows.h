// TraceRows: a trace that is being read row by row. What every reader of a profiler's tables does alike: texts become
// clean and are pooled, lanes and categories are made once, rows without usable times are left out and counted.
//
// Readers of one format build on it with what that format knows of processes, names and places.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>

#include "model/range_name.h"
#include "model/trace.h"

namespace stepscope::read {

struct DeviceRow {
  std::int64_t correlation = kAbsent;
  std::int64_t device = kAbsent, stream = kAbsent;
  std::int64_t grid[3] = {0, 0, 0}, block[3] = {0, 0, 0};
  std::int64_t registers = kAbsent, shared_bytes = kAbsent, bytes = kAbsent;
  std::int64_t wait_stream = kAbsent, wait_correlation = kAbsent;
};

struct MemoryRow {
  std::int64_t time_ns = 0;
  std::int64_t bytes = 0;  // negative: freed
  std::int64_t address = 0;
  std::int64_t device = kAbsent;
  std::int16_t device_type = -1;  // as torch's c10::DeviceType
};

class TraceRows {
 public:
  explicit TraceRows(std::string file) : file_(std::move(file)) {}

  Trace trace;

  StringId text(std::string_view bytes);  // any bytes
  CategoryId category(std::string_view name) { return category(name, slice_kind(name)); }
  CategoryId category(std::string_view name, SliceKind kind);
  TrackId add_track(const Track& track);
  TrackId lane(std::string_view process, std::string_view thread);  // found by its texts: counters, host threads
  TrackId device_lane(std::int64_t device, std::string_view name);  // what is said of a device, beside its work
  // `word`: what the format calls it, "stream" or "queue".
  TrackId stream(std::int64_t device, std::int64_t stream, std::string_view word = "stream");

  // none: the row has no usable times and was left out, which is noted. `place` as in Slices, counted from 0.
  SliceId add_slice(std::uint64_t place, std::int64_t start_ns, std::int64_t end_ns, StringId name, TrackId track,
                    CategoryId category);
  bool add_instant(std::uint64_t place, std::int64_t time_ns, StringId name, TrackId track, CategoryId category);
  void add_device_row(SliceId slice, const DeviceRow& row);
  void add_launch(SliceId slice, std::int64_t correlation);
  void add_op(SliceId slice, const RangeName& range);
  void add_counter(std::int64_t time_ns, StringId name, StringId key, TrackId track, double value);
  void add_memory(const MemoryRow& row);

  void note(std::string_view code, Severity severity, std::string_view sentence, std::string_view advice = "",
            std::optional<std::uint64_t> offset = std::nullopt);
  void note_repaired_texts();  // after all rows

 private:
  bool usable_time(std::int64_t time_ns);
  std::uint32_t place_in_block(std::uint64_t place);

  std::string file_;
  std::unordered_map<std::string, CategoryId> categories_;
  std::unordered_map<std::string, TrackId> lanes_;
  std::map<std::pair<std::int64_t, std::int64_t>, TrackId> streams_;
  std::uint64_t repaired_texts_ = 0;
};

}  // namespace stepscope::read
