// The table that all of HTA's analyses start from: the events with a duration and a category, in its order, with its
// columns. Made once per rank; times are microseconds as HTA has them (whole ones where the file has fractions: starts
// are rounded up and ends down, so that a duration may come out as -1).
//
// 56 bytes a row. Rows of the last profiler step are left out as HTA does it unless they were asked for.
#pragma once

#include <cstdint>
#include <memory>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "compat/hta/names.h"
#include "model/trace.h"

namespace stepscope::compat::hta {

inline constexpr std::int64_t kNone = -1;
inline constexpr std::int64_t kNoIteration = -2;  // HTA has NaN there: device work of stream 0

struct Row {
  double ts = 0, dur = 0;  // us; ts counts from the earliest event of all ranks
  std::int64_t stream = kNone;
  std::int64_t correlation = kNone;
  std::int64_t index_correlation = kNone;  // index of the partner; 0: not in the trace; -1: no correlation
  std::int64_t iteration = kNone;
  std::uint32_t index = 0;  // of the slice: HTA counts all events, which gives the same order

  double end() const { return ts + dur; }
};

class EventTable {
 public:
  EventTable(const Trace& trace, std::vector<Row> rows);

  const Trace& trace() const { return *trace_; }
  std::int64_t rank() const { return trace_->rank.rank; }
  const std::vector<Row>& rows() const { return rows_; }
  std::string_view name(const Row& row) const { return trace_->name(static_cast<SliceId>(row.index)); }
  std::string_view category(const Row& row) const;
  KernelType type(const Row& row) const { return types_[static_cast<std::size_t>(name_id(row))]; }
  StringId name_id(const Row& row) const { return trace_->slices.name[row.index]; }
  // The row with this index; nullptr where HTA's filter dropped it.
  const Row* at(std::int64_t index) const;
  // The rows on a stream, in table order.
  std::vector<Row> device_rows() const;
  double duration() const;  // last start - first start

 private:
  const Trace* trace_;
  std::vector<Row> rows_;
  std::vector<std::uint32_t> row_of_;  // by index
  std::vector<KernelType> types_;      // by StringId
};

struct Tables {
  std::vector<EventTable> ranks;  // in rank order
  double min_ts = 0;              // what was subtracted from all times
};

// The table of one trace before ranks are aligned and steps dropped; a trace diff works on that.
std::vector<Row> parsed_rows(const Trace& trace);
Result<std::shared_ptr<const Tables>> make_tables(const Run& run, bool include_last_step);

// N of "ProfilerStep#N"; -1 for other names.
std::int64_t profiler_step(std::string_view name);

}  // namespace stepscope::compat::hta
