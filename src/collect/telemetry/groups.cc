#include "collect/telemetry/groups.h"

#include <algorithm>
#include <filesystem>
#include <optional>

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
      targets[pid] = numbered ? rank_target(one.rank.value_or(0)) : "pid " + std::to_string(pid);
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

std::vector<Group> GroupFinder::operator()() {
  Targets apart = find_ranks_(has_changed());
  std::erase_if(apart, [&](const auto& one) { return !watch_->has(one.first); });
  std::vector<Group> groups;
  for (const auto& [pid, target] : apart) groups.push_back({target, watch_->family(pid, apart)});
  if (!groups.empty()) return groups;
  for (const pid_t job : jobs_) {
    if (watch_->has(job)) groups.push_back({"pid " + std::to_string(job), watch_->family(job, apart)});
  }
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
