// Starts the job and stands beside it.
//
// The job stays in this process's group and terminal, so that Ctrl-C and Ctrl-Z reach it as without us. A signal that
// the terminal sent has therefore arrived there already; one that was sent to this process alone is passed on, unless
// the caller keeps it for itself (Beside).
#include <fcntl.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstdlib>
#include <cstring>

#include "collect/collect.h"

extern char** environ;

namespace stepscope::collect {
namespace {

constexpr std::array kForwarded{SIGHUP, SIGINT, SIGQUIT, SIGTERM, SIGUSR1, SIGUSR2, SIGALRM};

struct Signals {
  sigset_t waited{};       // blocked here, taken one by one
  sigset_t mask_before{};  // the job's
  struct sigaction child_before {};
  int own = 0;  // the number that is not the job's, 0: none
  struct sigaction own_before {};
};

// The default action, so that neither a handler nor an inherited SIG_IGN takes the signal from sigwaitinfo.
void make_plain(int number, struct sigaction& before) {
  struct sigaction plain {};
  plain.sa_handler = SIG_DFL;
  sigaction(number, &plain, &before);
}

Signals take_signals(int own) {
  Signals s;
  s.own = own;
  if (own != 0) make_plain(own, s.own_before);
  sigemptyset(&s.waited);
  sigaddset(&s.waited, SIGCHLD);
  for (const int number : kForwarded) {
    struct sigaction current {};
    sigaction(number, nullptr, &current);
    if (current.sa_handler != SIG_IGN) sigaddset(&s.waited, number);  // nohup stays nohup
  }
  make_plain(SIGCHLD, s.child_before);
  sigprocmask(SIG_BLOCK, &s.waited, &s.mask_before);
  return s;
}

void give_back(const Signals& s) {
  sigaction(SIGCHLD, &s.child_before, nullptr);
  if (s.own != 0) sigaction(s.own, &s.own_before, nullptr);
  sigprocmask(SIG_SETMASK, &s.mask_before, nullptr);
}

std::vector<std::string> environment_with(const std::map<std::string, std::string>& extra) {
  std::vector<std::string> out;
  for (char** at = environ; *at != nullptr; ++at) {
    const std::string_view entry = *at;
    if (extra.count(std::string(entry.substr(0, entry.find('=')))) == 0) out.emplace_back(entry);
  }
  for (const auto& [name, value] : extra) out.push_back(name + "=" + value);
  return out;
}

std::vector<char*> pointers(std::vector<std::string>& texts) {
  std::vector<char*> out;
  for (std::string& text : texts) out.push_back(text.data());
  out.push_back(nullptr);
  return out;
}

// In the child: never returns. Only calls that are safe between fork and exec.
[[noreturn]] void become(const Signals& signals, char* const* arguments, char* const* environment, int report) {
  give_back(signals);
  execvpe(arguments[0], arguments, environment);
  const int reason = errno;
  while (write(report, &reason, sizeof reason) < 0 && errno == EINTR) {
  }
  _exit(reason == ENOENT ? 127 : 126);
}

// True when the terminal or the kernel sent it to the whole group, the job included.
bool reached_the_job(const siginfo_t& info) { return info.si_code == SI_KERNEL; }

int wait_and_forward(pid_t job, const Signals& signals, const Beside& beside) {
  constexpr timespec kBetweenLooks{1, 0};
  for (;;) {
    int status = 0;
    const pid_t ended = waitpid(job, &status, WNOHANG);
    if (ended == job && (WIFEXITED(status) || WIFSIGNALED(status))) return status;
    if (ended < 0 && errno != EINTR) return W_EXITCODE(1, 0);
    siginfo_t info{};
    const int number =
        beside.look ? sigtimedwait(&signals.waited, &info, &kBetweenLooks) : sigwaitinfo(&signals.waited, &info);
    if (number < 0 && errno == EAGAIN) {
      beside.look(job);
    } else if (number == beside.number && beside.act) {
      beside.act();
    } else if (number > 0 && number != SIGCHLD && !reached_the_job(info)) {
      kill(job, number);
    }
  }
}

Ending not_started(int reason) {
  Ending ending;
  ending.code = reason == ENOENT ? 127 : 126;
  ending.failure = std::strerror(reason);
  return ending;
}

}  // namespace

Ending run_job(const Arguments& command, const std::map<std::string, std::string>& extra, const Beside& beside) {
  Arguments words = command;
  std::vector<std::string> variables = environment_with(extra);
  const std::vector<char*> arguments = pointers(words);
  const std::vector<char*> environment = pointers(variables);
  int report[2];
  if (pipe2(report, O_CLOEXEC) != 0) return not_started(errno);
  const Signals signals = take_signals(beside.number);
  if (beside.ready) beside.ready();
  const pid_t job = fork();
  if (job == 0) become(signals, arguments.data(), environment.data(), report[1]);
  const int fork_error = errno;
  close(report[1]);
  Ending ending;
  if (job < 0) {
    ending = not_started(fork_error);
  } else {
    int reason = 0;
    if (beside.began) beside.began(job);
    const bool failed = ::read(report[0], &reason, sizeof reason) == static_cast<ssize_t>(sizeof reason);
    const int status = wait_and_forward(job, signals, beside);
    if (failed) {
      ending = not_started(reason);
    } else if (WIFSIGNALED(status)) {
      ending.signal = WTERMSIG(status);
      ending.code = 128 + WTERMSIG(status);
    } else {
      ending.code = WEXITSTATUS(status);
    }
  }
  close(report[0]);
  give_back(signals);
  return ending;
}

}  // namespace stepscope::collect
