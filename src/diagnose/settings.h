// What the hooks noted of the job's settings in torch and of its machine, beside each recording.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

#include "model/trace.h"

namespace stepscope::diagnose {

// Its JSON ("true", "2", "\"highest\""); empty: not noted. `name`: "torch_threads", "cores", "anomaly_mode" …
std::string_view setting(const Trace& trace, std::string_view name);
std::optional<std::int64_t> number_set(const Trace& trace, std::string_view name);
inline bool is_set(const Trace& trace, std::string_view name) { return setting(trace, name) == "true"; }

}  // namespace stepscope::diagnose
