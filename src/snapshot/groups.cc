#include "snapshot/groups.h"

#include <algorithm>
#include <array>
#include <map>

#include "base/key_index.h"
#include "snapshot/byte_sums.h"
#include "snapshot/marks.h"
#include "snapshot/stack_text.h"

namespace stepscope::snapshot {
namespace {

constexpr std::array<std::string_view, 8> kNames{"stack", "class",  "category", "evidence",
                                                 "pool",  "stream", "range",    "context"};

class Grouping {
 public:
  Grouping(const CudaSnapshot& snapshot, const AllocatorHistory& history, const SnapshotDevice& device, GroupBy by)
      : snapshot_(snapshot), history_(history), device_(device), by_(by) {
    if (by == GroupBy::range) {
      marks_ = innermost_marks(device, [&](const MarkedRange& mark) { return !is_step_mark(snapshot, mark); });
    }
  }

  void add(std::uint32_t row) {
    const std::uint32_t at = keys_[key_of(row)];
    if (at == groups_.size()) {
      groups_.push_back({.name = name_of(row)});
      parts_.emplace_back();
    }
    const Allocations& all = history_.allocations;
    Group& group = groups_[at];
    group.bytes = plus(group.bytes, all.bytes[row]);
    group.block_bytes = plus(group.block_bytes, all.block_bytes[row]);
    group.blocks++;
    std::int64_t& part = parts_[at][{all.stack[row], all.of_class[row]}];
    part = plus(part, all.bytes[row]);
  }

  std::vector<Group> take() {
    for (std::size_t i = 0; i < groups_.size(); i++) {
      const auto most = std::max_element(parts_[i].begin(), parts_[i].end(),
                                         [](const auto& a, const auto& b) { return a.second < b.second; });
      const MemoryClass& found = history_.classes[most->first.second];
      groups_[i].stack = most->first.first;
      groups_[i].class_number = most->first.second;
      groups_[i].of_class = found.name;
      groups_[i].evidence = found.evidence;
    }
    std::stable_sort(groups_.begin(), groups_.end(), [](const Group& a, const Group& b) {
      return a.bytes != b.bytes ? a.bytes > b.bytes : a.name < b.name;
    });
    return std::move(groups_);
  }

 private:
  std::uint64_t key_of(std::uint32_t row) {
    const Allocations& all = history_.allocations;
    switch (by_) {
      case GroupBy::stack:
        return std::uint64_t{has_stack(row)} << 63 | std::uint64_t{is_old(row)} << 62 |
               (has_stack(row) ? static_cast<std::uint64_t>(all.stack[row]) : 0);
      case GroupBy::evidence: return all.of_class[row];
      case GroupBy::of_class: return static_cast<std::uint64_t>(names_.intern(class_of(row).name));
      case GroupBy::category: return static_cast<std::uint64_t>(class_of(row).category);
      case GroupBy::pool: return all.pool[row];
      case GroupBy::stream: return all.stream[row];
      case GroupBy::range: return static_cast<std::uint64_t>(range_of(row));
      case GroupBy::context: return static_cast<std::uint64_t>(context_of(row));
    }
    return 0;
  }

  std::string name_of(std::uint32_t row) const {
    const Allocations& all = history_.allocations;
    switch (by_) {
      case GroupBy::stack:
        if (has_stack(row)) return where_text(snapshot_, all.stack[row]);
        return is_old(row) ? "older than the recording" : "no stack";
      case GroupBy::of_class:
      case GroupBy::evidence: return class_of(row).name;
      case GroupBy::category: return std::string(to_string(class_of(row).category));
      case GroupBy::pool: return pool_name(snapshot_, all.pool[row]);
      case GroupBy::stream: return stream_name(snapshot_, all.stream[row]);
      case GroupBy::range: return std::string(snapshot_.strings[range_of(row)]);
      case GroupBy::context: return std::string(snapshot_.strings[context_of(row)]);
    }
    return "";
  }

  bool has_stack(std::uint32_t row) const { return !snapshot_.frames_of(history_.allocations.stack[row]).empty(); }
  // Of blocks without a stack: they are told apart by what explains it.
  bool is_old(std::uint32_t row) const { return !has_stack(row) && history_.allocations.begin[row] == 0; }

  const MemoryClass& class_of(std::uint32_t row) const { return history_.classes[history_.allocations.of_class[row]]; }

  StringId range_of(std::uint32_t row) const {
    const std::uint32_t begin = history_.allocations.begin[row];
    if (begin == 0 || marks_[begin - 1] == kNoEntry) return StringId::none;
    return device_.marks[marks_[begin - 1]].name;
  }

  StringId context_of(std::uint32_t row) const {
    const std::uint32_t context = history_.allocations.context[row];
    return context == kNoEntry ? StringId::none : snapshot_.contexts[context].compile_context;
  }

  const CudaSnapshot& snapshot_;
  const AllocatorHistory& history_;
  const SnapshotDevice& device_;
  GroupBy by_;
  std::vector<std::uint32_t> marks_;
  StringPool names_;
  KeyIndex keys_;
  std::vector<Group> groups_;
  std::vector<std::map<std::pair<StackId, std::uint16_t>, std::int64_t>> parts_;
};

}  // namespace

std::vector<std::string_view> group_names() { return {kNames.begin(), kNames.end()}; }

std::optional<GroupBy> group_named(std::string_view name) {
  const auto found = std::find(kNames.begin(), kNames.end(), name);
  if (found == kNames.end()) return std::nullopt;
  return static_cast<GroupBy>(found - kNames.begin());
}

std::string pool_name(const CudaSnapshot& snapshot, std::uint32_t pool) {
  if (pool == kNoEntry) return "";
  const MemoryPool& one = snapshot.pools[pool];
  if (one == MemoryPool{}) return "default";
  return "private " + std::to_string(one.first) + ":" + std::to_string(one.second);
}

std::string stream_name(const CudaSnapshot& snapshot, std::uint32_t stream) {
  return stream == kNoEntry ? "" : std::to_string(snapshot.streams[stream]);
}

std::vector<Group> grouped(const CudaSnapshot& snapshot, const AllocatorHistory& history, const SnapshotDevice& device,
                           const State& state, GroupBy by) {
  Grouping grouping(snapshot, history, device, by);
  for (const std::uint32_t row : state.rows) grouping.add(row);
  return grouping.take();
}

}  // namespace stepscope::snapshot
