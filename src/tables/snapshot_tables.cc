// Specs of the tables of what memory snapshots say: events, segments, blocks, stacks, marks. One batch per file of
// Run::snapshots; `snapshot` is its number there.
#include <algorithm>
#include <array>

#include "tables/snapshot_parts.h"

namespace stepscope::tables {
namespace {

const SnapshotDevice* device_of_event(const Trace& trace, std::size_t row) {
  for (const SnapshotDevice& device : history(trace).devices) {
    if (row >= device.events.first && row - device.events.first < device.events.count) return &device;
  }
  return nullptr;
}

std::int64_t event_device(const Trace& trace, std::size_t row) {
  const SnapshotDevice* device = device_of_event(trace, row);
  return device == nullptr ? kAbsent : device->number;
}

std::int64_t event_number(const Trace& trace, std::size_t row) {
  const SnapshotDevice* device = device_of_event(trace, row);
  return device == nullptr ? kAbsent : static_cast<std::int64_t>(row - device->events.first);
}

Codes action_name() {
  return {
      [](const Trace& trace, std::size_t row) { return static_cast<std::uint32_t>(said(trace).events.action[row]); },
      [](const Trace&) { return std::size_t{10}; },
      [](const Trace&, std::uint32_t code) {
        static constexpr std::array<std::string_view, 10> names{
            "alloc",        "free_requested", "free_completed", "segment_alloc",
            "segment_free", "segment_map",    "segment_unmap",  "oom",
            "snapshot",     "other"};
        return names[code];
      }};
}

const EventContext* context_of(const Trace& trace, std::size_t row) {
  const std::uint32_t context = said(trace).events.context[row];
  return context == kNoEntry ? nullptr : &said(trace).contexts[context];
}

bool is_oom(const Trace& trace, std::size_t row) { return said(trace).events.action[row] == AllocatorAction::oom; }

std::int64_t segment_of_block(const Trace& trace, std::size_t row) {
  const auto segments = said(trace).segments.span();
  const auto holds = [&](const SnapshotSegment& segment) {
    return row >= segment.blocks.first && row - segment.blocks.first < segment.blocks.count;
  };
  // Their blocks lie in the order of the segments, but where a file has a list in two places.
  auto found = std::upper_bound(segments.begin(), segments.end(), row,
                                [](std::size_t wanted, const auto& segment) { return wanted < segment.blocks.first; });
  if (found != segments.begin()) found--;
  if (found == segments.end() || !holds(*found)) found = std::find_if(segments.begin(), segments.end(), holds);
  return found == segments.end() ? kAbsent : static_cast<std::int64_t>(found - segments.begin());
}

Codes state_name() {
  return {[](const Trace& trace, std::size_t row) { return static_cast<std::uint32_t>(said(trace).blocks[row].state); },
          [](const Trace&) { return std::size_t{4}; },
          [](const Trace&, std::uint32_t code) {
            static constexpr std::array<std::string_view, 4> names{"active", "pending_free", "inactive", "other"};
            return names[code];
          }};
}

std::size_t stack_of_frame(const Trace& trace, std::size_t row) {
  const auto begin = said(trace).stack_begin.span();
  return static_cast<std::size_t>(std::upper_bound(begin.begin(), begin.end(), row) - begin.begin()) - 1;
}

const SnapshotFrame& frame_at(const Trace& trace, std::size_t row) {
  return said(trace).frames[said(trace).stack_frames[row]];
}

}  // namespace

TableSpec snapshot_events_table() {
  return {"snapshot_events",
          "Memory snapshots: what the allocator did, event by event.",
          +[](const Trace& trace) { return said(trace).events.size(); },
          {rank_column(),
           file_column(),
           {"device", Unit::none, "Device, as the process numbers it.", event_device},
           {"event", Unit::none, "Number of the event in the recording of its device.", event_number},
           {"action", Unit::none, "What happened.", action_name()},
           {"time_ns", Unit::unix_ns, "When; null in old files.",
            +[](const Trace& trace, std::size_t row) { return micro_to_nano(said(trace).events.time_us[row]); }},
           {"address", Unit::none, "Address as a signed 64-bit number; null where memory ran out.",
            +[](const Trace& trace, std::size_t row) {
              const std::uint64_t address = said(trace).events.address[row];
              return is_oom(trace, row) || address == kNoAddress ? kAbsent : static_cast<std::int64_t>(address);
            }},
           {"size_bytes", Unit::bytes, "Bytes, as the program or the allocator asked for them.",
            +[](const Trace& trace, std::size_t row) { return said(trace).events.size_bytes[row]; }},
           {"device_free_bytes", Unit::bytes, "Where memory ran out: what the driver still had.",
            +[](const Trace& trace, std::size_t row) {
              const std::uint64_t bytes = said(trace).events.address[row];
              return is_oom(trace, row) && bytes < kNoAddress >> 1 ? static_cast<std::int64_t>(bytes) : kAbsent;
            }},
           {"stream", Unit::none, kStreamMeaning,
            +[](const Trace& trace, std::size_t row) { return stream_number(trace, said(trace).events.stream[row]); }},
           {"allocation", Unit::none, "Row in snapshot_allocations that it began or ended.",
            +[](const Trace& trace, std::size_t row) {
              const auto& of = history(trace).allocation_of_event;
              return row < of.size() ? id_or_null(of[row]) : kAbsent;
            }},
           {"stack", Unit::none, kStackMeaning,
            +[](const Trace& trace, std::size_t row) { return number(said(trace).events.stack[row]); }},
           {"compile_context", Unit::none, "What was being compiled, as recorded.",
            pooled_at([](const Trace& trace, std::size_t row) {
              const EventContext* context = context_of(trace, row);
              return context == nullptr ? StringId::none : context->compile_context;
            })},
           {"user_metadata", Unit::none, "The job's own note.", pooled_at([](const Trace& trace, std::size_t row) {
              const EventContext* context = context_of(trace, row);
              return context == nullptr ? StringId::none : context->user_metadata;
            })}},
          &Run::snapshots};
}

TableSpec snapshot_segments_table() {
  return {
      "snapshot_segments",
      "Memory snapshots: the allocator's segments at the end, as the file says.",
      +[](const Trace& trace) { return said(trace).segments.size(); },
      {rank_column(),
       file_column(),
       row_number_column("segment", "Number of the row in its snapshot."),
       {"device", Unit::none, "Device, as the process numbers it.",
        +[](const Trace& trace, std::size_t row) { return said(trace).segments[row].device; }},
       {"address", Unit::none, "Address as a signed 64-bit number.",
        +[](const Trace& trace, std::size_t row) {
          const std::uint64_t address = said(trace).segments[row].address;
          return address == kNoAddress ? kAbsent : static_cast<std::int64_t>(address);
        }},
       {"total_bytes", Unit::bytes, "Bytes held from the device.",
        +[](const Trace& trace, std::size_t row) { return said(trace).segments[row].total_bytes; }},
       {"allocated_bytes", Unit::bytes, "Bytes of blocks that the program holds.",
        +[](const Trace& trace, std::size_t row) { return said(trace).segments[row].allocated_bytes; }},
       {"active_bytes", Unit::bytes, "These, and blocks that a stream still uses.",
        +[](const Trace& trace, std::size_t row) { return said(trace).segments[row].active_bytes; }},
       {"requested_bytes", Unit::bytes, "What the program asked for.",
        +[](const Trace& trace, std::size_t row) { return said(trace).segments[row].requested_bytes; }},
       {"stream", Unit::none, kStreamMeaning,
        +[](const Trace& trace, std::size_t row) { return stream_number(trace, said(trace).segments[row].stream); }},
       {"type", Unit::none, "small or large.",
        pooled_at([](const Trace& trace, std::size_t row) { return said(trace).segments[row].type; })},
       {"pool_first", Unit::none, "Memory pool: 0 and 0 is the default one.",
        +[](const Trace& trace, std::size_t row) { return pool_part(trace, said(trace).segments[row].pool, false); }},
       {"pool_second", Unit::none, "The other number of the pool.",
        +[](const Trace& trace, std::size_t row) { return pool_part(trace, said(trace).segments[row].pool, true); }},
       {"expandable", Unit::none, "An expandable segment: 1, else 0; null: not recorded.",
        +[](const Trace& trace, std::size_t row) {
          const std::int8_t known = said(trace).segments[row].expandable;
          return known < 0 ? kAbsent : std::int64_t{known};
        }},
       {"stack", Unit::none, kStackMeaning,
        +[](const Trace& trace, std::size_t row) { return number(said(trace).segments[row].stack); }}},
      &Run::snapshots};
}

TableSpec snapshot_blocks_table() {
  return {"snapshot_blocks",
          "Memory snapshots: the blocks of the segments at the end, as the file says.",
          +[](const Trace& trace) { return said(trace).blocks.size(); },
          {rank_column(),
           file_column(),
           {"segment", Unit::none, "Row in snapshot_segments.", segment_of_block},
           {"address", Unit::none, "Address as a signed 64-bit number.",
            +[](const Trace& trace, std::size_t row) {
              const std::uint64_t address = said(trace).blocks[row].address;
              return address == kNoAddress ? kAbsent : static_cast<std::int64_t>(address);
            }},
           {"size_bytes", Unit::bytes, "Bytes.",
            +[](const Trace& trace, std::size_t row) { return said(trace).blocks[row].size_bytes; }},
           {"requested_bytes", Unit::bytes, "What the program asked for.",
            +[](const Trace& trace, std::size_t row) { return said(trace).blocks[row].requested_bytes; }},
           {"state", Unit::none, "active, pending_free (a stream still uses it) or inactive.", state_name()},
           {"stack", Unit::none, kStackMeaning,
            +[](const Trace& trace, std::size_t row) { return number(said(trace).blocks[row].stack); }}},
          &Run::snapshots};
}

TableSpec snapshot_frames_table() {
  return {"snapshot_frames",
          "Memory snapshots: the frames of each stack; each distinct stack once.",
          +[](const Trace& trace) { return said(trace).stack_frames.size(); },
          {rank_column(),
           file_column(),
           {"stack", Unit::none, "Number of the stack.",
            +[](const Trace& trace, std::size_t row) { return static_cast<std::int64_t>(stack_of_frame(trace, row)); },
            Order::ascending},
           {"depth", Unit::none, "0: the innermost frame.",
            +[](const Trace& trace, std::size_t row) {
              return static_cast<std::int64_t>(row - said(trace).stack_begin[stack_of_frame(trace, row)]);
            }},
           {"file", Unit::none, "File.",
            pooled_at([](const Trace& trace, std::size_t row) { return frame_at(trace, row).file; })},
           {"line", Unit::none, "Line; 0 of C++ without debug information.",
            +[](const Trace& trace, std::size_t row) { return frame_at(trace, row).line; }},
           {"function", Unit::none, "Function.",
            pooled_at([](const Trace& trace, std::size_t row) { return frame_at(trace, row).function; })},
           {"fx_node", Unit::none, "Node of torch.fx whose generated code it is.",
            pooled_at([](const Trace& trace, std::size_t row) { return frame_at(trace, row).fx_node; })}},
          &Run::snapshots};
}

TableSpec snapshot_annotations_table() {
  return {"snapshot_annotations",
          "Memory snapshots: starts and ends of ranges that the program marked.",
          +[](const Trace& trace) { return said(trace).annotations.size(); },
          {rank_column(),
           file_column(),
           {"device", Unit::none, "Device, as the process numbers it.",
            +[](const Trace& trace, std::size_t row) { return said(trace).annotations[row].device; }},
           {"time_ns", Unit::unix_ns, "When.",
            +[](const Trace& trace, std::size_t row) { return micro_to_nano(said(trace).annotations[row].time_us); }},
           {"stage", Unit::none, "START or END.",
            pooled_at([](const Trace& trace, std::size_t row) { return said(trace).annotations[row].stage; })},
           {"name", Unit::none, "Name of the range.",
            pooled_at([](const Trace& trace, std::size_t row) { return said(trace).annotations[row].name; })}},
          &Run::snapshots};
}

}  // namespace stepscope::tables
