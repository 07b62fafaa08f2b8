// Process: one process of a file, on its way to be one Trace. The files beside this one turn its records into rows.
#pragma once

#include <string>
#include <unordered_map>
#include <unordered_set>
#include <utility>
#include <vector>

#include "read/rocprof_json/names.h"
#include "read/trace_rows.h"

namespace stepscope::read::rocprof {

class Process : public TraceRows {
 public:
  Process(std::string path, const Names& names) : TraceRows(std::move(path)), names_(names) {}

  static bool shows(std::string_view table);
  void take_metadata(const Record& metadata);
  // A record of a table that is shown; it stands at byte `place`.
  void take(std::string_view table, const Record& record, std::uint64_t place);
  void finish();  // after all records

 private:
  struct Times {
    std::int64_t start_ns, end_ns;
  };
  struct Dispatch {
    Field info, correlation, stream;
    Field registers;  // beside the counters, where the kernel's symbol does not tell
    Times times;
  };
  struct Allocation {
    MemoryRow row;
    bool frees;
  };

  // device_work.cc
  void take_kernel(const Record& record, std::uint64_t place);
  void take_counters(const Record& record, std::uint64_t place);
  void take_copy(const Record& record, std::uint64_t place);
  SliceId add_kernel(const Dispatch& at, std::uint64_t place);
  StringId kernel_name(std::int64_t id);
  StringId counter_name(std::int64_t id);
  TrackId work_lane(DeviceRow& row, const Field& queue, const Field& stream_id);
  // host_work.cc
  void take_call(std::string_view table, const Record& record, std::uint64_t place);
  void take_marker(const Record& record, std::uint64_t place);
  void take_scratch(const Record& record, std::uint64_t place);
  void take_allocation(const Record& record);
  void add_allocations();
  void link_through_hsa();

  static Times times_of(const Field& start, const Field& end);
  std::string_view operation_of(const Record& record);
  std::int64_t device_of(const Field& agent_id);  // kAbsent: the host, or an agent that the file does not list
  TrackId thread(const Record& record, std::string_view suffix = "");

  const Names& names_;
  std::string pid_, program_;
  bool by_queue_ = false;  // streams were not recorded
  std::int64_t last_tid_ = kAbsent;
  TrackId last_thread_ = TrackId::none;
  std::vector<Allocation> allocations_;
  std::unordered_set<std::int64_t> counted_;                // dispatches that are kernels already, from their counters
  std::unordered_map<std::int64_t, std::int64_t> callers_;  // HSA calls that copy → the call that they were made in
};

}  // namespace stepscope::read::rocprof
