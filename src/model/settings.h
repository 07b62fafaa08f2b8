// What the hooks noted of the job's settings in torch and of its machine, beside each recording.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

#include "model/trace.h"

namespace stepscope {

// Its JSON ("true", "2", "\"highest\""); empty: not noted. `name`: "torch_threads", "cores", "anomaly_mode" …
std::string_view setting(const Trace& trace, std::string_view name);
std::optional<std::int64_t> number_set(const Trace& trace, std::string_view name);
// Of a note in thousandths, such as "cores_speed_permille", the ratio.
std::optional<double> ratio_set(const Trace& trace, std::string_view name);
inline bool is_set(const Trace& trace, std::string_view name) { return setting(trace, name) == "true"; }

// Share of the batches that the workers of its data loader had made before they were asked for; nullopt: not noted.
std::optional<double> batches_ready(const Trace& trace);
inline constexpr double kWorkersKeepUp = 0.9;  // with this share ready, it is not the workers that are waited for

}  // namespace stepscope
