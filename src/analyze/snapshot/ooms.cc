#include <algorithm>
#include <string>

#include "analyze/snapshot/parts.h"
#include "model/answer_parts.h"
#include "snapshot/out_of_memory.h"
#include "snapshot/stack_text.h"

namespace stepscope::analyze::device_memory {

using namespace snapshot;

namespace {

constexpr std::size_t kFullTables = 3;  // times of a device whose holdings are told: the last ones
constexpr std::size_t kFindings = 3;

// Memory of the device, where a trace of the same rank tells it.
std::optional<std::int64_t> device_bytes(const Run& run, const View& view) {
  for (const Trace& trace : run.traces) {
    if (trace.rank.rank != view.trace->rank.rank) continue;
    for (const DeviceInfo& info : trace.devices) {
      if (info.id == view.device->number && info.memory_bytes > 0) return info.memory_bytes;
    }
  }
  return std::nullopt;
}

Table ooms_table() {
  return table_of(
      "ooms",
      {{"event", ValueType::integer, Unit::none, "Number of the event in the recording of the device"},
       {"cause", ValueType::text, Unit::none,
        "fragmented: enough was free, in pieces; free elsewhere: in other pools or on other streams; held outside of "
        "torch; limited: the driver had enough; more than the device, as far as its size is known; full; unclear"},
       {"wanted_bytes", ValueType::integer, Unit::bytes, "What was asked for, as a block"},
       {"free_bytes", ValueType::integer, Unit::bytes, "Free inside the segments that it could have been in"},
       {"largest_run_bytes", ValueType::integer, Unit::bytes, "Of that, the largest piece"},
       {"device_free_bytes", ValueType::integer, Unit::bytes, "What the driver still had"},
       {"held_bytes", ValueType::integer, Unit::bytes, "Blocks that lived"},
       {"reserved_bytes", ValueType::integer, Unit::bytes, "What the allocator held from the device"},
       {"free_elsewhere_bytes", ValueType::integer, Unit::bytes,
        "Free in segments of other pools or streams, or of small blocks"},
       {"outside_bytes", ValueType::integer, Unit::bytes,
        "Held of the device by others than torch's allocator; unknown: no trace of the rank tells the device's size"},
       {"to_free_bytes", ValueType::integer, Unit::bytes,
        "The fewest bytes that would have had to go to make room in one piece"},
       {"to_free_blocks", ValueType::integer, Unit::count, "In so many blocks"},
       {"to_free_where", ValueType::text, Unit::none, "Who allocated the largest of them"},
       {"where", ValueType::text, Unit::none, "Who asked"},
       {"t_ns", ValueType::integer, Unit::unix_ns, "When"},
       {"step", ValueType::text, Unit::none, "Step at that time"},
       {"range", ValueType::text, Unit::none, "Innermost range of the program at that time"},
       {"stack", ValueType::integer, Unit::none, "Number of the stack that asked; whole in the table stacks"}});
}

StackId stack_of(const View& view, std::uint32_t row) {
  return row == kNoEntry ? StackId::none : view.history().allocations.stack[row];
}

std::vector<Value> oom_row(Parts& parts, const View& view, const OutOfMemory& oom) {
  const FreeMemory& memory = oom.memory;
  const bool known = memory.reserved > 0;
  const auto& cheapest = memory.cheapest;
  const StackId blocker = cheapest ? stack_of(view, cheapest->largest) : StackId::none;
  return row_of(
      view, {static_cast<std::int64_t>(oom.event), text(to_string(oom.cause)), oom.wanted_bytes,
             value_if(known, memory.usable), value_if(known, memory.largest_usable), present(oom.device_free),
             oom.live.blocks, value_if(known, memory.reserved), value_if(known, memory.free - memory.usable),
             to_value(oom.outside_bytes), cheapest ? Value(cheapest->live_bytes) : Value(),
             cheapest ? count(cheapest->blocks) : Value(), text(where_text(view.snapshot(), blocker)),
             text(where_text(view.snapshot(), oom.stack)), moment_time(view, oom.event + 1),
             moment_step(view, oom.event + 1), moment_range(view, oom.event + 1), parts.told.tell(view, oom.stack)});
}

std::string sentence_of(const OutOfMemory& oom) {
  switch (oom.cause) {
    case OomCause::fragmented: return "Memory ran out although enough was free: it is in pieces";
    case OomCause::elsewhere:
      return "Memory ran out although enough was free: it lies in other pools or on other streams";
    case OomCause::outside: return "Memory ran out because others than torch's allocator hold much of the device";
    case OomCause::limited:
      return "Memory ran out at a limit of torch's own: the driver still had enough, and torch did not take it";
    case OomCause::beyond:
      return oom.device_bytes
                 ? "Memory ran out because more was asked for at once than the device has"
                 : "Memory ran out because more was asked for at once than torch held and the driver still had";
    case OomCause::full: return "Memory ran out: all of it is in use";
    case OomCause::unclear: break;
  }
  return "Memory ran out; the snapshot does not tell why";
}

std::string next_of(const OutOfMemory& oom) {
  switch (oom.cause) {
    case OomCause::fragmented:
      return "Try PYTORCH_CUDA_ALLOC_CONF=expandable_segments:True; snapshot.blockers names who stands in the way";
    case OomCause::elsewhere:
      return "See snapshot.segments for who holds them: a CUDA graph keeps its pool, another stream its blocks";
    case OomCause::outside: return "Look for other processes (nvidia-smi), NCCL's buffers and CUDA graphs";
    case OomCause::limited:
      return "Look for torch.cuda.set_per_process_memory_fraction in the program and its libraries; what fills what is "
             "allowed: snapshot.oom_classes and snapshot.oom_stacks";
    case OomCause::beyond:
      return "Look at the sizes where it was asked for: a wrong shape, or a batch that must be split";
    default: break;
  }
  return "See snapshot.oom_classes and snapshot.oom_stacks for what fills it";
}

// Others may hold much of a device whose size is not known, and may just have let go of what the driver has.
const char* confidence_of(const OutOfMemory& oom) {
  if (oom.cause == OomCause::limited || (oom.cause == OomCause::beyond && !oom.device_bytes)) return "medium";
  return oom.cause == OomCause::unclear ? "low" : "high";
}

void add_finding(Parts& parts, const View& view, const OutOfMemory& oom) {
  const FreeMemory& memory = oom.memory;
  Finding finding{.id = "out_of_memory",
                  .cause = "memory",
                  .sentence = sentence_of(oom),
                  .where = {.rank = view.trace->rank.rank},
                  .evidence = {{.text = "Wanted", .value = oom.wanted_bytes, .unit = Unit::bytes}},
                  .gain_reason = "It is about memory, not time.",
                  .confidence = confidence_of(oom),
                  .next = next_of(oom)};
  const auto add = [&](const char* words, Value value) {
    finding.evidence.push_back({.text = words, .value = std::move(value), .unit = Unit::bytes});
  };
  if (memory.reserved > 0) {
    add("Free in its segments", memory.usable);
    add("The largest piece", memory.largest_usable);
  }
  if (oom.device_free != kNotRecorded) add("Free at the driver", oom.device_free);
  add("Held", oom.live.blocks);
  if (oom.device_bytes) add("The device has", *oom.device_bytes);
  if (oom.outside_bytes) add("Held outside of torch", *oom.outside_bytes);
  if (oom.cause == OomCause::fragmented && memory.cheapest) {
    add("Would make room", memory.cheapest->live_bytes);
    const std::string who = where_text(view.snapshot(), stack_of(view, memory.cheapest->largest));
    if (!who.empty()) finding.evidence.push_back({.text = "In the way: " + who, .value = {}, .unit = Unit::none});
  }
  const std::string where = where_text(view.snapshot(), oom.stack);
  if (!where.empty()) finding.where.function = where;
  parts.answer.findings.push_back(std::move(finding));
}

}  // namespace

void add_ooms(Parts& parts) {
  Table ooms = ooms_table();
  Holdings at_oom("oom", true, parts.most_rows);
  for (const View& view : parts.views) {
    const auto& events = view.device->ooms;
    const std::size_t told = events.size() - std::min(events.size(), kFullTables);
    const std::size_t shown = parts.most_rows == 0 ? events.size() : std::min(events.size(), parts.most_rows);
    for (std::size_t i = events.size() - shown; i < events.size(); i++) {
      const OutOfMemory oom =
          out_of_memory(view.snapshot(), view.history(), *view.device, events[i], device_bytes(parts.run, view));
      ooms.rows.push_back(oom_row(parts, view, oom));
      if (i >= told) at_oom.add(view, oom.state, parts.told);
      if (i + kFindings >= events.size()) add_finding(parts, view, oom);
    }
    if (shown < events.size()) {
      parts.answer.notes.push_back("Memory ran out " + std::to_string(events.size()) +
                                   " times on one device; the last " + std::to_string(shown) + " are in table ooms.");
    }
  }
  parts.answer.tables.push_back(std::move(ooms));
  at_oom.take(parts.answer);
}

}  // namespace stepscope::analyze::device_memory
