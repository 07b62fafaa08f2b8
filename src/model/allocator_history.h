// AllocatorHistory: what follows from a memory snapshot: when each allocation lived, when the allocator held which
// memory of the device, and what the allocations are for. Made by src/snapshot; the snapshot itself says events and an
// end.
//
// A *moment* is a number of events of the device: moment 0 is before its first event, moment n after the n-th. What
// lives in moments [begin, end) came with event begin - 1 and went with event end - 1; kNever: it was there at the end.
// So the state at any moment is one pass over two columns, and needs no replay: 10^7 allocations in some 10 ms.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/column.h"
#include "model/cuda_snapshot.h"
#include "model/memory_category.h"
#include "model/trace.h"

namespace stepscope {

inline constexpr std::uint32_t kNever = 0xffffffff;  // of moments

// Sorted by device; within it those that the trace allocated in the order of its events, the older ones anywhere. 52
// bytes a row.
struct Allocations {
  Column<std::uint64_t> address;
  Column<std::int64_t> bytes;        // as the program asked for them
  Column<std::int64_t> block_bytes;  // what it takes of the allocator's memory; inferred for blocks gone before the end
  Column<std::uint32_t> begin;       // 0: older than the trace
  Column<std::uint32_t> freed;       // by the program; streams may still use it until `end`
  Column<std::uint32_t> end;
  Column<StackId> stack;           // of the allocation
  Column<std::uint32_t> stream;    // index into CudaSnapshot::streams
  Column<std::uint32_t> context;   // index into CudaSnapshot::contexts
  Column<std::uint32_t> pool;      // index into CudaSnapshot::pools
  Column<std::uint16_t> of_class;  // index into AllocatorHistory::classes

  std::size_t size() const { return address.size(); }
  bool alive(std::size_t row, std::uint32_t moment) const { return begin[row] <= moment && moment < end[row]; }
};

// Stretches of memory that the allocator held from the device in moments [begin, end). A segment that grew and shrank
// is several rows.
struct HeldRanges {
  Column<std::uint64_t> address;
  Column<std::int64_t> bytes;
  Column<std::uint32_t> begin, end;
  Column<StackId> stack;  // that asked for it; none: older than the trace
  Column<std::uint32_t> stream, pool;
  Column<std::int8_t> expandable;  // 0, 1; -1: not recorded
  Column<std::int8_t> small;       // of the pool of small blocks; -1: it cannot be told

  std::size_t size() const { return address.size(); }
  bool held(std::size_t row, std::uint32_t moment) const { return begin[row] <= moment && moment < end[row]; }
};

// A range that the program marked (record_function), in moments and in time. Ranges of one name may overlap.
struct MarkedRange {
  StringId name = StringId::none;
  std::int64_t begin_us = 0, end_us = 0;
  std::uint32_t begin = 0, end = kNever;  // events with numbers [begin, end) happened within it
  Phase phase = Phase::other;
};

struct SnapshotStep {
  std::string name;
  std::uint32_t begin = 0, end = 0;  // moments: events [begin, end) are its
};

// What allocations are for, with the evidence. Row 0 is unknown.
struct MemoryClass {
  std::string name;  // that of the category; without one what is known instead: "compiled: 0/1"
  MemoryCategory category = MemoryCategory::unknown;
  std::string evidence;
};

// What did not fit together in the events of a device.
struct HistoryFaults {
  std::uint64_t unknown_frees = 0;  // no fault: of what is older than the trace
  std::int64_t unknown_freed_bytes = 0;
  std::uint64_t lost_frees = 0;   // an address was given again although nothing freed it
  std::uint64_t lost_allocs = 0;  // freed again, or there at the end, although nothing allocated it again
  std::uint64_t not_at_end = 0;   // alive by the events, and not among the blocks at the end
  std::uint64_t no_size = 0;      // events without a size, counted as 0 bytes
  std::uint64_t lost_ranges = 0;  // segments given back or unmapped that do not fit the segments at the end
};

struct SnapshotDevice {
  std::int64_t number = 0;
  SnapshotRows events;             // rows of CudaSnapshot::events
  SnapshotRows allocations;        // rows of AllocatorHistory::allocations
  SnapshotRows ranges;             // rows of AllocatorHistory::ranges
  std::vector<MarkedRange> marks;  // by begin
  std::vector<SnapshotStep> steps;
  std::string step_source;          // sentence: where the steps come from; empty: there are none
  std::vector<std::uint32_t> ooms;  // numbers of events: where memory ran out
  std::int64_t static_bytes = 0;    // blocks that are older than the trace and outlived it
  std::int64_t peak_bytes = 0;      // most held at once by the others, as the program asked for them
  std::uint32_t peak = 0;           // the moment when it was first reached
  HistoryFaults faults;

  std::uint32_t last_moment() const { return events.count; }
};

struct AllocatorHistory {
  Allocations allocations;
  HeldRanges ranges;
  std::vector<SnapshotDevice> devices;  // that have events or segments, by number
  std::vector<MemoryClass> classes;
  Column<std::uint32_t> allocation_of_event;  // row of Allocations; kNoEntry: the event is of none

  // Nothing allocated it in the trace, and nothing freed it.
  bool is_static(std::size_t row) const { return allocations.begin[row] == 0 && allocations.end[row] == kNever; }
};

}  // namespace stepscope
