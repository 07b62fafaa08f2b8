#include "diagnose/local_ranks.h"

#include <algorithm>
#include <set>

#include "model/lookup.h"
#include "model/settings.h"

namespace stepscope::diagnose {

std::int64_t local_ranks(const Case& about) {
  constexpr std::int64_t kMost = 1 << 20;  // settings of a file, which may hold anything
  std::set<std::int64_t> here{about.trace.rank.rank};
  const std::string_view machine = machine_of(about.trace);
  for (const Trace& trace : about.run.traces) {
    if (!machine.empty() && machine_of(trace) == machine) here.insert(trace.rank.rank);
  }
  return std::clamp<std::int64_t>(number_set(about.trace, "local_ranks").value_or(1), std::ssize(here), kMost);
}

}  // namespace stepscope::diagnose
