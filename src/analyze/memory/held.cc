#include "analyze/memory/held.h"

#include <algorithm>
#include <array>

#include "analyze/memory/uses.h"
#include "base/name_verdicts.h"
#include "model/answer_parts.h"
#include "model/lookup.h"

namespace stepscope::analyze::memory {
namespace {

// Operators that allocate for the one that calls them.
std::uint8_t only_allocates(std::string_view name) {
  constexpr std::array<std::string_view, 13> kNames{
      "aten::empty",     "aten::empty_like", "aten::empty_strided", "aten::new_empty",         "aten::resize_",
      "aten::zeros",     "aten::zeros_like", "aten::new_zeros",     "aten::new_empty_strided", "aten::full",
      "aten::full_like", "aten::ones",       "aten::ones_like"};
  return std::find(kNames.begin(), kNames.end(), name) != kNames.end() ? 1 : 0;
}

// The operator around those that allocate; the outermost of these where only a step, a phase or a module is around.
SliceId wanted_by(const Trace& trace, SliceId slice, auto& allocates) {
  SliceId at = op_around(trace, slice);
  while (at != SliceId::none && trace.kind(at) == SliceKind::cpu_op && allocates(trace.slices.name[at]) == 1) {
    const SliceId caller = op_around(trace, trace.slices.parent[at]);
    if (caller == SliceId::none || trace.kind(caller) != SliceKind::cpu_op) return at;
    at = caller;
  }
  return at;
}

// No more than there was: what the allocator had counted when the first event came.
std::vector<Told> told_of_before(const Held& held) {
  std::vector<Told> told;
  std::int64_t left = held.memory.before_bytes;
  for (const HeldBefore& row : held.trace->held_before) {
    const MemoryCategory category = memory_category(row.category);
    const std::int64_t bytes = std::min(row.bytes, left);
    if (row.device != held.memory.name() || category == MemoryCategory::unknown || bytes == 0) continue;
    told.push_back({category, row.module, bytes});
    left -= bytes;
  }
  return told;
}

Held measure(const Trace& trace, DeviceMemory memory) {
  Held held{.trace = &trace, .memory = std::move(memory)};
  const Curve& curve = held.memory.allocated;
  held.stats = stats_of(curve, curve.t_ns.back());
  const auto high = std::max_element(curve.v.begin(), curve.v.end());
  held.peak = static_cast<std::uint32_t>(high - curve.v.begin());
  NameVerdicts<std::uint8_t, std::uint8_t (*)(std::string_view)> allocates(trace.strings, 2, only_allocates);
  for (const Allocation& one : held.memory.allocations) {
    held.around.push_back(slice_at(trace, trace.memory.track[one.event], trace.memory.time_ns[one.event]));
    held.op.push_back(wanted_by(trace, held.around.back(), allocates));
  }
  held.use = uses_of(held);
  held.before = told_of_before(held);
  return held;
}

}  // namespace

std::array<std::int64_t, kMemoryCategories> Held::before_by_category() const {
  std::array<std::int64_t, kMemoryCategories> sums{};
  for (const Told& one : before) sums[static_cast<std::size_t>(one.category)] += one.bytes;
  return sums;
}

Phase Held::phase(std::size_t at) const {
  return around[at] == SliceId::none ? Phase::other : static_cast<Phase>(trace->slices.phase[around[at]]);
}

StringId Held::op_name(std::size_t at) const { return stepscope::op_name(*trace, op[at]); }

std::string_view to_string(Evidence evidence) {
  static constexpr std::array<std::string_view, kEvidences> kSentences{
      "nothing says what it is for",
      "allocated by a collective, or by what prepares one",
      "freed within the call of an operator that a library computes",
      "freed within the operator that allocated it",
      "allocated while the optimizer steps, and kept",
      "allocated while the optimizer steps, freed before that step ended",
      "allocated in backward, and outlived it",
      "allocated in backward, freed before it ended",
      "allocated in forward, freed in backward or later",
      "allocated in forward, freed before it ended",
      "allocated outside of the passes, while data is loaded or copied",
      "allocated where a module is made or moved, by the Python stack",
      "told by the program, of what it held when the recording began"};
  return kSentences[static_cast<std::size_t>(evidence)];
}

std::vector<Held> held_memory(const Trace& trace) {
  std::vector<Held> all;
  for (DeviceMemory& memory : device_memories(trace)) all.push_back(measure(trace, std::move(memory)));
  return all;
}

std::vector<Held> held_memory(const Run& run) {
  std::vector<Held> all;
  for (const Trace& trace : run.traces) {
    for (Held& held : held_memory(trace)) all.push_back(std::move(held));
  }
  return all;
}

Value step_name(const Trace& trace, std::int64_t time_ns) {
  const StepId step = trace.step_at(time_ns);
  return step == StepId::none ? Value() : text(trace.steps[static_cast<std::size_t>(step)].name);
}

std::string stack_of(const Trace& trace, SliceId slice) {
  constexpr int kFrames = 12;  // what fits a table; the page has the timeline
  std::string out;
  int frames = 0;
  for (int level = 0; slice != SliceId::none && level < kDeepestWalk && frames < kFrames; level++) {
    if (trace.kind(slice) == SliceKind::python_function && !trace.name(slice).starts_with('<')) {
      out += (frames++ == 0 ? "" : " < ") + std::string(trace.name(slice));
    } else if (const std::size_t row = row_of(trace.ops.slice, slice);
               frames == 0 && row < trace.ops.size() && trace.ops.call_stack[row] != StringId::none) {
      return std::string(trace.strings[trace.ops.call_stack[row]]);
    }
    slice = trace.slices.parent[slice];
  }
  return out;
}

}  // namespace stepscope::analyze::memory
