// Specs of the tables of what follows from memory snapshots, allocations and held memory, and of memory timelines. One
// batch per file of Run::snapshots; `snapshot` is its number there.
#include "tables/snapshot_parts.h"

namespace stepscope::tables {
namespace {

const SnapshotDevice* device_of_allocation(const Trace& trace, std::size_t row) {
  for (const SnapshotDevice& device : history(trace).devices) {
    if (row >= device.allocations.first && row - device.allocations.first < device.allocations.count) return &device;
  }
  return nullptr;
}

// Of moments: the number of the event that led to it.
std::int64_t event_of(std::uint32_t moment) {
  return moment == 0 || moment == kNever ? kAbsent : std::int64_t{moment} - 1;
}

template <auto Member>
IntegerAt allocation_event() {
  return [](const Trace& trace, std::size_t row) { return event_of((history(trace).allocations.*Member)[row]); };
}

template <auto Member>
IntegerAt allocation_time() {
  return [](const Trace& trace, std::size_t row) {
    const std::int64_t event = event_of((history(trace).allocations.*Member)[row]);
    const SnapshotDevice* device = device_of_allocation(trace, row);
    if (event == kAbsent || device == nullptr) return kAbsent;
    return micro_to_nano(said(trace).events.time_us[device->events.first + static_cast<std::size_t>(event)]);
  };
}

template <auto Member>
Codes class_text() {
  return {
      [](const Trace& trace, std::size_t row) {
        return static_cast<std::uint32_t>(history(trace).allocations.of_class[row]);
      },
      [](const Trace& trace) { return history(trace).classes.size(); },
      [](const Trace& trace, std::uint32_t code) { return std::string_view(history(trace).classes[code].*Member); }};
}

Codes category_name() {
  return {
      [](const Trace& trace, std::size_t row) {
        return static_cast<std::uint32_t>(history(trace).classes[history(trace).allocations.of_class[row]].category);
      },
      [](const Trace&) { return kMemoryCategories; },
      [](const Trace&, std::uint32_t code) { return to_string(static_cast<MemoryCategory>(code)); }};
}

std::int64_t range_device(const Trace& trace, std::size_t row) {
  for (const SnapshotDevice& device : history(trace).devices) {
    if (row >= device.ranges.first && row - device.ranges.first < device.ranges.count) return device.number;
  }
  return kAbsent;
}

}  // namespace

TableSpec snapshot_allocations_table() {
  return {"snapshot_allocations",
          "Memory snapshots: each allocation with its lifetime and what it is for; those older than the recording too.",
          +[](const Trace& trace) { return history(trace).allocations.size(); },
          {rank_column(),
           file_column(),
           row_number_column("allocation", "Number of the row in its snapshot."),
           {"device", Unit::none, "Device, as the process numbers it.",
            +[](const Trace& trace, std::size_t row) {
              const SnapshotDevice* device = device_of_allocation(trace, row);
              return device == nullptr ? kAbsent : device->number;
            }},
           {"address", Unit::none, "Address as a signed 64-bit number.",
            +[](const Trace& trace, std::size_t row) {
              return static_cast<std::int64_t>(history(trace).allocations.address[row]);
            }},
           {"bytes", Unit::bytes, "As the program asked for them.",
            +[](const Trace& trace, std::size_t row) { return history(trace).allocations.bytes[row]; }},
           {"block_bytes", Unit::bytes, "What it takes of the allocator's memory; inferred for what was freed.",
            +[](const Trace& trace, std::size_t row) { return history(trace).allocations.block_bytes[row]; }},
           {"alloc_event", Unit::none, "Event that made it; null: it is older than the recording.",
            allocation_event<&Allocations::begin>()},
           {"freed_event", Unit::none, "Event with which the program freed it; null: not in the recording.",
            allocation_event<&Allocations::freed>()},
           {"end_event", Unit::none, "Event from which on the block could be given again; null: alive at the end.",
            allocation_event<&Allocations::end>()},
           {"alloc_t_ns", Unit::unix_ns, "When it was made.", allocation_time<&Allocations::begin>()},
           {"end_t_ns", Unit::unix_ns, "When it ended.", allocation_time<&Allocations::end>()},
           {"class", Unit::none, "What it is for: its category, else what is known instead.",
            class_text<&MemoryClass::name>()},
           {"category", Unit::none, "Category; unknown where the evidence gives none.", category_name()},
           {"why", Unit::none, "The evidence; empty: there is none.", class_text<&MemoryClass::evidence>()},
           {"stream", Unit::none, kStreamMeaning,
            +[](const Trace& trace, std::size_t row) {
              return stream_number(trace, history(trace).allocations.stream[row]);
            }},
           {"pool_first", Unit::none, "Memory pool: 0 and 0 is the default one.",
            +[](const Trace& trace, std::size_t row) {
              return pool_part(trace, history(trace).allocations.pool[row], false);
            }},
           {"pool_second", Unit::none, "The other number of the pool.",
            +[](const Trace& trace, std::size_t row) {
              return pool_part(trace, history(trace).allocations.pool[row], true);
            }},
           {"stack", Unit::none, kStackMeaning,
            +[](const Trace& trace, std::size_t row) { return number(history(trace).allocations.stack[row]); }}},
          &Run::snapshots};
}

TableSpec snapshot_held_table() {
  return {
      "snapshot_held",
      "Memory snapshots: memory that the allocator held from the device, and from which event to which.",
      +[](const Trace& trace) { return history(trace).ranges.size(); },
      {rank_column(),
       file_column(),
       {"device", Unit::none, "Device, as the process numbers it.", range_device},
       {"address", Unit::none, "Address as a signed 64-bit number.",
        +[](const Trace& trace, std::size_t row) {
          return static_cast<std::int64_t>(history(trace).ranges.address[row]);
        }},
       {"bytes", Unit::bytes, "Bytes.",
        +[](const Trace& trace, std::size_t row) { return history(trace).ranges.bytes[row]; }},
       {"begin_event", Unit::none, "Event that asked for it; null: it is older than the recording.",
        +[](const Trace& trace, std::size_t row) { return event_of(history(trace).ranges.begin[row]); }},
       {"end_event", Unit::none, "Event that gave it back; null: held at the end.",
        +[](const Trace& trace, std::size_t row) { return event_of(history(trace).ranges.end[row]); }},
       {"stream", Unit::none, kStreamMeaning,
        +[](const Trace& trace, std::size_t row) { return stream_number(trace, history(trace).ranges.stream[row]); }},
       {"expandable", Unit::none, "Of an expandable segment: 1, else 0; null: not recorded.",
        +[](const Trace& trace, std::size_t row) {
          const std::int8_t known = history(trace).ranges.expandable[row];
          return known < 0 ? kAbsent : std::int64_t{known};
        }},
       {"stack", Unit::none, kStackMeaning,
        +[](const Trace& trace, std::size_t row) { return number(history(trace).ranges.stack[row]); }}},
      &Run::snapshots};
}

TableSpec memory_timeline_table() {
  constexpr auto part = &Trace::memory_timeline;
  return {"memory_timeline",
          "Memory timelines of torch's profiler: changes of bytes by category.",
          rows_of<part>,
          {rank_column(),
           file_column(),
           {"time_ns", Unit::ns, "When, on the profiler's clock; null: before the recording.",
            borrowed_or<part, &MemoryTimeline::time_ns, kAbsent>()},
           {"action", Unit::none, "preexisting, create, increment_version or destroy; level: of a file of levels.",
            Codes{[](const Trace& trace, std::size_t row) {
                    return static_cast<std::uint32_t>(trace.memory_timeline.action[row]);
                  },
                  [](const Trace&) { return kTimelineActions; },
                  [](const Trace&, std::uint32_t code) { return to_string(static_cast<TimelineAction>(code)); }}},
           {"bytes", Unit::bytes, "What it adds to its category.", borrowed<part, &MemoryTimeline::bytes>()},
           {"category", Unit::none, "What it is for, in our words.",
            Codes{[](const Trace& trace, std::size_t row) {
                    return static_cast<std::uint32_t>(timeline_category(trace.memory_timeline.category[row]));
                  },
                  [](const Trace&) { return kMemoryCategories; },
                  [](const Trace&, std::uint32_t code) { return to_string(static_cast<MemoryCategory>(code)); }}},
           {"recorded_as", Unit::none, "The profiler's category.",
            Codes{[](const Trace& trace, std::size_t row) {
                    return static_cast<std::uint32_t>(trace.memory_timeline.category[row]);
                  },
                  [](const Trace&) { return kTimelineCategories; },
                  [](const Trace&, std::uint32_t code) { return timeline_category_name(code); }}}},
          &Run::snapshots};
}

}  // namespace stepscope::tables
