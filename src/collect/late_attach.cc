#include "collect/late_attach.h"

#include <algorithm>
#include <thread>

#include "run/manifest.h"

namespace stepscope::collect {
namespace {

constexpr std::chrono::seconds kLongestPause{64};
constexpr int kMostTries = 60;  // one a second, while torch is still being imported
constexpr std::chrono::milliseconds kForTheNote{300};

bool is_python(const std::string& program) {
  const std::size_t slash = program.rfind('/');
  return program.compare(slash == std::string::npos ? 0 : slash + 1, 6, "python") == 0;
}

// Python's own options that take a word of their own, as -W and -X do.
bool takes_word(const std::string& option) { return option == "-W" || option == "-X"; }

}  // namespace

std::string why_without_hooks(const Process& process, const std::string& proc_root) {
  const auto& command = process.command;
  if (!command.empty() && is_python(command.front())) {
    for (std::size_t i = 1; i < command.size(); ++i) {
      const std::string& word = command[i];
      if (word.size() < 2 || word[0] != '-' || word[1] == '-' || word[1] == 'c' || word[1] == 'm') break;
      if (takes_word(word)) {
        ++i;
        continue;
      }
      if (word[1] == 'W' || word[1] == 'X') continue;
      const std::size_t found = word.find_first_of("IES");
      if (found != std::string::npos) return std::string("python -") + word[found] + " keeps the hooks out";
    }
  }
  const auto environment = environment_of(proc_root, process.pid);
  if (environment && !environment->contains("STEPSCOPE_RUN")) return "it was started with another environment";
  return "";
}

bool LateAttach::has_note(pid_t pid) const {
  std::vector<std::string> problems;
  const auto notes = run::read_process_notes(run_folder_, problems);
  return std::any_of(notes.begin(), notes.end(), [pid](const run::ProcessNote& note) { return note.pid == pid; });
}

// Torch shows in the mapped files before Python has finished importing it, and the hooks wait for that: they are asked
// again until their note is there.
std::string LateAttach::enter(const RankProcess& rank, const std::string& why) {
  int& tries = tries_[rank.process.pid];
  const std::string about = why + " (process " + std::to_string(rank.process.pid) + "): ";
  const Attachment done = attach({rank}, attach_source(hooks_, run_folder_, capture_));
  if (!done.failed.empty()) {
    tries = kMostTries;
    return about + "not recorded, " + to_text(done.failed.front().why);
  }
  std::this_thread::sleep_for(kForTheNote);
  if (has_note(rank.process.pid)) {
    tries = kMostTries;
    return about + "attached to it; its steps are counted from there";
  }
  return ++tries < kMostTries ? "" : about + "not recorded: torch was not imported to its end";
}

std::vector<std::string> LateAttach::look(pid_t job) {
  std::vector<std::string> said;
  if (std::chrono::steady_clock::now() < next_) return said;
  const ProcessTable table = ProcessTable::read();
  bool again = false;
  if (const auto ranks = find_ranks(table, job)) {
    for (const RankProcess& rank : *ranks) {
      const pid_t pid = rank.process.pid;
      if (tries_[pid] == kMostTries || !(pid == job || table.is_below(rank.process, job))) continue;
      const std::string why = why_without_hooks(rank.process);
      if (why.empty() || has_note(pid)) {
        tries_[pid] = kMostTries;
        continue;
      }
      if (std::string sentence = enter(rank, why); !sentence.empty()) said.push_back(std::move(sentence));
      again = again || tries_[pid] < kMostTries;
    }
  }
  pause_ = again || !said.empty() ? std::chrono::seconds(1) : std::min(pause_ * 2, kLongestPause);
  next_ = std::chrono::steady_clock::now() + pause_;
  return said;
}

}  // namespace stepscope::collect
