// Ctrl-C and SIGTERM while a command waits: it ends what it began, and says so, before it goes.
#pragma once

#include <signal.h>

#include <csignal>

namespace stepscope::cli {

class Interrupts {
 public:
  Interrupts() {
    came_ = 0;
    struct sigaction act {};
    act.sa_handler = [](int) { came_ = 1; };
    sigaction(SIGINT, &act, &before_[0]);
    sigaction(SIGTERM, &act, &before_[1]);
  }
  ~Interrupts() {
    sigaction(SIGINT, &before_[0], nullptr);
    sigaction(SIGTERM, &before_[1], nullptr);
  }
  Interrupts(const Interrupts&) = delete;
  Interrupts& operator=(const Interrupts&) = delete;

  bool came() const { return came_ != 0; }

 private:
  static inline volatile std::sig_atomic_t came_ = 0;
  struct sigaction before_[2]{};
};

}  // namespace stepscope::cli
