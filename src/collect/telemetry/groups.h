// Which processes belong together: a rank and what works for it. A functor for Sampler::start, asked about once a
// second.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "collect/telemetry/process_watch.h"

namespace stepscope::collect::telemetry {

// Targets by PID: "rank 0".
using Targets = std::map<pid_t, std::string>;

// Which of the processes are ranks; `changed`: some of the jobs have come or gone since it was asked last.
using FindRanks = std::function<Targets(bool changed)>;

class GroupFinder {
 public:
  // A job without ranks is a group of its own, "pid N"; so is one of two that say that they are the same rank.
  GroupFinder(const Roots& roots, std::vector<pid_t> jobs, FindRanks find_ranks)
      : watch_(std::make_shared<ProcessWatch>(roots.proc)),
        jobs_(std::move(jobs)),
        find_ranks_(std::move(find_ranks)) {}

  std::vector<Group> operator()();

 private:
  bool has_changed();
  bool is_same(pid_t pid, const std::string& target);
  Targets name_apart();
  void keep_targets(std::vector<Group>& groups);

  std::shared_ptr<ProcessWatch> watch_;                             // functors are copied, its file is not
  std::vector<Member> below_;                                       // all processes of the jobs
  std::map<std::pair<pid_t, std::string>, std::uint64_t> begun_;    // when who was called so first had begun, in ticks
  std::map<std::pair<pid_t, std::uint64_t>, std::string> targets_;  // of groups, by the process and when it began
  std::vector<pid_t> jobs_;
  FindRanks find_ranks_;
};

// By looking at the processes themselves, as attach does. That is dear: done when processes of the jobs changed, else
// ever more rarely.
FindRanks ranks_by_processes(const std::string& proc_root, std::vector<pid_t> jobs);
// By the marks that the ranks of this run keep on this host, whichever task of a launch started them; each is read when
// it is new and now and then again: a rank may learn its number late.
FindRanks ranks_by_marks(const std::string& run_folder);

// Whether the process that keeps these marks is one that we see by its number: by the file's name, since a run may have
// thousands of them on other hosts. In other process namespaces the numbers are those of strangers here.
bool is_visible(const std::string& ring);

}  // namespace stepscope::collect::telemetry
