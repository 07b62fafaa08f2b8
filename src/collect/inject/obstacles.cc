#include "collect/inject/obstacles.h"

#include <elf.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <sstream>
#include <utility>
#include <vector>

#include "collect/inject/memory_map.h"

namespace stepscope::collect {
namespace {

constexpr unsigned long kKernelThread = 0x00200000;  // PF_KTHREAD
constexpr unsigned long kExiting = 0x00000004;       // PF_EXITING: ptrace and the memory map are refused already
constexpr unsigned kTraceCapability = 19;            // CAP_SYS_PTRACE

std::string folder_of(const std::string& proc_root, pid_t pid) { return proc_root + "/" + std::to_string(pid); }

std::string text_of(const std::string& path) {
  std::ifstream file(path);
  std::ostringstream out;
  out << file.rdbuf();
  std::string text = out.str();
  while (!text.empty() && (text.back() == '\n' || text.back() == '\0')) text.pop_back();
  return text;
}

// The words behind "NAME:" in a status file.
std::string field(const std::string& status, const std::string& name) {
  const std::size_t at = ("\n" + status).find("\n" + name + ":");
  if (at == std::string::npos) return {};
  const std::size_t from = status.find_first_not_of(" \t", at + name.size() + 1);
  if (from == std::string::npos) return {};
  return status.substr(from, status.find('\n', from) - from);
}

// The fields of /proc/PID/stat from the third (the state) on: the name before may hold anything.
std::vector<std::string> stat_fields(const std::string& proc_root, pid_t pid) {
  const std::string text = text_of(folder_of(proc_root, pid) + "/stat");
  const std::size_t name_end = text.rfind(')');
  std::vector<std::string> out;
  if (name_end == std::string::npos) return out;
  std::istringstream words(text.substr(name_end + 1));
  for (std::string word; words >> word;) out.push_back(word);
  return out;
}

std::string named(const std::string& proc_root, pid_t pid) {
  const std::string name = text_of(folder_of(proc_root, pid) + "/comm");
  return "process " + std::to_string(pid) + (name.empty() ? "" : " (" + name + ")");
}

Error refusal(ErrorKind kind, std::string message, std::string hint) {
  return {kind, std::move(message), {}, {}, std::move(hint)};
}

bool is_32_bit(const std::string& proc_root, pid_t pid) {
  std::ifstream file(folder_of(proc_root, pid) + "/exe", std::ios::binary);
  char start[EI_CLASS + 1] = {};
  return file.read(start, sizeof start) && std::memcmp(start, ELFMAG, SELFMAG) == 0 && start[EI_CLASS] == ELFCLASS32;
}

bool we_may_trace_all(const std::string& own_status) {
  return (std::strtoull(field(own_status, "CapEff").c_str(), nullptr, 16) >> kTraceCapability & 1) != 0;
}

Error refused_by_yama(const std::string& who, int scope) {
  if (scope >= 3) {
    return refusal(ErrorKind::unreadable,
                   who + " may not be attached to: kernel.yama.ptrace_scope is 3, off until a reboot",
                   "start the job with stepscope run");
  }
  const char* what = scope == 2 ? "2, only root may" : "1, only its own starter may";
  return refusal(
      ErrorKind::unreadable, who + " may not be attached to: kernel.yama.ptrace_scope is " + what,
      "run this with sudo, or once: sudo sysctl kernel.yama.ptrace_scope=0; or start the job with stepscope run");
}

// "Uid:\treal\teffective\tsaved\tfile system"
std::uint32_t effective_user(const std::string& status) {
  const std::string users = field(status, "Uid");
  const std::size_t second = users.find_first_of(" \t");
  return second == std::string::npos ? 0
                                     : static_cast<std::uint32_t>(std::strtoul(users.c_str() + second, nullptr, 10));
}

const char* name_of_call(long number) {
  struct Named {
    long number;
    const char* name;
  };
  static constexpr Named kNames[] = {
      {SYS_read, "read"},
      {SYS_write, "write"},
      {SYS_futex, "futex"},
      {SYS_nanosleep, "nanosleep"},
      {SYS_ppoll, "ppoll"},
      {SYS_ioctl, "ioctl"},
      {SYS_clock_nanosleep, "sleep"},
      {SYS_epoll_pwait, "epoll_wait"},
      {SYS_recvfrom, "recvfrom"},
      {SYS_wait4, "wait4"},
      {SYS_recvmsg, "recvmsg"},
      {SYS_pselect6, "select"},
      {SYS_accept4, "accept"},
      {SYS_waitid, "waitid"},
      {SYS_restart_syscall, "restart_syscall"},
      {SYS_sched_yield, "yield"},
#ifdef SYS_poll
      {SYS_poll, "poll"},
      {SYS_select, "select"},
      {SYS_epoll_wait, "epoll_wait"},
#endif
  };
  for (const Named& call : kNames) {
    if (call.number == number) return call.name;
  }
  return nullptr;
}

// The file whose code an address lies in; empty: unknown.
std::string module_at(const std::string& proc_root, pid_t pid, std::uint64_t address) {
  for (const Mapping& mapping : read_memory_map(proc_root, pid)) {
    if (address >= mapping.start && address < mapping.end) return mapping.path.substr(mapping.path.rfind('/') + 1);
  }
  return {};
}

}  // namespace

std::optional<unsigned long long> start_of(const std::string& proc_root, pid_t pid) {
  const std::vector<std::string> fields = stat_fields(proc_root, pid);
  if (fields.size() < 20 || fields[0] == "Z" || fields[0] == "X") return std::nullopt;
  if ((std::strtoul(fields[6].c_str(), nullptr, 10) & kExiting) != 0) return std::nullopt;
  return std::strtoull(fields[19].c_str(), nullptr, 10);
}

std::uint32_t user_of(const std::string& proc_root, pid_t pid) {
  return effective_user(text_of(folder_of(proc_root, pid) + "/status"));
}

pid_t pid_inside(const std::string& proc_root, pid_t pid) {
  const std::string numbers = field(text_of(folder_of(proc_root, pid) + "/status"), "NSpid");
  const std::size_t last = numbers.find_last_of(" \t");
  const long inside = std::strtol(numbers.c_str() + (last == std::string::npos ? 0 : last + 1), nullptr, 10);
  return inside > 0 ? static_cast<pid_t>(inside) : pid;
}

Result<void> check_target(const std::string& proc_root, pid_t pid) {
  const std::vector<std::string> fields = stat_fields(proc_root, pid);
  const std::string who = named(proc_root, pid);
  if (fields.size() < 20) {
    return fail(refusal(ErrorKind::not_found, "there is no process " + std::to_string(pid) + " that we can see",
                        "take the number that ps shows here: inside a container a process has another one"));
  }
  if (pid == getpid()) return fail(refusal(ErrorKind::usage, who + " is stepscope itself", "name another process"));
  if ((std::strtoul(fields[6].c_str(), nullptr, 10) & kKernelThread) != 0) {
    return fail(refusal(ErrorKind::usage, who + " is a thread of the kernel", "name a python process"));
  }
  const std::string status = text_of(folder_of(proc_root, pid) + "/status");
  const pid_t group = static_cast<pid_t>(std::strtol(field(status, "Tgid").c_str(), nullptr, 10));
  if (group > 0 && group != pid) {
    return fail(refusal(ErrorKind::usage, who + " is a thread of process " + std::to_string(group),
                        "name process " + std::to_string(group)));
  }
  if (fields[0] == "Z" || fields[0] == "X") {
    return fail(refusal(ErrorKind::not_found, who + " has ended already, or its main thread has", ""));
  }
  const pid_t tracer = static_cast<pid_t>(std::strtol(field(status, "TracerPid").c_str(), nullptr, 10));
  if (tracer > 0) {
    return fail(refusal(ErrorKind::unreadable, who + " is already traced by " + named(proc_root, tracer),
                        "end that debugger, strace or profiler first"));
  }
  if (fields[0] == "T" || fields[0] == "t") {
    return fail(refusal(ErrorKind::unreadable, who + " is stopped (Ctrl-Z or SIGSTOP)",
                        "let it go on first: kill -CONT " + std::to_string(pid)));
  }
  if (is_32_bit(proc_root, pid)) {
    return fail(refusal(ErrorKind::unsupported, who + " is a 32-bit program", "use a 64-bit Python"));
  }
  if (field(status, "x86_Thread_features").find("shstk") != std::string::npos) {
    return fail(refusal(ErrorKind::unsupported, who + " runs with a shadow stack, which an injected call would violate",
                        "start the job with stepscope run"));
  }
  return {};
}

Error why_refused(const std::string& proc_root, pid_t pid, int reason) {
  const std::string who = named(proc_root, pid);
  if (reason == ESRCH) return refusal(ErrorKind::not_found, who + " has ended", "");
  const std::string status = text_of(folder_of(proc_root, pid) + "/status");
  const std::string own = text_of(proc_root + "/self/status");
  const bool capable = we_may_trace_all(own);
  if (!capable && effective_user(status) != effective_user(own)) {
    return refusal(ErrorKind::unreadable,
                   who + " belongs to another user (uid " + std::to_string(effective_user(status)) + ")",
                   "run this as that user or with sudo");
  }
  const std::string scope = text_of(proc_root + "/sys/kernel/yama/ptrace_scope");
  const int yama = scope.empty() ? 0 : static_cast<int>(std::strtol(scope.c_str(), nullptr, 10));
  if (yama >= 3 || (yama > 0 && !capable)) return refused_by_yama(who, yama);
  if (field(own, "Seccomp") == "2") {
    return refusal(ErrorKind::unreadable, "this container forbids ptrace, which attaching needs",
                   "start the container with --cap-add SYS_PTRACE (Kubernetes: securityContext.capabilities.add "
                   "[SYS_PTRACE]), attach from the host, or start the job with stepscope run");
  }
  struct stat owner {};
  const bool same_owner =
      stat((folder_of(proc_root, pid) + "/stat").c_str(), &owner) == 0 && owner.st_uid == effective_user(status);
  const auto its = std::strtoull(field(status, "CapPrm").c_str(), nullptr, 16);
  const auto ours = std::strtoull(field(own, "CapPrm").c_str(), nullptr, 16);
  if (!capable && (!same_owner || (its & ~ours) != 0)) {
    return refusal(ErrorKind::unreadable,
                   who +
                       " has more rights than stepscope (it was started with sudo, setuid or "
                       "capabilities)",
                   "run this with sudo");
  }
  return refusal(ErrorKind::unreadable, who + " may not be attached to: " + std::strerror(reason),
                 capable
                     ? "ask the administrator which policy (SELinux, AppArmor) forbids ptrace, or start the job with "
                       "stepscope run"
                     : "run this with sudo, or start the job with stepscope run");
}

std::string place_of_main_thread(const std::string& proc_root, pid_t pid) {
  const std::string task = folder_of(proc_root, pid) + "/task/" + std::to_string(pid);
  const std::vector<std::string> fields = stat_fields(proc_root, pid);
  const std::string call = text_of(task + "/syscall");
  if (fields.empty()) return "it is gone";
  // "NUMBER six arguments, stack, program counter", "running", or "-1 …" outside of a call.
  char* end = nullptr;
  const long number = std::strtol(call.c_str(), &end, 10);
  if (call.empty() || end == call.c_str() || number < 0) {
    return fields[0] == "R" ? "it computes in native code" : "where it waits cannot be read";
  }
  const char* known = name_of_call(number);  // restart_syscall: one with a time limit that was stopped before, by us
  std::string out = "it waits in the system call " + (known != nullptr ? std::string(known) : std::to_string(number));
  const std::string kernel = text_of(task + "/wchan");
  if (!kernel.empty() && kernel != "0") out += " (" + kernel + ")";
  const std::size_t counter = call.rfind(' ');
  const std::string module = module_at(proc_root, pid, std::strtoull(call.c_str() + counter + 1, nullptr, 16));
  if (!module.empty()) out += ", called from " + module;
  if (fields[0] == "D") out += "; it cannot be interrupted there";
  return out;
}

}  // namespace stepscope::collect
