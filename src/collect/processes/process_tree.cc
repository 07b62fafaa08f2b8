#include "collect/processes/process_tree.h"

#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <charconv>
#include <cstdlib>
#include <filesystem>

#include "base/whole_file.h"
#include "collect/processes/proc_text.h"

namespace stepscope::collect {
namespace {

constexpr std::size_t kMostListed = 12;

std::vector<std::string> split_at_nul(const std::string& text) {
  std::vector<std::string> out;
  for (std::size_t at = 0; at < text.size();) {
    const std::size_t end = std::min(text.find('\0', at), text.size());
    out.push_back(text.substr(at, end - at));
    at = end + 1;
  }
  return out;
}

std::optional<Process> read_process(const std::string& proc_root, pid_t pid) {
  const auto stat = ProcStat::read(proc_root, pid);
  if (!stat) return std::nullopt;
  Process out;
  out.pid = pid;
  out.thread_name = stat->thread_name();
  out.ended = stat->ended();
  out.parent = stat->parent();
  out.kernel_thread = stat->kernel_thread();
  out.start_ticks = stat->start_ticks();
  out.pid_inside = pid;
  if (out.kernel_thread) return out;  // root's, without a command line; a large machine has thousands
  out.command = split_at_nul(whole_file(proc_folder(proc_root, pid) + "/cmdline"));
  const std::string status = status_of(proc_root, pid);
  out.pid_inside = pid_inside(status, pid);
  out.user = effective_user(status);
  return out;
}

std::string file_name(const std::string& path) { return path.substr(path.rfind('/') + 1); }

bool ends_with(std::string_view text, std::string_view end) {
  return text.size() >= end.size() && text.substr(text.size() - end.size()) == end;
}

// Index of the word behind python's own options; "-m" and "-c" end them. 0: no python, or nothing behind.
std::size_t script_index(const std::vector<std::string>& command) {
  if (command.empty() || file_name(command[0]).rfind("python", 0) != 0) return 0;
  for (std::size_t i = 1; i < command.size(); ++i) {
    if (command[i] == "-X" || command[i] == "-W") {
      ++i;
    } else if (command[i].empty() || command[i].front() != '-' || command[i] == "-m" || command[i] == "-c") {
      return i;
    }
  }
  return 0;
}

// The path of a script as the process was given it, from the folder that the process is in.
std::filesystem::path script_path(const std::string& proc_root, const Process& process, const std::string& script) {
  std::error_code failed;
  const auto folder = std::filesystem::read_symlink(proc_folder(proc_root, process.pid) + "/cwd", failed);
  return (folder / script).lexically_normal();  // an absolute script stays what it is
}

bool has_name(const std::string& proc_root, const Process& process, std::string_view text) {
  const std::string name = name_of(process);
  if (name == text || name == std::string(text) + ".py") return true;
  const std::size_t script = script_index(process.command);
  if (script == 0 || text.find('/') == std::string_view::npos) return false;
  if (process.command[script] == text || ends_with(process.command[script], "/" + std::string(text))) return true;
  std::error_code failed;
  const auto wanted = std::filesystem::absolute(text, failed).lexically_normal();
  return script_path(proc_root, process, process.command[script]) == wanted;
}

Error several(std::string_view text, const std::vector<const Process*>& matches) {
  std::string list;
  for (std::size_t i = 0; i < matches.size() && i < kMostListed; ++i) {
    list += "\n  " + std::to_string(matches[i]->pid) + "  " + command_text(*matches[i]);
  }
  if (matches.size() > kMostListed) list += "\n  and " + std::to_string(matches.size() - kMostListed) + " more";
  return {ErrorKind::usage,
          std::to_string(matches.size()) + " processes are named " + std::string(text) + ":" + list,
          {},
          {},
          "name one by its number"};
}

Result<Process> find_by_name(const ProcessTable& table, std::string_view text) {
  std::vector<const Process*> matches;
  for (const auto& [pid, process] : table.all()) {
    // Ourselves, and what started us: our own command line holds the name as well.
    const bool us = pid == getpid() || (table.find(getpid()) != nullptr && table.is_below(*table.find(getpid()), pid));
    if (!process.ended && !us && has_name(table.proc_root(), process, text)) matches.push_back(&process);
  }
  std::vector<const Process*> topmost;
  for (const Process* process : matches) {
    if (std::none_of(matches.begin(), matches.end(),
                     [&](auto* other) { return table.is_below(*process, other->pid); })) {
      topmost.push_back(process);
    }
  }
  if (topmost.empty()) {
    return fail({ErrorKind::not_found,
                 "no process runs " + std::string(text),
                 {},
                 {},
                 "Take a PID, or the name of the script as ps -f shows it"});
  }
  const auto same_parent = [&](auto* process) { return process->parent == topmost.front()->parent; };
  const Process* parent = table.find(topmost.front()->parent);
  const bool launched = parent != nullptr && parent->pid != 1 && script_index(parent->command) != 0;
  if (topmost.size() == 1 || (launched && std::all_of(topmost.begin(), topmost.end(), same_parent)))
    return *topmost.front();
  return fail(several(text, topmost));
}

}  // namespace

ProcessTable ProcessTable::read(const std::string& proc_root) {
  ProcessTable out;
  out.proc_root_ = proc_root;
  std::error_code failed;
  for (const auto& entry : std::filesystem::directory_iterator(proc_root, failed)) {
    const std::string name = entry.path().filename().string();
    if (name.empty() || !std::all_of(name.begin(), name.end(), [](char c) { return c >= '0' && c <= '9'; })) continue;
    const auto pid = static_cast<pid_t>(std::strtol(name.c_str(), nullptr, 10));
    if (auto process = read_process(proc_root, pid)) out.processes_.emplace(pid, std::move(*process));
  }
  return out;
}

const Process* ProcessTable::find(pid_t pid) const {
  const auto at = processes_.find(pid);
  return at == processes_.end() ? nullptr : &at->second;
}

std::vector<const Process*> ProcessTable::children_of(pid_t pid) const {
  std::vector<const Process*> out;
  for (const auto& [ignored, process] : processes_) {
    if (process.parent == pid && !process.ended) out.push_back(&process);
  }
  return out;
}

bool ProcessTable::is_below(const Process& process, pid_t ancestor) const {
  const Process* at = &process;
  for (std::size_t steps = 0; at != nullptr && steps <= processes_.size(); ++steps) {
    if (at->parent == ancestor) return true;
    at = find(at->parent);
  }
  return false;
}

std::optional<std::map<std::string, std::string>> environment_of(const std::string& proc_root, pid_t pid) {
  const std::string text = whole_file(proc_folder(proc_root, pid) + "/environ");
  if (text.empty()) return std::nullopt;
  std::map<std::string, std::string> out;
  for (const std::string& entry : split_at_nul(text)) {
    const std::size_t sign = entry.find('=');
    if (sign != std::string::npos) out.try_emplace(entry.substr(0, sign), entry.substr(sign + 1));
  }
  return out;
}

std::string name_of(const Process& process) {
  const std::size_t script = script_index(process.command);
  if (script == 0) return process.command.empty() ? process.thread_name : file_name(process.command[0]);
  if (process.command[script] == "-m" && script + 1 < process.command.size()) return process.command[script + 1];
  return file_name(process.command[script]);
}

std::string command_text(const Process& process, std::size_t most) {
  std::string out;
  for (const std::string& word : process.command) out += (out.empty() ? "" : " ") + word;
  std::replace_if(
      out.begin(), out.end(), [](unsigned char c) { return c < 0x20; }, ' ');
  if (out.size() > most) out = out.substr(0, most - 3) + "...";
  return out;
}

Result<Process> find_process(const ProcessTable& table, std::string_view text) {
  pid_t pid = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), pid);
  if (error != std::errc{} || end != text.data() + text.size()) return find_by_name(table, text);
  const Process* found = table.find(pid);
  if (found != nullptr && !found->ended) return *found;
  return fail({ErrorKind::not_found,
               "there is no process " + std::string(text) + (found != nullptr ? " any more" : " that we can see"),
               {},
               {},
               "Take the number that ps shows here: inside a container a process has another one"});
}

}  // namespace stepscope::collect
