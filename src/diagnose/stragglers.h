// Ranks that the others wait for, and what they have more of: one by the threads of the steps, one by the devices.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "diagnose/cause.h"

namespace stepscope::diagnose {

struct Straggler {
  const Trace* trace = nullptr;
  bool on_device = false;                        // what it does is what its device computes, and there is no code
  bool steady = true;                            // in nearly all steps; else in some of them
  std::int64_t own_ns = 0, others_ns = 0;        // what it does itself in all steps; what the median of the others does
  std::int64_t code_ns = 0, others_code_ns = 0;  // of that between operators
  // Elements that its operators were given, over those of the others'; nullopt: not recorded, or it calls others.
  std::optional<double> more_data;
  std::vector<std::uint32_t> code, operators;  // its nodes; of a device: its kernels are the operators
};

// Those of threads first. None: one rank, or none does more than the others that is worth saying.
const std::vector<Straggler>& stragglers(const Case& about);

}  // namespace stepscope::diagnose
