// What lives at a moment, summed up by what the allocations have in common.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "model/allocator_history.h"
#include "snapshot/state.h"

namespace stepscope::snapshot {

enum class GroupBy : std::uint8_t { stack, of_class, category, evidence, pool, stream, range, context };

// As on the command line: stack, class, category, evidence, pool, stream, range, context.
std::vector<std::string_view> group_names();
std::optional<GroupBy> group_named(std::string_view name);

// "default", "private 0:4"; the number of a stream. Empty: not recorded.
std::string pool_name(const CudaSnapshot& snapshot, std::uint32_t pool);
std::string stream_name(const CudaSnapshot& snapshot, std::uint32_t stream);

struct Group {
  std::string name;      // in words; empty: unknown
  std::string of_class;  // of most of its bytes
  std::uint16_t class_number = 0;
  std::string evidence;           // for that class
  StackId stack = StackId::none;  // of most of its bytes
  std::int64_t bytes = 0;         // as the program asked for them
  std::int64_t block_bytes = 0;   // that they take
  std::uint64_t blocks = 0;
};

// By bytes, the largest first; of equal ones by name.
std::vector<Group> grouped(const CudaSnapshot& snapshot, const AllocatorHistory& history, const SnapshotDevice& device,
                           const State& state, GroupBy by);

}  // namespace stepscope::snapshot
