#include "diagnose/groups.h"

#include <algorithm>
#include <map>
#include <set>

#include "diagnose/communicating.h"
#include "model/answer_parts.h"
#include "model/lookup.h"

namespace stepscope::diagnose {
namespace {

constexpr std::int64_t kLargeBytes = 64 << 20;  // of less latency is a part that counts

struct Speeds {
  Group group;
  std::set<std::uint32_t> traces;
  std::vector<double> gb_per_s;
};

void add(const Case& about, const Collective& one, Speeds& to) {
  const Match& row = about.run.matches.rows[one.match];
  const auto members = about.run.matches.of(one.match);
  for (const MatchMember& member : members) to.traces.insert(member.trace);
  to.group.size = std::max({to.group.size, about.run.matches.lanes[row.lane].size, std::ssize(members)});
  const auto factor = bus_factor(row.kind, to.group.size);
  if (row.bytes <= 0 || !factor || *factor <= 0) return;
  std::int64_t cost_ns = 0;
  for (const std::uint32_t node : one.nodes) cost_ns = std::max(cost_ns, about.cost_ns(node));
  to.group.nodes.insert(to.group.nodes.end(), one.nodes.begin(), one.nodes.end());
  to.group.bus_bytes += static_cast<double>(row.bytes) * *factor;
  const bool met = std::ssize(members) == to.group.size;
  if (met && row.bytes >= kLargeBytes && cost_ns > 0) {
    to.gb_per_s.push_back(static_cast<double>(row.bytes) * *factor / static_cast<double>(cost_ns));
  }
}

std::size_t machines_of(const Run& run, const std::set<std::uint32_t>& traces) {
  std::set<std::string_view> machines;
  for (const std::uint32_t trace : traces) {
    const std::string_view machine = machine_of(run.traces[trace]);
    if (machine.empty()) return 0;
    machines.insert(machine);
  }
  return machines.size();
}

std::vector<Group> look_at_groups(const Case& about) {
  std::map<std::uint32_t, Speeds> by_lane;
  for (const Collective& one : communicating(about).collectives) {
    const std::uint32_t lane = about.run.matches.rows[one.match].lane;
    if (about.run.matches.lanes[lane].recorded) add(about, one, by_lane[lane]);
  }
  std::vector<Group> out;
  for (auto& [lane, of] : by_lane) {
    Group group = std::move(of.group);
    if (group.bus_bytes <= 0) continue;
    group.name = about.run.matches.lanes[lane].name;
    group.traces.assign(of.traces.begin(), of.traces.end());
    if (std::ssize(group.traces) == group.size) group.machines = machines_of(about.run, of.traces);
    std::sort(of.gb_per_s.begin(), of.gb_per_s.end());
    if (!of.gb_per_s.empty()) group.bus_gb_per_s = quantile(of.gb_per_s, 0.5);
    out.push_back(std::move(group));
  }
  std::stable_sort(out.begin(), out.end(), [](const Group& a, const Group& b) { return a.bus_bytes > b.bus_bytes; });
  return out;
}

}  // namespace

const std::vector<Group>& groups(const Case& about) { return about.shared<std::vector<Group>>(look_at_groups); }

}  // namespace stepscope::diagnose
