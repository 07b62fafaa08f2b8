#include "base/command_output.h"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <thread>

namespace stepscope {
namespace {

using Clock = std::chrono::steady_clock;
constexpr std::size_t kMostOutput = 64 << 10;

[[noreturn]] void become(char* const* arguments, int output) {
  const int nothing = open("/dev/null", O_RDWR);
  dup2(nothing, STDIN_FILENO);
  dup2(output, STDOUT_FILENO);
  dup2(nothing, STDERR_FILENO);
  execvp(arguments[0], arguments);
  _exit(127);
}

// Reads until the end of the output; false when the time was over first.
bool read_until(int from, Clock::time_point end, std::string& text) {
  char buffer[4096];
  for (;;) {
    const auto left = std::chrono::duration_cast<std::chrono::milliseconds>(end - Clock::now()).count();
    if (left <= 0) return false;
    pollfd wait{from, POLLIN, 0};
    if (poll(&wait, 1, static_cast<int>(left)) <= 0) continue;
    const ssize_t got = read(from, buffer, sizeof buffer);
    if (got <= 0) return true;
    if (text.size() < kMostOutput) text.append(buffer, static_cast<std::size_t>(got));
  }
}

// The exit status; kills the command when it outlives the end.
int status_of(pid_t child, Clock::time_point end) {
  int status = 0;
  while (waitpid(child, &status, WNOHANG) == 0) {
    if (Clock::now() >= end) {
      kill(child, SIGKILL);
      waitpid(child, &status, 0);
      return status;
    }
    std::this_thread::sleep_for(std::chrono::milliseconds(2));
  }
  return status;
}

}  // namespace

Result<std::string> output_of(const std::vector<std::string>& command, double seconds) {
  std::vector<std::string> words = command;
  std::vector<char*> arguments;
  for (std::string& word : words) arguments.push_back(word.data());
  arguments.push_back(nullptr);
  int output[2];
  if (pipe2(output, O_CLOEXEC) != 0) return fail({ErrorKind::unreadable, "no pipe could be made", {}, {}, ""});
  const auto end = Clock::now() + std::chrono::microseconds(static_cast<std::int64_t>(seconds * 1e6));
  const pid_t child = fork();
  if (child == 0) become(arguments.data(), output[1]);
  close(output[1]);
  std::string text;
  const bool whole = child > 0 && read_until(output[0], end, text);
  close(output[0]);
  if (child < 0) return fail({ErrorKind::unreadable, "no process could be started", {}, {}, ""});
  const int status = status_of(child, whole ? end : Clock::now());
  if (!whole) return fail({ErrorKind::unreadable, command.front() + " did not answer in time", {}, {}, ""});
  if (!WIFEXITED(status) || WEXITSTATUS(status) != 0) {
    return fail({ErrorKind::unreadable, command.front() + " failed", {}, {}, ""});
  }
  return text;
}

}  // namespace stepscope
