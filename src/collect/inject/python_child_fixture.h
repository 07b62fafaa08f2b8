// A real python3 that a test starts, talks to and ends. STEPSCOPE_TEST_PYTHON names another interpreter.
#pragma once

#include <doctest/doctest.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/ptrace.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <string>
#include <utility>
#include <vector>

namespace stepscope::collect {

class Child {
 public:
  // Runs `command` with pipes at its standard input and output.
  explicit Child(std::vector<std::string> command) {
    int input[2];
    int output[2];
    REQUIRE(pipe2(input, O_CLOEXEC) == 0);
    REQUIRE(pipe2(output, O_CLOEXEC) == 0);
    std::vector<char*> arguments;
    for (std::string& word : command) arguments.push_back(word.data());
    arguments.push_back(nullptr);
    pid_ = fork();
    if (pid_ == 0) {
      dup2(input[0], STDIN_FILENO);
      dup2(output[1], STDOUT_FILENO);
      execvp(arguments[0], arguments.data());
      _exit(127);
    }
    close(input[0]);
    close(output[1]);
    input_ = input[1];
    output_ = output[0];
    REQUIRE(pid_ > 0);
  }
  ~Child() {
    if (!ended_) {
      kill(pid_, SIGKILL);
      wait_end();
    }
    close_input();
    close(output_);
  }
  Child(const Child&) = delete;
  Child& operator=(const Child&) = delete;

  pid_t pid() const { return pid_; }
  void write(const std::string& text) const {
    CHECK(::write(input_, text.data(), text.size()) == ssize_t(text.size()));
  }
  void close_input() {
    if (input_ >= 0) close(input_);
    input_ = -1;
  }

  // The next line of its output without the line end; what there is when it ends. Fails the test after a minute.
  std::string line() {
    for (;;) {
      const std::size_t end = text_.find('\n');
      if (end != std::string::npos) {
        std::string out = text_.substr(0, end);
        text_.erase(0, end + 1);
        return out;
      }
      pollfd wait{output_, POLLIN, 0};
      REQUIRE_MESSAGE(poll(&wait, 1, 60'000) > 0, "the child says nothing");
      char buffer[4096];
      const ssize_t got = read(output_, buffer, sizeof buffer);
      if (got <= 0) return std::exchange(text_, {});
      text_.append(buffer, static_cast<std::size_t>(got));
    }
  }

  // Its wait status.
  int wait_end() {
    int status = 0;
    while (waitpid(pid_, &status, 0) < 0 && errno == EINTR) {
    }
    ended_ = true;
    return status;
  }

 private:
  pid_t pid_ = -1;
  int input_ = -1;
  int output_ = -1;
  bool ended_ = false;
  std::string text_;
};

inline std::string test_python() {
  const char* named = std::getenv("STEPSCOPE_TEST_PYTHON");
  return named != nullptr ? named : "python3";
}

// A python that has said "ready". `script` runs after that.
class PythonChild : public Child {
 public:
  explicit PythonChild(const std::string& script)
      : Child({test_python(), "-u", "-c", "import sys, os, time\nprint('ready')\n" + script}) {
    REQUIRE(line() == "ready");
  }
};

// False where this machine lets nobody trace its own children; says so.
inline bool ptrace_is_allowed() {
  Child child({"sleep", "60"});
  const bool allowed = ptrace(PTRACE_SEIZE, child.pid(), nullptr, nullptr) == 0;
  const int reason = errno;
  if (!allowed) MESSAGE("skipped: this machine forbids ptrace: ", std::string(std::strerror(reason)));
  return allowed;
}

}  // namespace stepscope::collect
