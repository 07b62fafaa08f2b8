#include "diagnose/local_ranks.h"

#include <algorithm>
#include <set>

#include "diagnose/sampled.h"
#include "model/lookup.h"
#include "model/settings.h"

namespace stepscope::diagnose {

std::int64_t local_ranks(const Case& about) {
  constexpr std::int64_t kMost = 1 << 20;  // settings of a file, which may hold anything
  if (const auto said = number_set(about.trace, "local_ranks")) return std::clamp<std::int64_t>(*said, 1, kMost);
  const std::int64_t world = about.trace.rank.world_size;
  const std::string_view machine = machine_of(about.trace);
  if (world < 2 || machine.empty()) return 1;
  std::set<std::int64_t> here{about.trace.rank.rank};
  for (const Trace& trace : about.run.traces) {
    if (trace.rank.world_size == world && machine_of(trace) == machine) here.insert(trace.rank.rank);
  }
  return std::min(std::ssize(here), world);
}

std::int64_t ranks_on_cores(const Case& about) {
  const std::int64_t ranks = local_ranks(about);
  const auto cores = number_set(about.trace, "cores");
  const auto machine = level_on_machine(about.run, about.trace.rank.rank, "online_cores");
  const bool are_bound = cores && machine && static_cast<double>(*cores) * static_cast<double>(ranks) <= *machine;
  return are_bound ? 1 : ranks;
}

}  // namespace stepscope::diagnose
