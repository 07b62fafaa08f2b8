// The file of a rank as it is, for Perfetto's page, which reads the same formats in the browser.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "base/result.h"
#include "model/trace.h"

namespace stepscope::serve {

// Held in memory while it is sent; Perfetto's page takes no file of gigabytes either.
inline constexpr std::uint64_t kMostTraceBytes = std::uint64_t{256} << 20;

// Nothing: Perfetto's page does not read the format, it is in several files, or it is larger than that.
std::optional<std::uint64_t> given_bytes(const Trace& trace);

Result<std::string> trace_file(const Trace& trace);

}  // namespace stepscope::serve
