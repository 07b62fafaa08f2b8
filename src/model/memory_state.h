// MemoryState: what filled the memory of one rank's model while it was trained, by category and module, as the hooks of
// `stepscope run --memory` and SimpleMemoryProfiler measure it (docs/run-folder.md, memory_state.json).
//
// Bytes are of storages, each counted once. A state of memory is a tree for each category: the rows of nodes that have
// anything, parents before children. No trace: it has moments, and no durations.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "model/issue.h"
#include "model/memory_category.h"

namespace stepscope {

inline constexpr std::string_view kMemoryStateFiles = "memory_state";  // the format of its files

using CategoryBytes = std::array<std::int64_t, kMemoryCategories>;
std::int64_t total(const CategoryBytes& bytes);

// A module, a parameter, or what an optimizer has of one.
struct MemoryNode {
  std::string path;          // as the model calls it; [0], the whole, has none
  std::string class_name;    // of a module
  std::uint32_t parent = 0;  // comes before it; [0] is its own
  std::uint32_t depth = 0;
};

struct MemoryTreeRow {
  std::uint32_t node = 0;
  std::int64_t own_bytes = 0;
  std::int64_t total_bytes = 0;  // with the nodes below it
};

struct MemoryTree {
  MemoryCategory category = MemoryCategory::unknown;
  std::vector<MemoryTreeRow> rows;

  std::int64_t bytes() const { return rows.empty() ? 0 : rows.front().total_bytes; }
};

// When something was: at the end of a forward or backward pass, or of a step.
struct MemoryMoment {
  std::int64_t step = 0;
  std::optional<std::int64_t> micro_batch;
  std::string event;  // "begin", "forward", "backward", "step", "asked"
  std::optional<std::int64_t> unix_ns;
};

// Of the allocator of a device and the device itself; each may be unknown.
struct AllocatorFigures {
  std::optional<std::int64_t> allocated_bytes, requested_bytes, rounding_bytes;
  std::optional<std::int64_t> reserved_bytes, inactive_split_bytes;
  std::optional<std::int64_t> peak_allocated_bytes, peak_reserved_bytes;  // since the job reset them
  std::optional<std::int64_t> device_used_bytes, device_total_bytes, non_torch_bytes;
};

struct MemoryPoint {
  MemoryMoment moment;
  CategoryBytes bytes{};
  std::vector<std::pair<std::string, CategoryBytes>> devices;  // where there are several
  std::optional<AllocatorFigures> allocator;
};

struct MemoryLayout {
  MemoryMoment moment;
  std::vector<MemoryTree> trees;  // those with rows, in the order of the categories

  std::int64_t bytes() const;
  const MemoryTree* tree(MemoryCategory category) const;  // null: nothing of it
};

struct MemoryState {
  std::string path;
  std::int64_t rank = 0, world_size = 0;
  std::string rank_source, host, torch;
  std::string device;  // of the model, "cuda:0"
  std::int64_t started_unix_ns = 0;
  std::int64_t steps_wanted = 0, steps_done = 0, steps_left_out = 0;
  bool complete = false;         // all steps that were wanted
  std::string allocator_reason;  // why no point has figures of the allocator
  std::vector<MemoryNode> nodes;
  std::optional<MemoryLayout> peak;  // the moment with most bytes
  std::vector<MemoryLayout> step_peaks, step_ends;
  std::vector<MemoryLayout> largest;  // one for each category: the moment at which it had most, with its tree alone
  std::vector<MemoryPoint> points;
  std::int64_t points_left_out = 0;
  std::vector<std::string> notes;  // what the hooks could not do
  std::vector<Issue> issues;       // what is odd or damaged in the file
};

}  // namespace stepscope
