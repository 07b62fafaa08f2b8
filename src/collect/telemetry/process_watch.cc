#include "collect/telemetry/process_watch.h"

#include <dirent.h>

#include <algorithm>
#include <charconv>
#include <cstring>
#include <memory>

#include "collect/processes/proc_text.h"
#include "collect/telemetry/numbers.h"

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

// "0.20 0.18 0.12 1/80 11206"
std::optional<std::int64_t> ProcessWatch::newest_number() {
  const std::string_view text = load_.read();
  const std::size_t blank = text.rfind(' ');
  return blank == text.npos ? std::nullopt : first_number(text.substr(blank));
}

bool ProcessWatch::is_new(pid_t pid, std::optional<std::int64_t> before) const {
  if (!before || !newest_) return true;
  const bool is_above = pid > *before, is_below = pid <= *newest_;
  return *before <= *newest_ ? is_above && is_below : is_above || is_below;  // numbers go round
}

void ProcessWatch::add(const Member& process) {
  processes_[process.pid] = {process, process.parent};
  children_.emplace(process.parent, process.pid);
}

void ProcessWatch::hang_on(At process, pid_t above) {
  children_.erase({process->second.above, process->first});
  process->second.above = above;
  children_.emplace(above, process->first);
}

void ProcessWatch::erase(At process) {
  const auto [pid, known] = *process;
  children_.erase({known.above, pid});
  processes_.erase(process);
  for (auto child = children_.lower_bound({pid, 0}); child != children_.end() && child->first == pid;) {
    const auto next = std::next(child);
    if (const auto left = processes_.find(child->second); left != processes_.end()) hang_on(left, known.above);
    child = next;
  }
}

bool ProcessWatch::look() {
  const std::optional<std::int64_t> before = newest_;
  newest_ = newest_number();
  if (!newest_ || newest_ != before) list_.at_once();
  if (!list_.now()) return false;
  const std::vector<pid_t> now = listed(proc_root_);
  bool changed = false;
  for (auto at = processes_.begin(); at != processes_.end();) {
    const auto next = std::next(at);
    if (!std::binary_search(now.begin(), now.end(), at->first)) {
      erase(at);
      changed = true;
    }
    at = next;
  }
  for (const pid_t pid : now) {
    const auto known = processes_.find(pid);
    if (known != processes_.end() && !is_new(pid, before)) continue;
    const auto stat = ProcStat::read(proc_root_, pid);
    if (!stat || stat->ended()) continue;
    const Member process{pid, stat->start_ticks(), stat->parent(), has_looked_};
    if (known != processes_.end()) {
      if (known->second.member.start_ticks == process.start_ticks) continue;
      erase(known);  // another process has its number
    }
    add(process);
    changed = true;
  }
  has_looked_ = true;
  return changed;
}

const Member* ProcessWatch::find(pid_t pid) const {
  const auto known = processes_.find(pid);
  return known == processes_.end() ? nullptr : &known->second.member;
}

std::vector<Member> ProcessWatch::family(pid_t top, const std::map<pid_t, std::string>& apart) const {
  std::vector<Member> out;
  std::set<pid_t> seen{top};  // PIDs that are used again could make a circle
  std::vector<pid_t> next{top};
  while (!next.empty()) {
    const pid_t pid = next.back();
    next.pop_back();
    if (const Member* const member = find(pid)) out.push_back(*member);
    std::vector<pid_t> below;
    for (auto child = children_.lower_bound({pid, 0}); child != children_.end() && child->first == pid; ++child) {
      if (!apart.contains(child->second) && seen.insert(child->second).second) below.push_back(child->second);
    }
    next.insert(next.end(), below.rbegin(), below.rend());
  }
  return out;
}

}  // namespace stepscope::collect::telemetry
