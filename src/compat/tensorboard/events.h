// What the TensorBoard plugin (torch-tb-profiler 0.4.3) takes from a trace for its overview page: ranges by role,
// steps, and kernels with their numbers.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "compat/tensorboard/ranges.h"
#include "model/trace.h"

namespace stepscope::compat::tensorboard {

// In order of priority; the names are the page's.
inline constexpr std::array<std::string_view, 8> kRoles{"Kernel",  "Memcpy",     "Memset",   "Communication",
                                                        "Runtime", "DataLoader", "CPU Exec", "Other"};
enum Role : std::size_t { kernel, memcpy, memset, communication, runtime, data_loader, cpu_exec, other };

struct NamedStep {
  std::string name;
  Range when;
};

struct Kernel {
  Range when;
  std::int64_t device = -1;
  double blocks_per_sm = 0, occupancy = 0;  // NaN: not given
  bool uses_tensor_cores = false;           // by its name
};

struct Events {
  std::array<Ranges, 7> roles;  // united; all but other
  std::vector<NamedStep> steps;
  std::vector<Kernel> kernels;
};

Events read_events(const Trace& trace);

}  // namespace stepscope::compat::tensorboard
