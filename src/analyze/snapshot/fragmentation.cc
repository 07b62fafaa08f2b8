#include <algorithm>
#include <string>

#include "analyze/snapshot/parts.h"
#include "model/answer_parts.h"
#include "snapshot/out_of_memory.h"
#include "snapshot/stack_text.h"

namespace stepscope::analyze::device_memory {

using namespace snapshot;

namespace {

constexpr std::size_t kMostOoms = 10;  // of a device: the last ones

Table fragmentation_table() {
  return table_of(
      "fragmentation",
      {{"moment", ValueType::text, Unit::none, "peak, end, or oom: where memory ran out"},
       {"event", ValueType::integer, Unit::none, "Number of the event before it; of oom its own"},
       {"reserved_bytes", ValueType::integer, Unit::bytes,
        "What the allocator holds from the device; unknown: by the events more lived than that"},
       {"free_bytes", ValueType::integer, Unit::bytes, "Of that, inside segments and in no block"},
       {"largest_run_bytes", ValueType::integer, Unit::bytes, "The largest piece of it"},
       {"fragmentation", ValueType::real, Unit::ratio, "Share of the free memory that is not in the largest piece"},
       {"runs", ValueType::integer, Unit::count, "Pieces"},
       {"segments", ValueType::integer, Unit::count, "Segments: memory that the allocator holds in one piece"},
       {"rounding_bytes", ValueType::integer, Unit::bytes, "What blocks are larger than what the program asked for"},
       {"pending_bytes", ValueType::integer, Unit::bytes, "Blocks that were freed and that a stream still uses"}});
}

Table blockers_table() {
  return table_of("blockers",
                  {{"moment", ValueType::text, Unit::none, "end, or oom: where memory ran out"},
                   {"event", ValueType::integer, Unit::none, "Number of the event before it; of oom its own"},
                   {"free_bytes", ValueType::integer, Unit::bytes, "Free memory on both sides of the blocks"},
                   {"run_bytes", ValueType::integer, Unit::bytes, "The free run that there would be without them"},
                   {"live_bytes", ValueType::integer, Unit::bytes, "The blocks that stand in between"},
                   {"blocks", ValueType::integer, Unit::count, "How many"},
                   {"where", ValueType::text, Unit::none, "Who allocated the largest of them"},
                   {"class", ValueType::text, Unit::none, "Class of the largest of them"},
                   {"stack", ValueType::integer, Unit::none, "Its stack; whole in the table stacks"}});
}

void add_moment(Table& table, const View& view, const char* moment, Value event, const State& state,
                const FreeMemory& memory) {
  const LiveBytes live = live_bytes(view.history(), state);
  const bool known = fit_together(memory, live);
  table.rows.push_back(row_of(
      view,
      {std::string(moment), std::move(event), value_if(known, memory.reserved), value_if(known, memory.free),
       value_if(known, memory.largest_run), known ? share(memory.free - memory.largest_run, memory.free) : Value(),
       known ? count(memory.runs) : Value(), known ? count(state.segments.size()) : Value(), live.blocks - live.asked,
       live.pending}));
}

void add_blockers(Parts& parts, Table& table, const View& view, const char* moment, const Value& event,
                  const FreeMemory& memory) {
  for (const Between& one : memory.blockers) {
    const Allocations& rows = view.history().allocations;
    const StackId stack = rows.stack[one.largest];
    table.rows.push_back(
        row_of(view, {std::string(moment), event, one.free_bytes, one.free_bytes + one.live_bytes, one.live_bytes,
                      count(one.blocks), text(where_text(view.snapshot(), stack)),
                      text(view.history().classes[rows.of_class[one.largest]].name), parts.told.tell(view, stack)}));
  }
}

}  // namespace

void add_fragmentation(Parts& parts) {
  Table moments = fragmentation_table(), blockers = blockers_table();
  for (const View& view : parts.views) {
    const SnapshotDevice& device = *view.device;
    if (device.ranges.count == 0) continue;
    const auto look = [&](const char* name, std::uint32_t moment, const Value& event, bool tell_blockers) {
      const State state = state_at(view.history(), device, moment);
      const FreeMemory memory = free_memory(view.history(), state, std::nullopt);
      if (memory.reserved == 0) return;
      add_moment(moments, view, name, event, state, memory);
      if (tell_blockers) add_blockers(parts, blockers, view, name, event, memory);
    };
    if (device.events.count > 0) look("peak", device.peak, moment_event(view, device.peak), false);
    const std::size_t first = device.ooms.size() - std::min(device.ooms.size(), kMostOoms);
    for (std::size_t i = first; i < device.ooms.size(); i++) {
      const std::uint32_t event = device.ooms[i];
      const State state = state_at(view.history(), device, event);
      add_moment(moments, view, "oom", std::int64_t{event}, state, free_memory(view.history(), state, std::nullopt));
      const OutOfMemory oom = out_of_memory(view.snapshot(), view.history(), device, event, std::nullopt);
      add_blockers(parts, blockers, view, "oom", std::int64_t{event}, oom.memory);
    }
    look("end", device.last_moment(), moment_event(view, device.last_moment()), true);
  }
  parts.answer.tables.push_back(std::move(moments));
  parts.answer.tables.push_back(std::move(blockers));
}

}  // namespace stepscope::analyze::device_memory
