// Which processes belong together: a rank and what works for it.
#include <map>

#include "collect/processes/process_tree.h"
#include "collect/processes/ranks.h"
#include "collect/telemetry/sampler.h"

namespace stepscope::collect::telemetry {
namespace {

Member member_of(const Process& process) { return {process.pid, process.start_ticks, process.parent}; }

// The process, and all below it that are not below one of the others.
void gather(const ProcessTable& table, const Process& process, const std::map<pid_t, std::string>& others,
            Group& group) {
  group.members.push_back(member_of(process));
  for (const Process* child : table.children_of(process.pid)) {
    if (!child->ended && !others.contains(child->pid)) gather(table, *child, others, group);
  }
}

}  // namespace

std::vector<Group> groups_of(const Roots& roots, pid_t job) {
  const ProcessTable table = ProcessTable::read(roots.proc);
  const Process* const top = table.find(job);
  if (top == nullptr || top->ended) return {};
  std::map<pid_t, std::string> targets;
  if (const auto ranks = find_ranks(table, job)) {
    for (const RankProcess& one : *ranks) {
      targets[one.process.pid] = "rank " + std::to_string(one.rank.value_or(0));
    }
    // Spawned ranks that only know their number inside have none here: their place in the list is no rank.
    if (ranks->size() > 1 && !ranks->front().rank) {
      for (auto& [pid, target] : targets) target = "pid " + std::to_string(pid);
    }
  }
  if (targets.empty()) targets[job] = "pid " + std::to_string(job);
  std::vector<Group> groups;
  for (const auto& [pid, target] : targets) {
    if (const Process* const process = table.find(pid))
      gather(table, *process, targets, groups.emplace_back(Group{target, {}}));
  }
  return groups;
}

}  // namespace stepscope::collect::telemetry
