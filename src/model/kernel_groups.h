// Device work grouped: by name and rule, by variant (name, grid, block, registers, shared memory), by family.
//
// Input: the work of one device (rows by start). Weighted means weigh each kernel by its duration and leave out those
// for which the trace says nothing; `weight_ns` is the time that they stand for.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "model/windows.h"

namespace stepscope {

struct WeightedMean {
  double sum = 0;
  std::int64_t weight_ns = 0;

  void add(double value, std::int64_t duration_ns) {
    sum += value * static_cast<double>(duration_ns);
    weight_ns += duration_ns;
  }
  std::optional<double> mean() const {
    return weight_ns > 0 ? std::optional(sum / static_cast<double>(weight_ns)) : std::nullopt;
  }
};

struct KernelGroup {
  std::uint32_t example = 0;  // first row of Trace::device in the group
  std::uint64_t count = 0;
  std::int64_t total_ns = 0, min_ns = 0, max_ns = 0;
  WeightedMean blocks_per_sm, occupancy;  // occupancy 0..1
};

enum class KernelKey { name, variant, rule };

// Heaviest first.
std::vector<KernelGroup> kernel_groups(const Trace& trace, const std::vector<std::uint32_t>& rows, KernelKey key);

// Blocks per SM and estimated occupancy (0..1) of one kernel: as recorded, else worked out from grid, block and the
// device's properties; unknown when neither is there.
std::optional<double> blocks_per_sm(const Trace& trace, std::uint32_t row);
std::optional<double> occupancy(const Trace& trace, std::uint32_t row);

const ClassRule* rule_of(const Trace& trace, std::uint32_t row);  // nullptr: none
// Does its name say that it runs on tensor cores (matrix cores on AMD)?
bool uses_tensor_cores(std::string_view kernel_name);

}  // namespace stepscope
