#include "collect/processes/ranks.h"

#include <algorithm>
#include <charconv>
#include <map>
#include <set>
#include <string_view>

#include "collect/processes/memory_map.h"
#include "collect/processes/obstacles.h"

namespace stepscope::collect {
namespace {

using Environment = std::map<std::string, std::string>;

std::optional<int> number_of(const Environment& environment, const char* name) {
  const auto at = environment.find(name);
  int out = 0;
  if (at == environment.end()) return std::nullopt;
  const char* end = at->second.data() + at->second.size();
  const auto [stop, error] = std::from_chars(at->second.data(), end, out);
  if (error != std::errc{} || stop != end) return std::nullopt;
  return out;
}

std::string value_of(const Environment& environment, const char* name) {
  const auto at = environment.find(name);
  return at == environment.end() ? std::string() : at->second;
}

bool has_word(const Process& process, std::string_view part) {
  return std::any_of(process.command.begin(), process.command.end(),
                     [&](const std::string& word) { return word.find(part) != std::string::npos; });
}

bool is_launcher(const Process& process) {
  const std::string name = name_of(process);
  for (const char* known : {"torchrun", "torch.distributed.run", "torch.distributed.launch", "accelerate",
                            "accelerate.commands.launch", "deepspeed", "deepspeed.launcher.launch", "horovodrun"}) {
    if (name == known) return true;
  }
  return false;
}

bool is_helper(const Process& process) {
  return has_word(process, "multiprocessing.resource_tracker") || has_word(process, "multiprocessing.forkserver") ||
         has_word(process, "torch/_inductor/compile_worker") || has_word(process, "torch._inductor.compile_worker") ||
         process.thread_name.rfind("pt_data", 0) == 0;
}

bool is_spawned(const Process& process) { return has_word(process, "multiprocessing.spawn"); }

// Made by the parent out of itself. A program that it merely started (a notebook, a test runner, a sweep) is a job of
// its own, even where the parent has torch loaded too.
bool is_part_of(const Process& process, const Process& parent) {
  return process.command == parent.command || is_spawned(process) || is_helper(process);
}

// Looks at the processes of one job; what it reads of a process is kept.
class Job {
 public:
  explicit Job(const ProcessTable& table) : table_(table) {}

  bool has_torch(const Process& process) {
    const auto [at, fresh] = torch_.try_emplace(process.pid, false);
    if (!fresh || process.kernel_thread) return at->second;
    for (const Mapping& mapping : read_memory_map(table_.proc_root(), process.pid)) {
      if (mapping.path.find("/libtorch_cpu.so") == std::string::npos &&
          mapping.path.find("/torch/_C.") == std::string::npos) {
        continue;
      }
      return at->second = true;
    }
    return false;
  }

  const Environment& environment(const Process& process) {
    const auto [at, fresh] = environments_.try_emplace(process.pid);
    if (fresh) at->second = environment_of(table_.proc_root(), process.pid).value_or(Environment{});
    return at->second;
  }

  bool is_worker_of_torch(const Process& process) {
    return has_torch(process) && !is_launcher(process) && !is_helper(process);
  }

  // Alone, without a look at what is above it.
  bool says_rank(const Process& process) {
    const Environment& own = environment(process);
    return (own.count("RANK") > 0 || own.count("LOCAL_RANK") > 0) && is_worker_of_torch(process);
  }

  // The topmost processes with RANK at and below `from`.
  void ranks_below(const Process& from, std::vector<const Process*>& out) {
    if (says_rank(from)) {
      out.push_back(&from);
      return;
    }
    for (const Process* child : table_.children_of(from.pid)) ranks_below(*child, out);
  }

  // The same without variables: the topmost torch processes, or their spawned children.
  void unnamed_ranks_below(const Process& from, std::vector<const Process*>& out) {
    std::vector<const Process*> spawned;
    if (is_worker_of_torch(from)) {
      for (const Process* child : table_.children_of(from.pid)) {
        if (is_spawned(*child) && is_worker_of_torch(*child)) spawned.push_back(child);
      }
      out.insert(out.end(), spawned.begin(), spawned.end());
      if (spawned.empty()) out.push_back(&from);
      return;
    }
    for (const Process* child : table_.children_of(from.pid)) unnamed_ranks_below(*child, out);
  }

  // From a worker of a rank to the rank; from a spawned child to its parent; else the process itself.
  const Process* job_process(const Process& process) {
    const Process* best = &process;
    const Process* at = &process;
    for (int depth = 0; depth < 64; ++depth) {
      const Process* const child = at;
      at = table_.find(at->parent);
      if (at == nullptr || !has_torch(*at) || is_launcher(*at) || !is_part_of(*child, *at)) break;
      best = at;
    }
    return best;
  }

  bool same_group(const Process& a, const Process& b) {
    const Environment& first = environment(a);
    const Environment& second = environment(b);
    if (a.user != b.user || value_of(first, "MASTER_PORT").empty()) return false;
    for (const char* name : {"MASTER_PORT", "MASTER_ADDR", "TORCHELASTIC_RUN_ID"}) {
      if (value_of(first, name) != value_of(second, name)) return false;
    }
    return true;
  }

  // Ranks of the same group that another agent on this host started.
  void add_relatives(std::vector<const Process*>& ranks) {
    if (ranks.empty() || !says_rank(*ranks.front())) return;
    const Process* first = ranks.front();
    for (const auto& [pid, process] : table_.all()) {
      if (process.ended || std::find(ranks.begin(), ranks.end(), &process) != ranks.end()) continue;
      if (!says_rank(process) || !same_group(*first, process)) continue;
      const Process* parent = table_.find(process.parent);
      if (parent == nullptr || !says_rank(*parent)) ranks.push_back(&process);
    }
  }

  RankProcess described(const Process& process) {
    const Environment& own = environment(process);
    return {process, number_of(own, "RANK"), number_of(own, "LOCAL_RANK"), number_of(own, "WORLD_SIZE")};
  }

 private:
  const ProcessTable& table_;
  std::map<pid_t, bool> torch_;
  std::map<pid_t, Environment> environments_;
};

Error nothing_there(const ProcessTable& table, const Process& process) {
  if (read_memory_map(table.proc_root(), process.pid).empty() && !process.kernel_thread) {
    return why_refused(table.proc_root(), process.pid, EPERM);
  }
  return {
      ErrorKind::not_found,
      "process " + std::to_string(process.pid) + " (" + name_of(process) + ") and those below it have no torch loaded",
      {},
      {},
      "Wait until the job has imported torch, or name another process"};
}

}  // namespace

Result<std::vector<RankProcess>> find_ranks(const ProcessTable& table, pid_t pid) {
  const Process* named = table.find(pid);
  if (named == nullptr || named->ended) {
    return fail({ErrorKind::not_found,
                 "there is no process " + std::to_string(pid) + " that we can see",
                 {},
                 {},
                 "Take the number that ps shows here"});
  }
  Job job(table);
  const Process* from = job.has_torch(*named) && !is_launcher(*named) ? job.job_process(*named) : named;
  std::vector<const Process*> ranks;
  job.ranks_below(*from, ranks);
  // One rank was named: its siblings hang below the same launcher.
  const Process* parent = table.find(from->parent);
  if (ranks.size() == 1 && ranks.front() == from && parent != nullptr && is_launcher(*parent)) {
    ranks.clear();
    job.ranks_below(*parent, ranks);
  }
  job.add_relatives(ranks);
  if (ranks.empty()) job.unnamed_ranks_below(*from, ranks);
  if (ranks.empty()) return fail(nothing_there(table, *named));
  std::vector<RankProcess> out;
  for (const Process* rank : ranks) out.push_back(job.described(*rank));
  std::stable_sort(out.begin(), out.end(), [](const RankProcess& a, const RankProcess& b) {
    return std::pair(a.rank.value_or(0), a.process.pid) < std::pair(b.rank.value_or(0), b.process.pid);
  });
  return out;
}

}  // namespace stepscope::collect
