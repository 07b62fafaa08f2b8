#include "collect/telemetry/groups.h"

#include <algorithm>
#include <filesystem>
#include <optional>
#include <set>
#include <utility>

#include "collect/processes/process_tree.h"
#include "collect/processes/ranks.h"
#include "run/living.h"
#include "run/ring.h"

namespace stepscope::collect::telemetry {

namespace {

// True the first time, then after 1, 2, 4 … times, and at last every 64th.
class Rarely {
 public:
  void often() { pause_ = 0; }
  bool now() {
    if (passed_++ < pause_) return false;
    passed_ = 0;
    pause_ = std::min(std::max(1, pause_ * 2), 64);
    return true;
  }

 private:
  int pause_ = 0, passed_ = 0;
};

std::string pid_target(pid_t pid) { return "pid " + std::to_string(pid); }
std::string rank_target(std::int64_t rank) { return "rank " + std::to_string(rank); }

Targets look_for_ranks(const std::string& proc_root, const std::vector<pid_t>& jobs) {
  const ProcessTable table = ProcessTable::read(proc_root);
  Targets targets;
  for (const pid_t job : jobs) {
    const auto ranks = find_ranks(table, job);
    if (!ranks) continue;
    // Spawned ranks that only know their number inside have none here: their place in the list is no rank.
    const bool numbered = ranks->size() == 1 || ranks->front().rank;
    for (const RankProcess& one : *ranks) {
      const pid_t pid = one.process.pid;
      targets[pid] = numbered ? rank_target(one.rank.value_or(0)) : pid_target(pid);
    }
  }
  return targets;
}

}  // namespace

// Others start processes all the time.
bool GroupFinder::has_changed() {
  if (!watch_->look()) return false;
  std::vector<Member> below;
  for (const pid_t job : jobs_) {
    for (const Member& member : watch_->family(job, {})) below.push_back(member);
  }
  below.swap(below_);
  return below != below_;
}

// Whether the process is there that was called so first: its number may name another one since.
bool GroupFinder::is_same(pid_t pid, const std::string& target) {
  const Member* const process = watch_->find(pid);
  if (process == nullptr) return false;
  return begun_.try_emplace({pid, target}, process->start_ticks).first->second == process->start_ticks;
}

// The ranks that are there. Two programs of one rank each, or one that a rank started, all say that they are rank 0:
// who came first is it, as samples of two processes are no series.
Targets GroupFinder::name_apart() {
  Targets apart = find_ranks_(has_changed());
  std::erase_if(apart, [&](const auto& one) { return !is_same(one.first, one.second); });
  std::map<std::string, pid_t> first;
  for (const auto& [pid, target] : apart) {
    const auto [known, is_new] = first.try_emplace(target, pid);
    const auto begun = [&](pid_t one) { return std::pair(watch_->find(one)->start_ticks, one); };
    if (!is_new && begun(pid) < begun(known->second)) known->second = pid;
  }
  for (auto& [pid, target] : apart) {
    if (first[target] != pid) target = pid_target(pid);
  }
  return apart;
}

// A process is sampled before anybody knows that it is a rank: it keeps the target that it had, and has the name too.
void GroupFinder::keep_targets(std::vector<Group>& groups) {
  const auto process = [](const Group& group) {
    return std::pair(group.members.front().pid, group.members.front().start_ticks);
  };
  std::set<std::string> taken;
  for (Group& group : groups) {
    const auto known = targets_.find(process(group));
    if (known == targets_.end()) continue;
    group.name = std::exchange(group.target, known->second);
    if (group.name == group.target) group.name.clear();
    taken.insert(group.target);
  }
  for (Group& group : groups) {
    const auto [at, is_new] = targets_.try_emplace(process(group), group.target);
    if (!is_new) continue;
    // Who was called so is called otherwise now, and keeps the target.
    if (!taken.insert(group.target).second) {
      at->second = pid_target(process(group).first);
      group.name = std::exchange(group.target, at->second);
    }
  }
}

std::vector<Group> GroupFinder::operator()() {
  const Targets apart = name_apart();
  std::vector<Group> groups;
  for (const pid_t job : jobs_) is_same(job, "");  // which is known by its first look
  for (const auto& [pid, target] : apart) groups.push_back({target, watch_->family(pid, apart), ""});
  if (groups.empty()) {
    for (const pid_t job : jobs_) {
      if (is_same(job, "")) groups.push_back({pid_target(job), watch_->family(job, apart), ""});
    }
  }
  keep_targets(groups);
  return groups;
}

FindRanks ranks_by_processes(const std::string& proc_root, std::vector<pid_t> jobs) {
  return [proc_root, jobs = std::move(jobs), found = Targets(), again = Rarely()](bool changed) mutable {
    if (changed) again.often();
    if (again.now()) found = look_for_ranks(proc_root, jobs);
    return found;
  };
}

bool is_visible(const std::string& ring) {
  static const std::string begin = run::host_in_names() + "_";
  return std::filesystem::path(ring).filename().string().starts_with(begin);
}

FindRanks ranks_by_marks(const std::string& run_folder) {
  struct Known {
    Rarely again;
    std::optional<std::pair<pid_t, std::string>> rank;  // none: it cannot be read
  };
  return [run_folder, known = std::map<std::string, Known>()](bool) mutable {
    Targets targets;
    for (const std::string& path : run::ring_files(run_folder)) {
      if (!is_visible(path)) continue;
      Known& one = known[path];
      if (one.again.now()) {
        if (const auto ring = run::read_ring(path)) {
          one.rank = {static_cast<pid_t>(ring->pid), rank_target(ring->rank)};
        }
      }
      if (one.rank) targets.insert(*one.rank);
    }
    return targets;
  };
}

}  // namespace stepscope::collect::telemetry
