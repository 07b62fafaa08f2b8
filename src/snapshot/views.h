// The devices of a run's snapshots, and what the tables about them have in common.
#pragma once

#include <cstdint>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "model/allocator_history.h"
#include "model/answer.h"

namespace stepscope::snapshot {

// One device of one snapshot; all of it lives in the run.
struct View {
  std::int64_t number = 0;  // of the snapshot in the run
  const Trace* trace = nullptr;
  const SnapshotDevice* device = nullptr;

  const CudaSnapshot& snapshot() const { return *trace->snapshot; }
  const AllocatorHistory& history() const { return *trace->snapshot_history; }
  std::string device_name() const { return "cuda:" + std::to_string(device->number); }
};

std::vector<View> views_of(const Run& run);

// A table whose rows begin with the snapshot, the rank and the device.
Table table_of(std::string_view name, std::vector<TableColumn> columns);
std::vector<Value> row_of(const View& view, std::vector<Value> cells);

// Stacks that tables name by number, collected to be told in full.
class ToldStacks {
 public:
  // The number as a cell; unknown where there is no stack.
  Value tell(const View& view, StackId stack);
  Table table() const;

 private:
  std::set<std::pair<std::int64_t, StackId>> told_;  // by number of the snapshot
  std::vector<std::pair<View, StackId>> stacks_;
};

Value moment_time(const View& view, std::uint32_t moment);   // Unix ns
Value moment_event(const View& view, std::uint32_t moment);  // number of the event before it; unknown: none
Value moment_step(const View& view, std::uint32_t moment);
Value moment_range(const View& view, std::uint32_t moment);  // innermost mark around that event

}  // namespace stepscope::snapshot
