// Processes of a job that the hooks cannot come to by themselves: `python -I`, -E and -S leave PYTHONPATH or
// sitecustomize out, and some programs start others with an empty environment. They are attached to once they have
// torch loaded.
#pragma once

#include <sys/types.h>

#include <chrono>
#include <map>
#include <string>
#include <vector>

#include "collect/attach.h"

namespace stepscope::collect {

// Why a process of the job runs without the hooks: "python -I", or that its environment lacks ours; empty: it does not.
std::string why_without_hooks(const Process& process, const std::string& proc_root = "/proc");

class LateAttach {
 public:
  LateAttach(std::string hooks, std::string run_folder, std::string capture)
      : hooks_(std::move(hooks)), run_folder_(std::move(run_folder)), capture_(std::move(capture)) {}

  // Looks at the processes below `job`, unless it did lately: after 1, 2, 4 … 64 s. One sentence for each process that
  // it attached to or could not.
  std::vector<std::string> look(pid_t job);

 private:
  bool has_note(pid_t pid) const;
  std::string enter(const RankProcess& rank, const std::string& why);  // empty: to be tried again

  std::string hooks_, run_folder_, capture_;
  std::chrono::steady_clock::time_point next_ = std::chrono::steady_clock::now() + std::chrono::seconds(1);
  std::chrono::seconds pause_{1};
  std::map<pid_t, int> tries_;  // those that are settled: kMostTries
};

}  // namespace stepscope::collect
