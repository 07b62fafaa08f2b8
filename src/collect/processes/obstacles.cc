#include "collect/processes/obstacles.h"

#include <elf.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <utility>

#include "collect/processes/memory_map.h"
#include "collect/processes/proc_text.h"

namespace stepscope::collect {
namespace {

constexpr unsigned kTraceCapability = 19;  // CAP_SYS_PTRACE

std::string named(const std::string& proc_root, pid_t pid) {
  const std::string name = proc_text(proc_folder(proc_root, pid) + "/comm");
  return "process " + std::to_string(pid) + (name.empty() ? "" : " (" + name + ")");
}

Error refusal(ErrorKind kind, std::string message, std::string hint) {
  return {kind, std::move(message), {}, {}, std::move(hint)};
}

bool is_32_bit(const std::string& proc_root, pid_t pid) {
  std::ifstream file(proc_folder(proc_root, pid) + "/exe", std::ios::binary);
  char start[EI_CLASS + 1] = {};
  return file.read(start, sizeof start) && std::memcmp(start, ELFMAG, SELFMAG) == 0 && start[EI_CLASS] == ELFCLASS32;
}

bool we_may_trace_all(const std::string& own_status) {
  return (std::strtoull(status_field(own_status, "CapEff").c_str(), nullptr, 16) >> kTraceCapability & 1) != 0;
}

Error refused_by_yama(const std::string& who, int scope) {
  if (scope >= 3) {
    return refusal(ErrorKind::unreadable,
                   who + " may not be attached to: kernel.yama.ptrace_scope is 3, off until a reboot",
                   "Start the job with stepscope run");
  }
  const char* what = scope == 2 ? "2, only root may" : "1, only its own starter may";
  return refusal(
      ErrorKind::unreadable, who + " may not be attached to: kernel.yama.ptrace_scope is " + what,
      "Run this with sudo, or once: sudo sysctl kernel.yama.ptrace_scope=0; or start the job with stepscope run");
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

Result<void> check_target(const std::string& proc_root, pid_t pid) {
  const auto stat = ProcStat::read(proc_root, pid);
  const std::string who = named(proc_root, pid);
  if (!stat) {
    return fail(refusal(ErrorKind::not_found, "there is no process " + std::to_string(pid) + " that we can see",
                        "Take the number that ps shows here: inside a container a process has another one"));
  }
  if (pid == getpid()) return fail(refusal(ErrorKind::usage, who + " is stepscope itself", "Name another process"));
  if (stat->kernel_thread()) {
    return fail(refusal(ErrorKind::usage, who + " is a thread of the kernel", "Name a python process"));
  }
  const std::string status = proc_text(proc_folder(proc_root, pid) + "/status");
  const pid_t group = static_cast<pid_t>(std::strtol(status_field(status, "Tgid").c_str(), nullptr, 10));
  if (group > 0 && group != pid) {
    return fail(refusal(ErrorKind::usage, who + " is a thread of process " + std::to_string(group),
                        "Name process " + std::to_string(group)));
  }
  if (stat->ended()) {
    return fail(refusal(ErrorKind::not_found, who + " has ended already, or its main thread has", ""));
  }
  const pid_t tracer = static_cast<pid_t>(std::strtol(status_field(status, "TracerPid").c_str(), nullptr, 10));
  if (tracer > 0) {
    return fail(refusal(ErrorKind::unreadable, who + " is already traced by " + named(proc_root, tracer),
                        "End that debugger, strace or profiler first"));
  }
  if (stat->stopped()) {
    return fail(refusal(ErrorKind::unreadable, who + " is stopped (Ctrl-Z or SIGSTOP)",
                        "Let it go on first: kill -CONT " + std::to_string(pid)));
  }
  if (is_32_bit(proc_root, pid)) {
    return fail(refusal(ErrorKind::unsupported, who + " is a 32-bit program", "Use a 64-bit Python"));
  }
  if (status_field(status, "x86_Thread_features").find("shstk") != std::string::npos) {
    return fail(refusal(ErrorKind::unsupported, who + " runs with a shadow stack, which an injected call would violate",
                        "Start the job with stepscope run"));
  }
  return {};
}

Error why_refused(const std::string& proc_root, pid_t pid, int reason) {
  const std::string who = named(proc_root, pid);
  if (reason == ESRCH) return refusal(ErrorKind::not_found, who + " has ended", "");
  const std::string status = proc_text(proc_folder(proc_root, pid) + "/status");
  const std::string own = proc_text(proc_root + "/self/status");
  const bool capable = we_may_trace_all(own);
  if (!capable && effective_user(status) != effective_user(own)) {
    return refusal(ErrorKind::unreadable,
                   who + " belongs to another user (uid " + std::to_string(effective_user(status)) + ")",
                   "Run this as that user or with sudo");
  }
  const std::string scope = proc_text(proc_root + "/sys/kernel/yama/ptrace_scope");
  const int yama = scope.empty() ? 0 : static_cast<int>(std::strtol(scope.c_str(), nullptr, 10));
  if (yama >= 3 || (yama > 0 && !capable)) return refused_by_yama(who, yama);
  if (status_field(own, "Seccomp") == "2") {
    return refusal(ErrorKind::unreadable, "this container forbids ptrace, which attaching needs",
                   "Start the container with --cap-add SYS_PTRACE (Kubernetes: securityContext.capabilities.add "
                   "[SYS_PTRACE]), attach from the host, or start the job with stepscope run");
  }
  struct stat owner {};
  const bool same_owner =
      stat((proc_folder(proc_root, pid) + "/stat").c_str(), &owner) == 0 && owner.st_uid == effective_user(status);
  const auto its = std::strtoull(status_field(status, "CapPrm").c_str(), nullptr, 16);
  const auto ours = std::strtoull(status_field(own, "CapPrm").c_str(), nullptr, 16);
  if (!capable && (!same_owner || (its & ~ours) != 0)) {
    return refusal(ErrorKind::unreadable,
                   who +
                       " has more rights than stepscope (it was started with sudo, setuid or "
                       "capabilities)",
                   "Run this with sudo");
  }
  return refusal(ErrorKind::unreadable, who + " may not be attached to: " + std::strerror(reason),
                 capable
                     ? "Ask the administrator which policy (SELinux, AppArmor) forbids ptrace, or start the job with "
                       "stepscope run"
                     : "Run this with sudo, or start the job with stepscope run");
}

std::string place_of_main_thread(const std::string& proc_root, pid_t pid) {
  const std::string task = proc_folder(proc_root, pid) + "/task/" + std::to_string(pid);
  const auto stat = ProcStat::read(proc_root, pid);
  const std::string call = proc_text(task + "/syscall");
  if (!stat) return "it is gone";
  // "NUMBER six arguments, stack, program counter", "running", or "-1 …" outside of a call.
  char* end = nullptr;
  const long number = std::strtol(call.c_str(), &end, 10);
  if (call.empty() || end == call.c_str() || number < 0) {
    return stat->state() == 'R' ? "it computes in native code" : "where it waits cannot be read";
  }
  const char* known = name_of_call(number);  // restart_syscall: one with a time limit that was stopped before, by us
  std::string out = "it waits in the system call " + (known != nullptr ? std::string(known) : std::to_string(number));
  const std::string kernel = proc_text(task + "/wchan");
  if (!kernel.empty() && kernel != "0") out += " (" + kernel + ")";
  const std::size_t counter = call.rfind(' ');
  const std::string module = module_at(proc_root, pid, std::strtoull(call.c_str() + counter + 1, nullptr, 16));
  if (!module.empty()) out += ", called from " + module;
  if (stat->state() == 'D') out += "; it cannot be interrupted there";
  return out;
}

}  // namespace stepscope::collect
