// memory: how much the allocators held over time and what for, what was alive at the peak, and whether it grows from
// step to step.
//
// From the [memory] events of torch.profiler (profile_memory=True). The totals are the caching allocator's own; what
// was allocated before the recording is in them, but no event says by whom: it is a row of its own.
#include <algorithm>

#include "analyze/analysis.h"
#include "analyze/memory/categories.h"
#include "analyze/memory/growth.h"
#include "analyze/memory/peak.h"
#include "model/answer_parts.h"

namespace stepscope::analyze {
namespace {

constexpr std::size_t kLargest = 100;  // allocations shown where no other limit is asked for
constexpr std::string_view kNoMemory =
    "No memory events were recorded. Record them with profile_memory=True of torch.profiler.";

using memory::Held;
using memory::held_memory;
using memory::step_name;

std::int64_t whole(double value) { return static_cast<std::int64_t>(value); }

// What the thread of the event that reached the peak was doing.
Value phase_at_peak(const Held& held) {
  for (std::size_t i = 0; i < held.memory.allocations.size(); i++) {
    if (held.memory.allocations[i].order == held.peak) return std::string(to_string(held.phase(i)));
  }
  return {};
}

Table devices_table(const std::vector<Held>& all) {
  Table table{
      .name = "devices",
      .columns = {
          {"rank", ValueType::integer, Unit::none, "Rank"},
          {"device", ValueType::text, Unit::none, "Device of the allocator"},
          {"peak_bytes", ValueType::integer, Unit::bytes,
           "Most that was allocated at once, all categories together; where the allocator gives no totals, see the "
           "notes"},
          {"peak_t_ns", ValueType::integer, Unit::ns, "When it was first reached, on the clock of the file"},
          {"peak_step", ValueType::text, Unit::none, "Step at that time; unknown: outside all steps"},
          {"peak_phase", ValueType::text, Unit::none, "Phase of the thread that reached it"},
          {"mean_bytes", ValueType::integer, Unit::bytes, "Mean of what was allocated, weighted by time"},
          {"first_bytes", ValueType::integer, Unit::bytes, "Allocated after the first event"},
          {"last_bytes", ValueType::integer, Unit::bytes, "Allocated after the last event"},
          {"peak_reserved_bytes", ValueType::integer, Unit::bytes,
           "Most that the caching allocator held from the device; unknown: not recorded"},
          {"totals", ValueType::boolean, Unit::none, "Are the bytes the allocator's own totals?"},
          {"allocations", ValueType::integer, Unit::count, "Allocations in the recording"},
          {"frees", ValueType::integer, Unit::count, "Frees in the recording"},
          {"unknown_frees", ValueType::integer, Unit::count, "Frees of what was allocated before the recording"},
          {"unknown_freed_bytes", ValueType::integer, Unit::bytes, "Their bytes"},
          {"not_freed", ValueType::integer, Unit::count, "Allocations without a free in the recording"}}};
  for (const Held& held : all) {
    const DeviceMemory& memory = held.memory;
    const Curve& reserved = memory.reserved;
    const auto left = std::count_if(memory.allocations.begin(), memory.allocations.end(),
                                    [](const Allocation& one) { return one.freed == Allocation::never; });
    table.rows.push_back(
        {held.rank(), memory.name(), whole(held.stats.high), held.stats.high_at_ns,
         step_name(*held.trace, held.stats.high_at_ns), phase_at_peak(held), whole(held.stats.mean),
         whole(memory.allocated.v.front()), whole(memory.allocated.v.back()),
         reserved.size() == 0 ? Value() : Value(whole(*std::max_element(reserved.v.begin(), reserved.v.end()))),
         memory.absolute, count(memory.allocations.size()), count(memory.frees), count(memory.unknown_frees),
         memory.unknown_freed_bytes, static_cast<std::int64_t>(left)});
  }
  return table;
}

Table largest_table(const std::vector<Held>& all, std::size_t max_rows, Answer& answer) {
  Table table{
      .name = "largest",
      .columns = {{"rank", ValueType::integer, Unit::none, "Rank"},
                  {"device", ValueType::text, Unit::none, "Device of the allocator"},
                  {"bytes", ValueType::integer, Unit::bytes, "Bytes of the allocation"},
                  {"op", ValueType::text, Unit::none, "Operator or range that allocated it"},
                  {"phase", ValueType::text, Unit::none, "Phase of the allocation"},
                  {"category", ValueType::text, Unit::none, "What it is used for"},
                  {"step", ValueType::text, Unit::none, "Step in which it was allocated"},
                  {"start_ns", ValueType::integer, Unit::ns, "When it was allocated, on the clock of the file"},
                  {"lifetime_ns", ValueType::integer, Unit::ns, "Until its free; unknown: not in the recording"},
                  {"at_peak", ValueType::boolean, Unit::none, "Was it alive at the peak of its device?"}}};
  struct Big {
    const Held* held;
    std::size_t at;
    std::int64_t bytes;
  };
  std::vector<Big> found;
  for (const Held& held : all) {
    for (std::size_t i = 0; i < held.memory.allocations.size(); i++) found.push_back({&held, i, held.bytes(i)});
  }
  const std::size_t wanted = std::min(max_rows > 0 ? max_rows : kLargest, found.size());
  const auto before = [](const Big& a, const Big& b) {
    if (a.bytes != b.bytes) return a.bytes > b.bytes;
    return std::pair(a.held, a.at) < std::pair(b.held, b.at);
  };
  std::partial_sort(found.begin(), found.begin() + static_cast<std::ptrdiff_t>(wanted), found.end(), before);
  for (const Big& big : std::span(found).first(wanted)) {
    const Held& held = *big.held;
    const Allocation& one = held.memory.allocations[big.at];
    const std::int64_t start = held.trace->memory.time_ns[one.event];
    table.rows.push_back(
        {held.rank(), held.memory.name(), big.bytes, text(held.trace->strings[held.op_name(big.at)]),
         text(to_string(held.phase(big.at))), text(to_string(held.use[big.at].category)), step_name(*held.trace, start),
         start, one.freed_ns == kAbsent ? Value() : Value(one.freed_ns - start), held.memory.alive(one, held.peak)});
  }
  if (found.size() > wanted) {
    answer.notes.push_back("Table largest shows " + std::to_string(wanted) + " of " + std::to_string(found.size()) +
                           " allocations.");
  }
  return table;
}

Table phases_table(const std::vector<Held>& all) {
  Table table{.name = "phases",
              .columns = {{"rank", ValueType::integer, Unit::none, "Rank"},
                          {"device", ValueType::text, Unit::none, "Device of the allocator"},
                          {"phase", ValueType::text, Unit::none, "Phase in which it was allocated"},
                          {"allocations", ValueType::integer, Unit::count, "Allocations"},
                          {"bytes", ValueType::integer, Unit::bytes, "Bytes allocated, frees not subtracted"},
                          {"kept_bytes", ValueType::integer, Unit::bytes, "Of these, not freed in the recording"},
                          {"at_peak_bytes", ValueType::integer, Unit::bytes, "Of these, alive at the peak"}}};
  for (const Held& held : all) {
    std::array<std::array<std::int64_t, 4>, kPhases> sums{};
    for (std::size_t i = 0; i < held.memory.allocations.size(); i++) {
      const Allocation& one = held.memory.allocations[i];
      auto& sum = sums[std::min<std::size_t>(static_cast<std::size_t>(held.phase(i)), kPhases - 1)];
      const std::int64_t bytes = held.bytes(i);
      sum[0]++;
      sum[1] += bytes;
      if (one.freed == Allocation::never) sum[2] += bytes;
      if (held.memory.alive(one, held.peak)) sum[3] += bytes;
    }
    for (std::size_t phase = 0; phase < kPhases; phase++) {
      if (sums[phase][0] == 0) continue;
      table.rows.push_back({held.rank(), held.memory.name(), std::string(to_string(static_cast<Phase>(phase))),
                            sums[phase][0], sums[phase][1], sums[phase][2], sums[phase][3]});
    }
  }
  return table;
}

void find_limit(Answer& answer, const Held& held) {
  const Curve& reserved = held.memory.reserved;
  const auto same = [&](const DeviceInfo& info) { return info.id == held.memory.index && info.memory_bytes > 0; };
  const auto info = std::find_if(held.trace->devices.begin(), held.trace->devices.end(), same);
  if (held.memory.type == 0 || reserved.size() == 0 || info == held.trace->devices.end()) return;
  const std::int64_t peak = whole(*std::max_element(reserved.v.begin(), reserved.v.end()));
  if (static_cast<double>(peak) < 0.9 * static_cast<double>(info->memory_bytes)) return;
  answer.findings.push_back(
      {.id = "memory_near_limit",
       .cause = "memory",
       .sentence = "The allocator holds nearly all memory of " + held.memory.name(),
       .where = {.rank = held.rank()},
       .evidence = {{.text = "Reserved at most", .value = peak, .unit = Unit::bytes},
                    {.text = "Memory of the device", .value = info->memory_bytes, .unit = Unit::bytes},
                    {.text = "Allocated at most", .value = whole(held.stats.high), .unit = Unit::bytes}},
       .gain_reason = "It is about memory, not time.",
       .confidence = "high",
       .next = "memory.at_peak names what is alive at the peak; where much more is reserved than allocated, try "
               "PYTORCH_CUDA_ALLOC_CONF=expandable_segments:True"});
}

void add_scalars(Answer& answer, const std::vector<Held>& all) {
  const Held* largest = nullptr;
  std::int64_t events = 0, unknown_frees = 0;
  for (const Held& held : all) {
    events += static_cast<std::int64_t>(held.memory.events);
    unknown_frees += static_cast<std::int64_t>(held.memory.unknown_frees);
    const bool device = held.memory.type > 0;
    if (device && (largest == nullptr || held.stats.high > largest->stats.high)) largest = &held;
  }
  const auto scalar = [&](std::string_view name, Value value, Unit unit, std::string_view meaning, bool known) {
    add_scalar(answer, name, known ? std::move(value) : Value(), unit,
               known         ? meaning
               : all.empty() ? kNoMemory
                             : "Only memory of the host was recorded; see memory.devices");
  };
  scalar("event_count", events, Unit::count, "Allocations and frees in the recording", !all.empty());
  scalar("unknown_free_count", unknown_frees, Unit::count,
         "Frees of what was allocated before the recording: who holds that cannot be told", !all.empty());
  scalar("peak_device_bytes", largest == nullptr ? Value() : Value(whole(largest->stats.high)), Unit::bytes,
         "Most allocated at once on the fullest device of all ranks", largest != nullptr);
}

Result<Answer> run_memory(const Run& run, const AnalyzeOptions& options) {
  if (auto derived = require_derived(run); !derived) return fail(derived.error());
  Answer answer;
  const std::vector<Held> all = held_memory(run);
  const memory::OtherStacks others(run.stack_steps);
  add_scalars(answer, all);
  for (const Held& held : all) {
    const std::string where = "_rank" + std::to_string(held.rank()) + "_" + held.memory.name();
    Series& allocated = answer.series.emplace_back(thinned("allocated" + where, Unit::bytes, held.memory.allocated));
    allocated.metric = memory::chart_of(held);  // over its categories, whose sum it is
    allocated.target = "all categories";
    allocated.ranks = {held.rank()};
    if (held.memory.reserved.size() > 0)
      answer.series.push_back(thinned("reserved" + where, Unit::bytes, held.memory.reserved));
    find_limit(answer, held);
  }
  answer.tables = {devices_table(all)};
  memory::add_categories(answer, all);
  memory::add_peak(answer, all, others);
  answer.tables.push_back(phases_table(all));
  memory::add_growth(answer, all, others);
  answer.tables.push_back(largest_table(all, options.max_rows, answer));
  for (Table& table : answer.tables) {
    limit_rows(answer, table, options.max_rows, table.name == "steps" ? "later steps" : "those with fewer bytes");
  }
  if (all.empty()) answer.notes.push_back(std::string(kNoMemory));
  if (std::any_of(all.begin(), all.end(), [](const Held& held) { return !held.memory.absolute; })) {
    answer.notes.push_back(
        "Where the allocator gives no totals (column totals), bytes count from the beginning of the recording, on top "
        "of "
        "what the program said that it held: other things of before are missing from them.");
  }
  return answer;
}

}  // namespace

Analysis memory_analysis() {
  return {"memory", "How much memory is held, by whom at the peak, and does it grow?", run_memory};
}

}  // namespace stepscope::analyze
