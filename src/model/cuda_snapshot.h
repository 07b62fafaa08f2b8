// CudaSnapshot: what torch's caching allocator wrote about one process (torch.cuda.memory._dump_snapshot): the memory
// as it is at the end, and the events that led there. Exactly what the file says.
//
// Expected workload: up to some 10^7 events that name 10^2 to 10^5 distinct stacks; an event is 37 bytes in columns.
// The events of a device are consecutive rows in the order of the file, so "the state at event n" is a walk over
// [first, n) from any earlier state that was kept.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <variant>
#include <vector>

#include "base/column.h"
#include "base/string_pool.h"
#include "model/issue.h"

namespace stepscope {

enum class FrameId : std::uint32_t { none = 0xffffffff };
enum class StackId : std::uint32_t { none = 0xffffffff };  // none: the file says nothing about the stack

// Consecutive rows of a table.
struct SnapshotRows {
  std::uint32_t first = 0, count = 0;
};

inline constexpr std::int64_t kNotRecorded = NarrowColumn::absent;  // of sizes, times and numbers
inline constexpr std::uint64_t kNoAddress = ~std::uint64_t{0};
inline constexpr std::uint32_t kNoEntry = 0xffffffff;  // of indexes into streams, pools, contexts

struct SnapshotFrame {
  StringId file = StringId::none;
  StringId function = StringId::none;
  std::int64_t line = kNotRecorded;
  // Of code that torch.fx generated (augment_with_fx_traces).
  StringId fx_op = StringId::none, fx_node = StringId::none, fx_target = StringId::none, fx_trace = StringId::none,
           fx_info = StringId::none;
  friend bool operator==(const SnapshotFrame&, const SnapshotFrame&) = default;
};

// What else the file says about an event; most events share a few of them.
struct EventContext {
  StringId compile_context = StringId::none;
  StringId user_metadata = StringId::none;
  StringId category = StringId::none;  // in snapshots converted from profiler data
  std::uint32_t pool = kNoEntry;       // index into pools
  StackId forward_stack = StackId::none;
  friend bool operator==(const EventContext&, const EventContext&) = default;
};

enum class AllocatorAction : std::uint8_t {
  alloc,
  free_requested,  // by the program; streams may still use the block
  free_completed,  // the block can be given again
  segment_alloc,   // the allocator asks the driver for memory, and gives it back
  segment_free,
  segment_map,  // the same of expandable segments
  segment_unmap,
  oom,
  snapshot,
  other,  // an action that is not known; an issue names it
};

struct AllocatorEvents {
  Column<AllocatorAction> action;
  Column<std::uint64_t> address;  // of oom: bytes that the device had free
  Column<std::int64_t> size_bytes;
  Column<std::int64_t> time_us;  // Unix time in microseconds; kNotRecorded in old files
  Column<std::uint32_t> stream;  // index into streams
  Column<StackId> stack;
  Column<std::uint32_t> context;  // index into contexts; kNoEntry: nothing else is said

  std::size_t size() const { return action.size(); }
  std::size_t bytes() const {
    return action.bytes() + address.bytes() + size_bytes.bytes() + time_us.bytes() + stream.bytes() + stack.bytes() +
           context.bytes();
  }
};

enum class BlockState : std::uint8_t { active, pending_free, inactive, other };

struct SnapshotBlock {
  std::uint64_t address = kNoAddress;  // old files: added up from the segment's and the sizes before
  std::int64_t size_bytes = kNotRecorded, requested_bytes = kNotRecorded;
  StackId stack = StackId::none;  // old files: of the newest entry of its history
  SnapshotRows history;
  BlockState state = BlockState::other;
};

// What lay in a block before, newest first; only in files of torch 2.0 and older.
struct PastAllocation {
  std::uint64_t address = kNoAddress;
  std::int64_t requested_bytes = kNotRecorded;
  StackId stack = StackId::none;
};

// How torch names a pool of memory: by two numbers, {0, 0} for the default one.
struct MemoryPool {
  std::uint64_t first = 0, second = 0;
  friend bool operator==(const MemoryPool&, const MemoryPool&) = default;
};

struct SnapshotSegment {
  std::uint64_t address = kNoAddress;
  std::int64_t total_bytes = kNotRecorded, allocated_bytes = kNotRecorded, active_bytes = kNotRecorded,
               requested_bytes = kNotRecorded;
  std::int64_t device = kNotRecorded;
  std::int64_t registration_counter = kNotRecorded;
  std::uint32_t stream = kNoEntry, pool = kNoEntry;
  StringId type = StringId::none;  // small, large
  StackId stack = StackId::none;
  SnapshotRows blocks;
  std::int8_t expandable = -1;  // -1: not recorded
};

struct SnapshotAnnotation {
  StringId name = StringId::none;
  StringId stage = StringId::none;  // START, END
  std::int64_t device = kNotRecorded;
  std::int64_t time_us = kNotRecorded;
};

struct AllocatorSetting {
  std::string name;  // of a setting with parts: "roundup_power2_divisions.64"
  std::variant<bool, std::int64_t, double, std::string> value;
};

struct CudaSnapshot {
  std::string path;
  std::uint64_t text_bytes = 0;  // of the pickle, not packed
  std::uint64_t file_bytes = 0;
  bool compressed = false;
  int protocol = 0;

  StringPool strings;
  Column<SnapshotFrame> frames;        // each distinct one once
  Column<std::uint64_t> stack_begin;   // into stack_frames; one more than there are stacks
  Column<FrameId> stack_frames;        // innermost first, as in the file
  Column<EventContext> contexts;       // each distinct one once
  std::vector<std::uint64_t> streams;  // each distinct one once, as the allocator calls them (0: the default one)
  Column<MemoryPool> pools;            // each distinct one once

  AllocatorEvents events;
  std::vector<SnapshotRows> devices;  // rows of events of each device; two may share them
  bool has_traces = false;            // false: nothing was recorded (`devices` is empty)
  Column<SnapshotSegment> segments;   // those that the snapshot has; their blocks are `blocks`
  Column<SnapshotBlock> blocks;
  Column<PastAllocation> history;
  Column<SnapshotAnnotation> annotations;
  std::vector<AllocatorSetting> settings;
  std::vector<Issue> issues;

  std::size_t stacks() const { return stack_begin.empty() ? 0 : stack_begin.size() - 1; }
  std::span<const FrameId> frames_of(StackId stack) const {
    if (stack == StackId::none) return {};
    const auto at = static_cast<std::size_t>(stack);
    return stack_frames.span().subspan(stack_begin[at], stack_begin[at + 1] - stack_begin[at]);
  }
};

}  // namespace stepscope
