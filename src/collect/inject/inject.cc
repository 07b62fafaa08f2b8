#include "collect/inject/inject.h"

#include <signal.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <optional>
#include <thread>

#include "collect/inject/payload.h"
#include "collect/inject/registers.h"
#include "collect/inject/remote_exec.h"
#include "collect/inject/remote_memory.h"
#include "collect/inject/tracee.h"
#include "collect/processes/memory_map.h"
#include "collect/processes/obstacles.h"
#include "collect/processes/proc_text.h"

namespace stepscope::collect {
namespace {

using Clock = std::chrono::steady_clock;
using namespace std::chrono_literals;

constexpr std::uint64_t kStackBytes = 64 << 10;  // lazy binding saves all vector registers on it: some 10 kB

struct Queued {
  CallBlock block;
  std::uint64_t block_address = 0;
  std::int64_t stopped_ns = 0;
  std::optional<RemoteMemory> memory;
};

Error problem(ErrorKind kind, std::string message, std::string hint = {}) {
  return {kind, std::move(message), {}, {}, std::move(hint)};
}

std::string process(pid_t pid) { return "process " + std::to_string(pid); }

Error ended_meanwhile(pid_t pid) {
  return problem(ErrorKind::not_found,
                 process(pid) + " ended, or started another program, while it was being attached to");
}

// Whether it was its end that made something fail; a process that was killed takes a moment to show it.
bool is_ending(const std::string& proc_root, pid_t pid) {
  for (int i = 0; i < 20; ++i) {
    if (!start_of(proc_root, pid)) return true;
    std::this_thread::sleep_for(1ms);
  }
  return false;
}

// The mapping: one page of code, the block, the source, the stack.
struct Layout {
  std::uint64_t page = static_cast<std::uint64_t>(sysconf(_SC_PAGESIZE));
  std::uint64_t bytes = 0;

  explicit Layout(std::size_t source_bytes) {
    const std::uint64_t data = sizeof(CallBlock) + source_bytes + 1 + kStackBytes;
    bytes = page + (data + page - 1) / page * page;
  }
};

Result<void> check_functions(Tracee& tracee, const PythonSymbols& symbols) {
  for (const RemoteFunction* function :
       {&symbols.add_pending_call, &symbols.run_simple_string, &symbols.unmap, &symbols.errno_location}) {
    std::string there(function->first_bytes.size(), '\0');
    if (!there.empty() && tracee.memory().read(function->address, there.data(), there.size()) &&
        there == function->first_bytes) {
      continue;
    }
    return fail(problem(ErrorKind::unsupported,
                        "the code in memory is not that of its files: they were replaced, or a "
                        "debugger changed it",
                        "Start the job with stepscope run"));
  }
  return {};
}

CallBlock block_for(const PythonSymbols& symbols, std::uint64_t memory, const Layout& layout) {
  CallBlock out;
  out.add_pending_call = symbols.add_pending_call.address;
  out.errno_location = symbols.errno_location.address;
  out.run_simple_string = symbols.run_simple_string.address;
  out.unmap = symbols.unmap.address;
  out.memory = memory;
  out.memory_bytes = layout.bytes;
  out.source = memory + layout.page + sizeof(CallBlock);
  out.queued_code = memory + injected_code().queued_offset;
  return out;
}

Result<void> fill(Tracee& tracee, const CallBlock& block, std::uint64_t block_address, std::string_view source) {
  std::string data(sizeof block, '\0');
  std::memcpy(data.data(), &block, sizeof block);
  data += source;
  data += '\0';
  if (!tracee.memory().write(block_address, data.data(), data.size())) {
    return fail(problem(ErrorKind::unsupported, "its memory cannot be written"));
  }
  return tracee.write_code(block.memory, injected_code().bytes);
}

// With the main thread stopped: maps, fills and queues. What fails on the way is undone.
Result<Queued> queue_call(Tracee& tracee, const PythonSymbols& symbols, std::string_view source) {
  if (const auto same = check_functions(tracee, symbols); !same) return tl::make_unexpected(same.error());
  const Layout layout(source.size());
  // Never writable and executable at once: some systems refuse that.
  const auto memory = tracee.system_call(
      SYS_mmap, {0, layout.bytes, PROT_READ | PROT_EXEC, MAP_PRIVATE | MAP_ANONYMOUS, ~std::uint64_t{0}, 0});
  if (!memory) return tl::make_unexpected(memory.error());
  Queued out;
  out.block = block_for(symbols, *memory, layout);
  out.block_address = *memory + layout.page;
  const auto undo = [&](Error error) {
    (void)tracee.system_call(SYS_munmap, {*memory, layout.bytes, 0, 0, 0, 0});
    return fail(std::move(error));
  };
  const auto opened = tracee.system_call(
      SYS_mprotect, {out.block_address, layout.bytes - layout.page, PROT_READ | PROT_WRITE, 0, 0, 0});
  if (!opened) return undo(opened.error());
  if (const auto filled = fill(tracee, out.block, out.block_address, source); !filled) return undo(filled.error());
  const auto queued = tracee.call(*memory + injected_code().queue_offset, *memory + layout.bytes, out.block_address);
  if (!queued) return tl::make_unexpected(queued.error());  // the call may still use the memory
  if (static_cast<std::int32_t>(*queued) != 0) {
    return undo(problem(ErrorKind::unsupported, "its queue of pending calls is full", "Try again"));
  }
  return out;
}

Result<Queued> stop_and_queue(const std::string& proc_root, pid_t pid, const PythonSymbols& symbols,
                              std::string_view source) {
  int reason = 0;
  auto tracee = Tracee::stop(proc_root, pid, reason);
  if (!tracee && reason != 0 && !is_ending(proc_root, pid)) return fail(why_refused(proc_root, pid, reason));
  auto queued = tracee ? queue_call(**tracee, symbols, source) : tl::make_unexpected(tracee.error());
  const auto stood = tracee ? (*tracee)->release() : Result<std::int64_t>(0);
  if (queued && !stood) queued = tl::make_unexpected(stood.error());
  if (!queued) {
    if (is_ending(proc_root, pid)) return fail(ended_meanwhile(pid));
    Error error = queued.error();
    error.message = process(pid) + " could not be attached to: " + error.message;
    if (!tracee && error.kind == ErrorKind::unsupported) error.message += "; " + place_of_main_thread(proc_root, pid);
    return fail(std::move(error));
  }
  queued->stopped_ns = *stood;
  queued->memory = (*tracee)->take_memory();
  return queued;
}

// In a thread of its own, whose end makes the kernel let go of a process that did not even stop, and with signals held:
// Ctrl-C must not end us while the job stands still.
Result<Queued> stop_and_queue_guarded(const std::string& proc_root, pid_t pid, const PythonSymbols& symbols,
                                      std::string_view source) {
  Result<Queued> out = fail(problem(ErrorKind::internal, "no thread could be started"));
  sigset_t all;
  sigset_t before;
  sigfillset(&all);
  pthread_sigmask(SIG_BLOCK, &all, &before);
  std::thread worker([&] {
    prctl(PR_SET_TIMERSLACK, 1UL);  // this thread's naps are part of the stop
    out = stop_and_queue(proc_root, pid, symbols, source);
  });
  worker.join();
  pthread_sigmask(SIG_SETMASK, &before, nullptr);
  return out;
}

enum class Progress { waiting, started, finished };

// The memory is gone, or is something else now: finished.
Progress progress_of(const Queued& queued) {
  CallBlock now;
  if (!queued.memory->read(queued.block_address, &now, sizeof now)) return Progress::finished;
  if (std::memcmp(&now, &queued.block, offsetof(CallBlock, started)) != 0) return Progress::finished;
  return now.started != 0 ? Progress::started : Progress::waiting;
}

Progress wait_while(Progress state, const Queued& queued, std::chrono::milliseconds limit) {
  const auto end = Clock::now() + limit;
  Progress now = progress_of(queued);
  for (auto nap = 1ms; now <= state && Clock::now() < end; nap = std::min(nap * 2, 20ms)) {
    std::this_thread::sleep_for(nap);
    now = progress_of(queued);
  }
  return now;
}

// The process marks the start before it looks at `cancelled`, and we write before we look: one of both sees the other.
Result<void> wait_for_end(const std::string& proc_root, pid_t pid, const Queued& queued,
                          std::chrono::milliseconds patience) {
  Progress state = wait_while(Progress::waiting, queued, patience);
  if (state == Progress::waiting) {
    const std::string place = place_of_main_thread(proc_root, pid);
    const std::uint32_t yes = 1;
    queued.memory->write(queued.block_address + offsetof(CallBlock, cancelled), &yes, sizeof yes);
    state = progress_of(queued);
    if (state == Progress::waiting) {
      return fail(
          problem(ErrorKind::unsupported,
                  "the main thread of " + process(pid) + " did not come back to Python within " +
                      std::to_string(patience.count()) + " ms: " + place,
                  "Try again when it computes; a job that hangs there (a collective, a device wait) needs py-spy "
                  "dump --native"));
    }
  }
  if (state == Progress::started) state = wait_while(Progress::started, queued, std::max(patience, 1000ms));
  if (!queued.memory->alive()) {
    return fail(ended_meanwhile(pid));
  }
  if (state == Progress::finished) return {};
  return fail(problem(ErrorKind::unsupported, "what was injected into " + process(pid) + " has begun but does not end",
                      "Look at the job's own output"));
}

}  // namespace

Result<Injection> inject_by_ptrace(const std::string& proc_root, pid_t pid, const PythonSymbols& symbols,
                                   std::string_view wrapped_source, std::chrono::milliseconds patience) {
  const auto begin = Clock::now();
  const auto queued = stop_and_queue_guarded(proc_root, pid, symbols, wrapped_source);
  if (!queued) return tl::make_unexpected(queued.error());
  const auto ended = wait_for_end(proc_root, pid, *queued, patience);
  if (!ended) return tl::make_unexpected(ended.error());
  Injection out;
  out.python = symbols.version;
  out.stopped_ns = queued->stopped_ns;
  out.finished_ns = std::chrono::duration_cast<std::chrono::nanoseconds>(Clock::now() - begin).count();
  return out;
}

Result<Injection> inject_python(pid_t pid, std::string_view source, std::chrono::milliseconds patience) {
  const std::string proc_root = "/proc";
  if (source.find('\0') != std::string_view::npos) {
    return fail(problem(ErrorKind::usage, "Python source cannot hold a NUL byte"));
  }
  if (!kCanInject) {
    return fail(problem(ErrorKind::unsupported, "attaching is made for x86-64 and aarch64 processors",
                        "Start the job with stepscope run"));
  }
  if (const auto possible = check_target(proc_root, pid); !possible) return tl::make_unexpected(possible.error());
  if (read_memory_map(proc_root, pid).empty()) {
    return fail(is_ending(proc_root, pid) ? ended_meanwhile(pid) : why_refused(proc_root, pid, EPERM));
  }
  const auto symbols = find_python_symbols(proc_root, pid);
  if (!symbols) return fail(is_ending(proc_root, pid) ? ended_meanwhile(pid) : symbols.error());
  if (symbols->version.major == 3 && symbols->version.minor >= 14) {
    auto done = inject_by_remote_exec(proc_root, pid, source, patience);
    if (done) {
      if (*done) (*done)->python = symbols->version;
      return *done;
    }
  }
  return inject_by_ptrace(proc_root, pid, *symbols, wrapped(source, pid_inside_of(proc_root, pid)), patience);
}

}  // namespace stepscope::collect
