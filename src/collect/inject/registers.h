// The registers of a stopped thread, and the machine code that we let it run; one .cc per kind of processor.
//
// A thread stopped inside a system call must look, when we leave, exactly as when we came: the kernel decides by the
// registers whether it restarts the call. While our own code runs it must not do so, hence the "no system call" mark.
#pragma once

#include <sys/types.h>

#include <cstddef>
#include <cstdint>
#include <string_view>
#include <vector>

#if defined(__x86_64__)
#include <sys/user.h>
#elif defined(__aarch64__)
#include <asm/ptrace.h>
#endif

namespace stepscope::collect {

#if defined(__x86_64__)
using GeneralRegisters = user_regs_struct;
inline constexpr bool kCanInject = true;
#elif defined(__aarch64__)
using GeneralRegisters = user_pt_regs;
inline constexpr bool kCanInject = true;
#else
struct GeneralRegisters {};
inline constexpr bool kCanInject = false;
#endif

// All that the thread's own code can see; vector registers are as large as the processor's (AMX: 11 kB).
struct Registers {
  GeneralRegisters general{};
  int vector_set = 0;  // NT_*: the register set that `vector` holds
  std::vector<std::byte> vector;
};

// What the process finds in front of the source in the memory that we map there: read and written by the code below.
struct CallBlock {
  std::uint64_t add_pending_call = 0;
  std::uint64_t errno_location = 0;
  std::uint64_t run_simple_string = 0;
  std::uint64_t unmap = 0;
  std::uint64_t memory = 0;        // start of the whole mapping, code first
  std::uint64_t memory_bytes = 0;  // of the whole mapping
  std::uint64_t source = 0;        // NUL-terminated
  std::uint64_t queued_code = 0;
  std::uint32_t started = 0;    // set by the process when its main thread begins with the source
  std::uint32_t cancelled = 0;  // set by us: do not begin any more
};

// Position-independent code:
// `queue`: saves errno, queued = add_pending_call(queued_code, block), restores errno, traps; the block's address is in
// the register that set_call() fills. It returns to nobody, so it needs no return address and no stack of the thread's.
// `queued`: int queued(CallBlock*): started = 1; unless cancelled, run_simple_string(source, NULL); ends in
// unmap(memory, memory_bytes) as a tail call, which frees the code itself too and returns 0 to Python: success.
struct InjectedCode {
  std::string_view bytes;
  std::size_t queue_offset = 0;
  std::size_t queued_offset = 0;
};
InjectedCode injected_code();

// All return false with errno set.
bool read_general(pid_t thread, GeneralRegisters& out);  // also false (ENOEXEC) for a 32-bit thread
bool write_general(pid_t thread, const GeneralRegisters& in);
bool read_registers(pid_t thread, Registers& out);
bool write_registers(pid_t thread, const Registers& in);

// Both mark the thread as being in no system call.
void set_call(GeneralRegisters& registers, std::uint64_t code, std::uint64_t stack_end, std::uint64_t block);
void set_system_call(GeneralRegisters& registers, std::uint64_t instruction, long number,
                     const std::uint64_t (&arguments)[6]);
std::uint64_t result_of(const GeneralRegisters& registers);
std::uint64_t program_counter(const GeneralRegisters& registers);

// Bytes of the instruction that enters the kernel.
std::string_view system_call_instruction();

// Some calls (epoll_wait, sockets with a time limit) answer a mere stop with EINTR, which the job would see. Where the
// thread stands behind the system call instruction of such a call: makes it do the call again, and says so. To be used
// only where no signal waits for the thread.
bool redo_disturbed_call(GeneralRegisters& registers);

}  // namespace stepscope::collect
