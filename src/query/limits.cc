#include "query/limits.h"

#include <fmt/format.h>

namespace stepscope::query {

Error out_of_time(const Limits& limits) {
  return {ErrorKind::too_large, fmt::format("the query took longer than its limit of {} s", limits.seconds), "",
          std::nullopt, "Narrow it (where rank = 0, a time range), or allow more with --timeout SECONDS"};
}

Error out_of_memory(const Limits& limits) {
  return {ErrorKind::too_large,
          fmt::format("the query wants more memory than its limit of {} MiB", limits.memory_bytes >> 20), "",
          std::nullopt, "Narrow it, or aggregate before sorting and joining"};
}

}  // namespace stepscope::query
