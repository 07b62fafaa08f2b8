// What was sampled of a rank beside its steps.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

#include "model/trace.h"

namespace stepscope::diagnose {

// How fast a counter of a rank grew while the rank made its steps, per ns: of a time how many cores. nullopt: not
// sampled. `name`: "cpu_time", "main_thread_wait" …
std::optional<double> rate_in_steps(const Run& run, std::int64_t rank, std::string_view name);

// The same of the machine and the cgroups where the rank's steps were sampled; of several series the fastest.
std::optional<double> rate_on_machine(const Run& run, std::int64_t rank, std::string_view name);

// The same, the sum of all series: of bytes GB/s.
std::optional<double> sum_on_machine(const Run& run, std::int64_t rank, std::string_view name);

// The mean of a gauge of the machine, over the rank's steps; nullopt: not sampled.
std::optional<double> level_on_machine(const Run& run, std::int64_t rank, std::string_view name);

// The mean of a gauge of the GPU that the rank used, over the rank's steps; nullopt: not sampled.
std::optional<double> level_of_device(const Run& run, std::int64_t rank, std::string_view name);

// What the InfiniBand and RoCE ports of the rank's machine carry in one direction, all together; GB/s. nullopt: there
// are none, or they were not sampled.
std::optional<double> ports_bytes_per_ns(const Run& run, std::int64_t rank);

}  // namespace stepscope::diagnose
