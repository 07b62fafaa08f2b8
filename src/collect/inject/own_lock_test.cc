// A thread that is stopped while it holds the very lock that the injected call takes. CPython cannot be made to stop
// there, so a child of the test plays it.
#include <dlfcn.h>
#include <doctest/doctest.h>
#include <sched.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <chrono>
#include <cstring>
#include <new>
#include <utility>

#include "collect/inject/inject.h"
#include "collect/inject/python_child_fixture.h"

namespace stepscope::collect {
namespace {

// A stand-in for CPython whose main thread holds the lock of its queue nearly all the time, so that it is stopped
// there.
std::atomic<int> queue_lock = 0;
int (*queued_function)(void*) = nullptr;
void* queued_argument = nullptr;
std::atomic<int>* times_run = nullptr;

void lock_queue() {
  while (queue_lock.exchange(1) != 0) sched_yield();
}

extern "C" int stand_in_add(int (*function)(void*), void* argument) {
  lock_queue();
  queued_function = function;
  queued_argument = argument;
  queue_lock = 0;
  return 0;
}

extern "C" int stand_in_run(const char* source) {
  if (std::strcmp(source, "the source") == 0) ++*times_run;
  return 0;
}

[[noreturn]] void stand_in_job() {
  for (;;) {
    lock_queue();
    asm volatile(".rept 500\n nop\n .endr");
    int (*const function)(void*) = std::exchange(queued_function, nullptr);
    queue_lock = 0;
    asm volatile(".rept 100\n nop\n .endr");  // free for longer than the thread runs in one turn
    if (function != nullptr && function(queued_argument) != 0) _exit(1);
  }
}

template <class F>
RemoteFunction function_at(F* function) {
  const auto* code = reinterpret_cast<const char*>(function);
  return {reinterpret_cast<std::uint64_t>(code), std::string(code, 8)};
}

}  // namespace

TEST_CASE("inject: a thread that is stopped while it holds the lock of the queue does not hang") {
  if (!ptrace_is_allowed()) return;
  void* shared = mmap(nullptr, 4096, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  REQUIRE(shared != MAP_FAILED);
  times_run = new (shared) std::atomic<int>(0);
  const pid_t job = fork();
  if (job == 0) stand_in_job();
  PythonSymbols symbols;
  symbols.add_pending_call = function_at(&stand_in_add);
  symbols.run_simple_string = function_at(&stand_in_run);
  symbols.unmap = function_at(reinterpret_cast<int (*)(void*, std::size_t)>(dlsym(RTLD_DEFAULT, "munmap")));
  symbols.errno_location = function_at(&__errno_location);
  int held = 0;
  constexpr int kTimes = 5;
  for (int i = 0; i < kTimes; ++i) {
    const auto done = inject_by_ptrace("/proc", job, symbols, "the source", std::chrono::milliseconds(30'000));
    CHECK_MESSAGE(done.has_value(), (done ? std::string() : to_text(done.error())));
    held += done && done->stopped_ns > 300'000'000;
  }
  CHECK(*times_run == kTimes);
  MESSAGE("stopped with the lock held: ", held, " of ", kTimes);
  kill(job, SIGKILL);
  int status = 0;
  waitpid(job, &status, 0);
  CHECK(WIFSIGNALED(status));
  munmap(shared, 4096);
}

}  // namespace stepscope::collect
