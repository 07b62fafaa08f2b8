// MemoryTimeline: what torch.profiler's export_memory_timeline wrote of one device: bytes by category over time.
#pragma once

#include <array>
#include <cstdint>

#include "base/column.h"
#include "model/memory_category.h"

namespace stepscope {

// By the numbers of the files. The other form of the file has levels instead of actions.
enum class TimelineAction : std::uint8_t { level, preexisting, create, increment_version, destroy };
inline constexpr std::size_t kTimelineActions = 5;
std::string_view to_string(TimelineAction action);

// torch's categories, by the numbers of the files: PARAMETER, OPTIMIZER_STATE, INPUT, TEMPORARY, ACTIVATION, GRADIENT,
// AUTOGRAD_DETAIL and none.
inline constexpr std::size_t kTimelineCategories = 8;
std::string_view timeline_category_name(std::size_t number);  // as torch calls it; "" beyond
MemoryCategory timeline_category(std::size_t number);         // as we do

// Changes in the order of the file. 26 bytes a row.
struct MemoryTimeline {
  Column<std::int64_t> time_ns;  // of the profiler's clock; absent: before the recording
  Column<std::int64_t> bytes;    // what it adds to its category
  Column<TimelineAction> action;
  Column<std::uint8_t> category;  // torch's number

  std::size_t size() const { return time_ns.size(); }
};

}  // namespace stepscope
