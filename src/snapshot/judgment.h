// Judgment: what one allocation was found to be for, and on what evidence; and how that is said.
#pragma once

#include <cstdint>
#include <string_view>

#include "model/allocator_history.h"

namespace stepscope::snapshot {

// What the lifetime adds to the evidence.
enum class Life : std::uint8_t {
  nothing,
  gone_in_pass,
  gone_early,
  alive_at_backward,
  freed_in_backward,
  alive_after_backward,
  alive_after_step,
  freed_by_zero_grad,
  run_again,
  module_returned,
  never_freed,
  undecided,
};
// What the class rests on; `label` of the judgment is what it says.
enum class Basis : std::uint8_t {
  nothing,
  stack,
  mark,
  lifetime,
  size,
  profiler,
  compile_context,
  metadata,
  pool,
  range,
};

struct Judgment {
  MemoryCategory category = MemoryCategory::unknown;
  Basis basis = Basis::nothing;
  Life life = Life::nothing;
  std::uint8_t rule = 0;    // of the stack
  std::uint32_t label = 0;  // a StringId, a pool, a Pass
};

// Of "PARAMETER", "Category.PARAMETER": as torch's profiler calls it.
MemoryCategory profilers_category(std::string_view name);

MemoryClass described(const CudaSnapshot& snapshot, const Judgment& judgment);

}  // namespace stepscope::snapshot
