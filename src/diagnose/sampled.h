// What was sampled of a rank beside its steps.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

#include "model/trace.h"

namespace stepscope::diagnose {

// The marks of all steps of a rank; nullptr: there are none.
const Trace* history_of(const Run& run, std::int64_t rank);

// How fast a counter of a rank grew while the rank made its steps, per ns: of a time how many cores. nullopt: not
// sampled. `name`: "cpu_time", "main_thread_wait" …
std::optional<double> rate_in_steps(const Run& run, std::int64_t rank, std::string_view name);

// The same of the machine and the cgroups where the rank's steps were sampled; of several series the fastest.
std::optional<double> rate_on_machine(const Run& run, std::int64_t rank, std::string_view name);

}  // namespace stepscope::diagnose
