// One thread of another process, stopped by ptrace; when the object goes, the thread runs on as if nothing had been.
//
// What is kept and put back: all registers with the vector state, the signal mask (signals that may wait are held by
// the kernel meanwhile; the few that cannot be blocked are held here and sent again), the thread's stack (never used)
// and its code (never changed: system calls are made with an instruction that is mapped already). Other threads run on.
// A tracer belongs to one thread: all calls come from the thread that called stop(). If that thread ends, the kernel
// lets the tracee go; PTRACE_O_EXITKILL is not set. Death of this process leaves the job unharmed except within call(),
// some microseconds in which the thread stands in foreign code.
#pragma once

#include <signal.h>
#include <sys/types.h>

#include <chrono>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "base/result.h"
#include "collect/inject/registers.h"
#include "collect/inject/remote_memory.h"

namespace stepscope::collect {

class Tracee {
 public:
  // Stops the main thread of a process. unreadable: refused, `seize_errno` has the reason; not_found: it ended;
  // unsupported: it does not stop (then the calling thread has to end to let it go).
  static Result<std::unique_ptr<Tracee>> stop(const std::string& proc_root, pid_t pid, int& seize_errno);
  ~Tracee();
  Tracee(const Tracee&) = delete;
  Tracee& operator=(const Tracee&) = delete;

  const RemoteMemory& memory() const { return memory_; }
  RemoteMemory take_memory() { return std::move(memory_); }  // for after the release

  // Lets the thread make one system call. A call that fails is an Error (unsupported) with the reason as its message.
  Result<std::uint64_t> system_call(long number, const std::uint64_t (&arguments)[6]);

  // Writes where the process itself may not (code); `bytes` is rounded up to whole words.
  Result<void> write_code(std::uint64_t address, std::string_view bytes);

  // Runs code until it traps (see registers.h) on a stack that ends at `stack_end`, and gives its result. The stack
  // must stay mapped when this fails: the call may still be inside.
  Result<std::uint64_t> call(std::uint64_t code, std::uint64_t stack_end, std::uint64_t block);

  // Puts all back and lets the thread go. Returns how long it stood still, in ns (from the request to stop).
  Result<std::int64_t> release();

 private:
  enum class Event { trapped, interrupted, faulted, ended, late };
  using Clock = std::chrono::steady_clock;

  Tracee(pid_t thread, RemoteMemory memory, std::string proc_root);
  Event wait(std::chrono::milliseconds limit, int resume);
  Event interrupt();
  Event go_on(int request, std::chrono::milliseconds limit);
  Result<void> stop_at_a_good_place();
  Result<void> keep_state();
  bool in_restartable_sequence() const;
  bool signal_waits() const;
  std::uint64_t find_system_call_instruction() const;
  bool has_system_call_at(std::uint64_t address) const;
  Event free_own_lock();
  Error error_of(Event event) const;
  void send_kept_signals();

  pid_t thread_;
  std::string proc_root_;
  RemoteMemory memory_;
  Registers saved_;
  std::uint64_t saved_mask_ = 0;  // the kernel's sigset
  std::uint64_t instruction_ = 0;
  std::vector<siginfo_t> kept_;
  int fault_ = 0;
  bool state_kept_ = false;
  bool attached_ = false;
  Clock::time_point since_;
};

}  // namespace stepscope::collect
