// The group that moves most goes over the network between machines, while one that moves less has the links inside of
// them: the ranks are laid out the wrong way round.
#include <algorithm>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "diagnose/gathered.h"
#include "diagnose/groups.h"
#include "diagnose/queries.h"
#include "model/lookup.h"

namespace stepscope::diagnose::causes {
namespace {

constexpr double kFarMore = 2;  // times as many bytes

std::int64_t bytes_per_step(const Case& about, const Group& group) {
  constexpr double kMost = 1e18;  // sizes are those of a file
  return static_cast<std::int64_t>(std::min(kMost, group.bus_bytes / static_cast<double>(about.steps)));
}

void find_wrong_layout(const Case& about, std::vector<Diagnosis>& out) {
  const std::vector<Group>& all = groups(about);
  // Ranks on the machine that has most: a group must fit in there.
  std::map<std::string_view, std::int64_t> ranks;
  for (const Trace& trace : about.run.traces) ranks[machine_of(trace)]++;
  std::int64_t most_ranks = 0;
  for (const auto& [machine, count] : ranks) most_ranks = std::max(most_ranks, count);
  const auto inside = std::find_if(all.begin(), all.end(), [](const Group& one) { return one.machines == 1; });
  if (inside == all.end()) return;
  Gathered outside(about);
  const Group* heaviest = nullptr;
  for (const Group& one : all) {
    const bool fits = one.machines > 1 && one.size <= most_ranks && one.size > 1;
    if (!fits || one.bus_bytes < kFarMore * inside->bus_bytes) continue;
    if (heaviest == nullptr) heaviest = &one;
    // Inside of a machine it is as fast as the other group is there; where that is not known, at least no slower.
    const bool known = inside->bus_gb_per_s && one.bus_gb_per_s && *one.bus_gb_per_s < *inside->bus_gb_per_s;
    outside.add(one.nodes, "group " + one.name, known ? *one.bus_gb_per_s / *inside->bus_gb_per_s : 0.2,
                known ? std::min(1.0, 1.5 * *one.bus_gb_per_s / *inside->bus_gb_per_s) : 1);
  }
  if (heaviest == nullptr || !outside.worth_saying()) return;
  // What stayed inside goes between machines then. How fast that is only a group that does so says.
  for (const Group& one : all) {
    if (one.machines != 1 || one.size < 2) continue;
    const bool known = one.bus_gb_per_s && heaviest->bus_gb_per_s && *heaviest->bus_gb_per_s < *one.bus_gb_per_s;
    const double slower = known ? *one.bus_gb_per_s / *heaviest->bus_gb_per_s : 1;
    outside.add(one.nodes, "group " + one.name, slower, 1.5 * slower);
  }
  Diagnosis found = outside.diagnosis(
      {.cause = "communication",
       .sentence = "The group that communicates most goes between machines, one that does so less stays inside",
       .next = "Number the ranks so that the groups that communicate most (tensor and expert parallel) are neighbours "
               "on one machine, and data parallel goes between machines: the innermost dimension of "
               "init_device_mesh, or the order of the parallel sizes",
       .doubt = "how fast the other group is between machines is not known"});
  found.finding.where = {.phase = "communication", .op = "group " + heaviest->name, .t_ns = found.finding.where.t_ns};
  auto& evidence = found.finding.evidence;
  evidence.push_back({.text = "Bytes on the wire per step, of one rank",
                      .value = bytes_per_step(about, *heaviest),
                      .unit = Unit::bytes,
                      .query = collectives_of(heaviest->name)});
  evidence.push_back({.text = "Of group " + inside->name + ", which stays inside",
                      .value = bytes_per_step(about, *inside),
                      .unit = Unit::bytes,
                      .query = collectives_of(inside->name)});
  evidence.push_back(
      {.text = "Machines of the group", .value = static_cast<std::int64_t>(heaviest->machines), .unit = Unit::count});
  out.push_back(std::move(found));
}

}  // namespace

Cause group_across_machines_cause() {
  return {"group_across_machines", "The busiest group goes between machines", find_wrong_layout};
}

}  // namespace stepscope::diagnose::causes
