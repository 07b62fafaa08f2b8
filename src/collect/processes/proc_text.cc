#include "collect/processes/proc_text.h"

#include <algorithm>
#include <cstdlib>
#include <utility>

#include "base/whole_file.h"

namespace stepscope::collect {
namespace {

constexpr std::uint64_t kKernelThread = 0x00200000;  // PF_KTHREAD
constexpr std::uint64_t kExiting = 0x00000004;       // PF_EXITING

// Of the fields behind the name, as proc(5) lists them.
enum Field : std::size_t { kState = 0, kParent = 1, kFlags = 6, kStartTicks = 19, kFields };

constexpr std::size_t kUsualFields = 50;

}  // namespace

std::string proc_folder(const std::string& proc_root, pid_t pid) { return proc_root + "/" + std::to_string(pid); }

std::string status_of(const std::string& proc_root, pid_t pid) {
  return proc_text(proc_folder(proc_root, pid) + "/status");
}

std::string proc_text(const std::string& path) {
  std::string text = whole_file(path);
  while (!text.empty() && (text.back() == '\n' || text.back() == '\0')) text.pop_back();
  return text;
}

std::string status_field(const std::string& status, const std::string& name) {
  const std::size_t at = ("\n" + status).find("\n" + name + ":");
  if (at == std::string::npos) return {};
  const std::size_t from = status.find_first_not_of(" \t", at + name.size() + 1);
  if (from == std::string::npos) return {};
  return status.substr(from, status.find('\n', from) - from);
}

std::optional<ProcStat> ProcStat::read(const std::string& proc_root, pid_t pid) {
  const std::string text = proc_text(proc_folder(proc_root, pid) + "/stat");
  const std::size_t name_begin = text.find('(');
  const std::size_t name_end = text.rfind(')');  // the name may hold anything, brackets too
  if (name_begin == std::string::npos || name_end == std::string::npos || name_end < name_begin) return std::nullopt;
  ProcStat out;
  out.thread_name_ = text.substr(name_begin + 1, name_end - name_begin - 1);
  out.fields_.reserve(kUsualFields);
  for (std::size_t at = text.find_first_not_of(' ', name_end + 1); at != std::string::npos;) {
    const std::size_t end = std::min(text.find(' ', at), text.size());
    out.fields_.push_back(text.substr(at, end - at));
    at = text.find_first_not_of(' ', end);
  }
  if (out.fields_.size() < kFields) return std::nullopt;
  return out;
}

std::uint64_t ProcStat::number(std::size_t field) const { return std::strtoull(fields_[field].c_str(), nullptr, 10); }
bool ProcStat::ending() const { return (number(kFlags) & kExiting) != 0; }
bool ProcStat::kernel_thread() const { return (number(kFlags) & kKernelThread) != 0; }
pid_t ProcStat::parent() const { return static_cast<pid_t>(number(kParent)); }
std::uint64_t ProcStat::start_ticks() const { return number(kStartTicks); }

std::optional<std::uint64_t> start_of(const std::string& proc_root, pid_t pid) {
  const auto stat = ProcStat::read(proc_root, pid);
  if (!stat || stat->ended() || stat->ending()) return std::nullopt;
  return stat->start_ticks();
}

// "Uid:\treal\teffective\tsaved\tfile system"
std::uint32_t effective_user(const std::string& status) {
  const std::string users = status_field(status, "Uid");
  const std::size_t second = users.find_first_of(" \t");
  if (second == std::string::npos) return 0;
  return static_cast<std::uint32_t>(std::strtoul(users.c_str() + second, nullptr, 10));
}

pid_t pid_inside(const std::string& status, pid_t pid) {
  const std::string numbers = status_field(status, "NSpid");
  const std::size_t last = numbers.find_last_of(" \t");
  const long inside = std::strtol(numbers.c_str() + (last == std::string::npos ? 0 : last + 1), nullptr, 10);
  return inside > 0 ? static_cast<pid_t>(inside) : pid;
}

pid_t pid_inside_of(const std::string& proc_root, pid_t pid) { return pid_inside(status_of(proc_root, pid), pid); }

}  // namespace stepscope::collect
