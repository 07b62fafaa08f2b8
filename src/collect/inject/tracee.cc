#include "collect/inject/tracee.h"

#include <sys/ptrace.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <thread>

#include "collect/processes/memory_map.h"
#include "collect/processes/proc_text.h"

namespace stepscope::collect {
namespace {

using namespace std::chrono_literals;

constexpr auto kStopLimit = 3000ms;    // longer: the thread is in an uninterruptible wait
constexpr auto kCallLimit = 10'000ms;  // a slow, busy machine; one system call takes microseconds
constexpr auto kLockPatience = 300ms;  // then the thread may be waiting for a lock that it holds itself
constexpr auto kTurn = 20ms;
constexpr int kGoodPlaceTries = 50;
constexpr int kStepsPerRound = 25;
constexpr int kRounds = 60;
constexpr std::array kFaults{SIGSEGV, SIGBUS, SIGILL, SIGFPE, SIGSYS};

long trace(int request, pid_t thread, const void* address, const void* data) {
  return ptrace(static_cast<__ptrace_request>(request), thread, const_cast<void*>(address), const_cast<void*>(data));
}

const void* as_data(std::uint64_t value) { return reinterpret_cast<const void*>(value); }

bool is_fault(int signal) { return std::find(kFaults.begin(), kFaults.end(), signal) != kFaults.end(); }

// All signals but those of faults and traps: blocked ones of these would lose the job's own handlers.
std::uint64_t mask_for_calls() {
  std::uint64_t out = ~std::uint64_t{0};
  for (const int fault : kFaults) out &= ~(std::uint64_t{1} << (fault - 1));
  return out & ~(std::uint64_t{1} << (SIGTRAP - 1));
}

// A line "NAME:\tHEX" of a status file.
std::uint64_t mask_of(const std::string& path, const std::string& name) {
  return std::strtoull(status_field(proc_text(path), name).c_str(), nullptr, 16);
}

Error problem(ErrorKind kind, std::string message) { return {kind, std::move(message), {}, {}, ""}; }

}  // namespace

Tracee::Tracee(pid_t thread, RemoteMemory memory, std::string proc_root)
    : thread_(thread), proc_root_(std::move(proc_root)), memory_(std::move(memory)) {}

Tracee::~Tracee() {
  if (attached_) (void)release();
}

Result<std::unique_ptr<Tracee>> Tracee::stop(const std::string& proc_root, pid_t pid, int& seize_errno) {
  auto memory = RemoteMemory::open(proc_root, pid);
  std::unique_ptr<Tracee> out;
  if (memory) {
    out.reset(new Tracee(pid, std::move(*memory), proc_root));
    out->instruction_ = out->find_system_call_instruction();  // before the stop: the map of a torch process is long
  }
  if (trace(PTRACE_SEIZE, pid, nullptr, nullptr) != 0) {
    seize_errno = errno;
    return fail(problem(errno == ESRCH ? ErrorKind::not_found : ErrorKind::unreadable, std::strerror(errno)));
  }
  if (!memory) {
    seize_errno = EPERM;
    return tl::make_unexpected(memory.error());
  }
  out->since_ = Clock::now();
  if (const auto stopped = out->stop_at_a_good_place(); !stopped) return tl::make_unexpected(stopped.error());
  if (const auto kept = out->keep_state(); !kept) return tl::make_unexpected(kept.error());
  return out;
}

Result<void> Tracee::stop_at_a_good_place() {
  for (int i = 0; i < kGoodPlaceTries; ++i) {
    const Event event = interrupt();
    if (event != Event::interrupted) return fail(error_of(event));
    attached_ = true;
    if (!in_restartable_sequence()) return {};
    attached_ = false;
    trace(PTRACE_CONT, thread_, nullptr, nullptr);
    std::this_thread::sleep_for(20us);
  }
  return fail(problem(ErrorKind::unsupported, "the main thread did not leave a restartable sequence"));
}

// After this the thread can be made to run something else.
Result<void> Tracee::keep_state() {
  if (!read_registers(thread_, saved_)) {
    return fail(
        problem(ErrorKind::unsupported, errno == ENOEXEC ? "it is a 32-bit program" : "its registers cannot be read"));
  }
  if (trace(PTRACE_GETSIGMASK, thread_, as_data(sizeof saved_mask_), &saved_mask_) != 0) {
    return fail(problem(ErrorKind::unsupported, "its signal mask cannot be read"));
  }
  if (!has_system_call_at(instruction_))
    return fail(problem(ErrorKind::unsupported, "no system call instruction is mapped in it"));
  const std::uint64_t mask = mask_for_calls();
  state_kept_ = true;
  if (trace(PTRACE_SETSIGMASK, thread_, as_data(sizeof mask), &mask) != 0) {
    return fail(problem(ErrorKind::unsupported, "its signal mask cannot be set"));
  }
  return {};
}

Tracee::Event Tracee::interrupt() {
  if (trace(PTRACE_INTERRUPT, thread_, nullptr, nullptr) != 0) return Event::ended;
  return wait(kStopLimit, PTRACE_CONT);
}

// Waits for the next stop that matters. Before the state is kept, signals go on to the thread; afterwards those that
// cannot be blocked are kept. `resume`: how the thread goes on meanwhile.
Tracee::Event Tracee::wait(std::chrono::milliseconds limit, int resume) {
  const auto begin = Clock::now();
  for (;;) {
    int status = 0;
    const pid_t got = waitpid(thread_, &status, WNOHANG | __WALL);
    if (got == 0 || (got < 0 && errno == EINTR)) {
      const auto passed = Clock::now() - begin;
      if (passed > limit) return Event::late;
      // Naps, no yielding: who sleeps comes back at once, who yields on a busy machine waits for the others' whole
      // turns.
      std::this_thread::sleep_for(passed < 50ms ? 20us : 500us);
      continue;
    }
    if (got < 0 || !WIFSTOPPED(status)) {
      attached_ = false;
      return Event::ended;
    }
    if (status >> 16 == PTRACE_EVENT_STOP) return Event::interrupted;
    const int signal = WSTOPSIG(status);
    siginfo_t info{};
    trace(PTRACE_GETSIGINFO, thread_, nullptr, &info);
    const bool by_the_processor = info.si_code > 0;
    if (state_kept_ && by_the_processor && signal == SIGTRAP) return Event::trapped;
    if (state_kept_ && by_the_processor && is_fault(signal)) {
      fault_ = signal;
      return Event::faulted;
    }
    if (state_kept_) kept_.push_back(info);
    trace(resume, thread_, nullptr, as_data(state_kept_ ? 0 : static_cast<std::uint64_t>(signal)));
  }
}

// Libraries with rseq critical sections (tcmalloc) rely on the kernel seeing the thread leave them; it would not.
bool Tracee::in_restartable_sequence() const {
  constexpr int kGetRseq = 0x420f;  // PTRACE_GET_RSEQ_CONFIGURATION, Linux 5.13
  struct {
    std::uint64_t area;
    std::uint32_t bytes, signature, flags, unused;
  } rseq{};
  struct {
    std::uint32_t version, flags;
    std::uint64_t start, length, abort;
  } section{};
  std::uint64_t current = 0;
  GeneralRegisters now{};
  if (trace(kGetRseq, thread_, as_data(sizeof rseq), &rseq) <= 0 || rseq.area == 0) return false;
  if (!memory_.read(rseq.area + 8, &current, sizeof current) || current == 0) return false;
  if (!memory_.read(current, &section, sizeof section) || !read_general(thread_, now)) return false;
  return program_counter(now) - section.start < section.length;
}

std::uint64_t Tracee::find_system_call_instruction() const {
  const std::string_view wanted = system_call_instruction();
  for (const Mapping& mapping : read_memory_map(proc_root_, thread_)) {
    if (!mapping.executable || (mapping.path != "[vdso]" && mapping.path.find("/libc") == std::string::npos)) continue;
    std::string code(std::min<std::uint64_t>(mapping.end - mapping.start, 2 << 20), '\0');
    if (!memory_.read(mapping.start, code.data(), code.size())) continue;
    for (std::size_t at = code.find(wanted); at != std::string::npos; at = code.find(wanted, at + 1)) {
      if (wanted.size() == 2 || at % wanted.size() == 0) return mapping.start + at;
    }
  }
  return 0;
}

bool Tracee::has_system_call_at(std::uint64_t address) const {
  std::string there(system_call_instruction().size(), '\0');
  return memory_.read(address, there.data(), there.size()) && there == system_call_instruction();
}

Error Tracee::error_of(Event event) const {
  switch (event) {
    case Event::ended: return problem(ErrorKind::not_found, "the process ended while it was stopped");
    case Event::late: return problem(ErrorKind::unsupported, "its main thread does not stop");
    default:
      return problem(ErrorKind::internal, "the call in its main thread failed with signal " + std::to_string(fault_));
  }
}

Result<std::uint64_t> Tracee::system_call(long number, const std::uint64_t (&arguments)[6]) {
  GeneralRegisters registers = saved_.general;
  set_system_call(registers, instruction_, number, arguments);
  if (!write_general(thread_, registers)) return fail(error_of(Event::ended));
  const Event event = go_on(PTRACE_SINGLESTEP, kCallLimit);
  if (event != Event::trapped) return fail(error_of(event));
  if (!read_general(thread_, registers)) return fail(error_of(Event::ended));
  const auto result = static_cast<std::int64_t>(result_of(registers));
  if (result < 0 && result > -4096) {
    return fail(problem(ErrorKind::unsupported, std::strerror(static_cast<int>(-result))));
  }
  return static_cast<std::uint64_t>(result);
}

Result<void> Tracee::write_code(std::uint64_t address, std::string_view bytes) {
  for (std::size_t at = 0; at < bytes.size(); at += sizeof(std::uint64_t)) {
    std::uint64_t word = 0;
    std::memcpy(&word, bytes.data() + at, std::min(sizeof word, bytes.size() - at));
    if (trace(PTRACE_POKEDATA, thread_, as_data(address + at), as_data(word)) != 0) {
      return fail(problem(ErrorKind::unsupported, std::string("code cannot be written: ") + std::strerror(errno)));
    }
  }
  return {};
}

Result<std::uint64_t> Tracee::call(std::uint64_t code, std::uint64_t stack_end, std::uint64_t block) {
  GeneralRegisters registers = saved_.general;
  set_call(registers, code, stack_end, block);
  if (!write_general(thread_, registers)) return fail(error_of(Event::ended));
  Event event = go_on(PTRACE_CONT, kLockPatience);
  if (event == Event::late) event = free_own_lock();
  if (event == Event::late)
    return fail(problem(ErrorKind::unsupported, "the lock of its queue of pending calls stays taken"));
  if (event != Event::trapped) return fail(error_of(event));
  if (!read_general(thread_, registers)) return fail(error_of(Event::ended));
  return result_of(registers);
}

// The call waits for a lock. If it was the thread itself that we stopped between taking and giving back this lock, it
// would wait forever; so the thread's own code gets some instructions to run, then the call goes on waiting, in turns.
// Possible because the call has a stack of its own. Few instructions: CPython 3.13 lets go of the GIL while it waits.
Tracee::Event Tracee::free_own_lock() {
  Registers inside;
  for (int round = 0; round < kRounds; ++round) {
    Event event = interrupt();
    if (event != Event::interrupted) return event;
    if (!read_registers(thread_, inside) || !write_registers(thread_, saved_)) return Event::ended;
    for (int step = 0; step < kStepsPerRound; ++step) {
      event = go_on(PTRACE_SINGLESTEP, kTurn);
      if (event == Event::late) {  // it waits in the kernel
        event = interrupt();
        step = kStepsPerRound;
      }
      if (event == Event::faulted || event == Event::ended || event == Event::late) return event;
    }
    if (!read_registers(thread_, saved_) || !write_registers(thread_, inside)) return Event::ended;
    event = go_on(PTRACE_CONT, kTurn);
    if (event != Event::late) return event;
  }
  // Given up: the thread goes on at saved_; the call's stack stays where it is.
  return interrupt() == Event::ended ? Event::ended : Event::late;
}

// Lets the thread run until a stop that means something: not one that we asked for before, or of the whole process.
Tracee::Event Tracee::go_on(int request, std::chrono::milliseconds limit) {
  const auto end = Clock::now() + limit;
  Event event = Event::interrupted;
  do {
    trace(request, thread_, nullptr, nullptr);
    event = wait(limit, request);
  } while (event == Event::interrupted && Clock::now() < end);
  return event;
}

bool Tracee::signal_waits() const {
  const std::string path = proc_root_ + "/" + std::to_string(thread_) + "/status";
  return ((mask_of(path, "SigPnd") | mask_of(path, "ShdPnd")) & ~saved_mask_) != 0;
}

// The first one is delivered with the detach, with all that came with it; more than one is sent as kill() would.
void Tracee::send_kept_signals() {
  int first = 0;
  for (siginfo_t& info : kept_) {
    if (first == 0 && trace(PTRACE_SETSIGINFO, thread_, nullptr, &info) == 0) {
      first = info.si_signo;
    } else {
      syscall(SYS_tgkill, thread_, thread_, info.si_signo);
    }
  }
  trace(PTRACE_DETACH, thread_, nullptr, as_data(static_cast<std::uint64_t>(first)));
}

Result<std::int64_t> Tracee::release() {
  if (!attached_) return fail(error_of(Event::ended));
  bool whole = true;
  if (state_kept_) {
    // The status file is read only where it matters.
    GeneralRegisters again = saved_.general;
    if (has_system_call_at(program_counter(again) - system_call_instruction().size()) && redo_disturbed_call(again) &&
        !signal_waits()) {
      saved_.general = again;
    }
    whole = write_registers(thread_, saved_);
    whole = trace(PTRACE_SETSIGMASK, thread_, as_data(sizeof saved_mask_), &saved_mask_) == 0 && whole;
  }
  send_kept_signals();
  attached_ = false;
  const auto stood = Clock::now() - since_;
  if (!whole) return fail(error_of(Event::ended));
  return std::chrono::duration_cast<std::chrono::nanoseconds>(stood).count();
}

}  // namespace stepscope::collect
