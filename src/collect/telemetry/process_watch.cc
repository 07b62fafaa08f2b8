#include "collect/telemetry/process_watch.h"

#include <dirent.h>

#include <algorithm>
#include <charconv>
#include <cstring>
#include <memory>

#include "collect/processes/proc_text.h"

namespace stepscope::collect::telemetry {
namespace {

std::vector<pid_t> listed(const std::string& proc_root) {
  std::vector<pid_t> pids;
  const std::unique_ptr<DIR, int (*)(DIR*)> folder(opendir(proc_root.c_str()), closedir);
  while (const dirent* const entry = folder ? readdir(folder.get()) : nullptr) {
    pid_t pid = 0;
    const char* const end = entry->d_name + std::strlen(entry->d_name);
    const auto read = std::from_chars(entry->d_name, end, pid);
    if (read.ec == std::errc() && read.ptr == end && pid > 0) pids.push_back(pid);
  }
  std::sort(pids.begin(), pids.end());
  return pids;
}

}  // namespace

bool ProcessWatch::look() {
  const std::vector<pid_t> now = listed(proc_root_);
  bool changed = false;
  for (auto at = processes_.begin(); at != processes_.end();) {
    if (std::binary_search(now.begin(), now.end(), at->first)) {
      ++at;
      continue;
    }
    const auto [first, last] = children_.equal_range(at->second.parent);
    children_.erase(std::find_if(first, last, [&](const auto& child) { return child.second == at->first; }));
    at = processes_.erase(at);
    changed = true;
  }
  for (const pid_t pid : now) {
    if (processes_.contains(pid)) continue;
    const auto stat = ProcStat::read(proc_root_, pid);
    if (!stat || stat->ended()) continue;
    processes_[pid] = {pid, stat->start_ticks(), stat->parent()};
    children_.emplace(stat->parent(), pid);
    changed = true;
  }
  return changed;
}

void ProcessWatch::add_family(pid_t top, const std::map<pid_t, std::string>& apart, std::vector<Member>& out) const {
  const auto known = processes_.find(top);
  if (known != processes_.end()) out.push_back(known->second);
  if (out.size() > processes_.size()) return;  // a circle, as PIDs that are used again could make
  const auto [first, last] = children_.equal_range(top);
  for (auto child = first; child != last; ++child) {
    if (!apart.contains(child->second) && child->second != top) add_family(child->second, apart, out);
  }
}

std::vector<Member> ProcessWatch::family(pid_t top, const std::map<pid_t, std::string>& apart) const {
  std::vector<Member> out;
  add_family(top, apart, out);
  return out;
}

}  // namespace stepscope::collect::telemetry
