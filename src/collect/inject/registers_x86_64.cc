// x86-64. No part of this touches the thread's own stack, so its red zone (128 bytes below rsp) stays whole.
#include "collect/inject/registers.h"

#if defined(__x86_64__)

#include <cerrno>

#include "collect/inject/disturbed_calls.h"

// The block's address comes in rbx; offsets are those of CallBlock.
asm(R"(
  .pushsection .rodata
  .local stepscope_injected, stepscope_queued, stepscope_injected_end
stepscope_injected:
  call *8(%rbx)            # errno_location
  mov %rax, %r12
  mov (%rax), %r13d
  mov 56(%rbx), %rdi       # queued_code
  mov %rbx, %rsi
  call *0(%rbx)            # add_pending_call
  mov %r13d, (%r12)
  int3
stepscope_queued:
  push %rbx                # aligns the stack as well
  mov %rdi, %rbx
  mov $1, %eax
  xchg %eax, 64(%rbx)      # started, before we look at cancelled
  cmpl $0, 68(%rbx)        # cancelled
  jne 1f
  mov 48(%rbx), %rdi       # source
  xor %esi, %esi
  call *16(%rbx)           # run_simple_string
1:
  mov 32(%rbx), %rdi       # memory
  mov 40(%rbx), %rsi       # memory_bytes
  mov 24(%rbx), %rax       # unmap
  pop %rbx
  jmp *%rax
stepscope_injected_end:
  .popsection
)");

namespace stepscope::collect {
namespace {

constexpr long kNoSystemCall = -1;

// The labels above by their distance from here, so that the linker needs no symbols of them.
const char* label_begin() {
  const char* out = nullptr;
  asm("lea stepscope_injected(%%rip), %0" : "=r"(out));
  return out;
}

const char* label_queued() {
  const char* out = nullptr;
  asm("lea stepscope_queued(%%rip), %0" : "=r"(out));
  return out;
}

const char* label_end() {
  const char* out = nullptr;
  asm("lea stepscope_injected_end(%%rip), %0" : "=r"(out));
  return out;
}

}  // namespace

static_assert(offsetof(CallBlock, errno_location) == 8 && offsetof(CallBlock, run_simple_string) == 16 &&
              offsetof(CallBlock, unmap) == 24 && offsetof(CallBlock, memory) == 32 &&
              offsetof(CallBlock, memory_bytes) == 40 && offsetof(CallBlock, source) == 48 &&
              offsetof(CallBlock, queued_code) == 56 && offsetof(CallBlock, started) == 64 &&
              offsetof(CallBlock, cancelled) == 68);

InjectedCode injected_code() {
  const char* begin = label_begin();
  return {{begin, static_cast<std::size_t>(label_end() - begin)}, 0, static_cast<std::size_t>(label_queued() - begin)};
}

void set_call(GeneralRegisters& registers, std::uint64_t code, std::uint64_t stack_end, std::uint64_t block) {
  registers.rip = code;
  registers.rsp = stack_end / 16 * 16;
  registers.rbp = 0;
  registers.rbx = block;
  registers.eflags &= ~0x400ULL;  // the direction flag is clear at a call
  registers.orig_rax = static_cast<unsigned long long>(kNoSystemCall);
}

void set_system_call(GeneralRegisters& registers, std::uint64_t instruction, long number,
                     const std::uint64_t (&arguments)[6]) {
  registers.rip = instruction;
  registers.rax = static_cast<unsigned long long>(number);
  registers.rdi = arguments[0];
  registers.rsi = arguments[1];
  registers.rdx = arguments[2];
  registers.r10 = arguments[3];
  registers.r8 = arguments[4];
  registers.r9 = arguments[5];
  registers.orig_rax = static_cast<unsigned long long>(kNoSystemCall);
}

std::uint64_t result_of(const GeneralRegisters& registers) { return registers.rax; }
std::uint64_t program_counter(const GeneralRegisters& registers) { return registers.rip; }
std::string_view system_call_instruction() { return "\x0f\x05"; }

bool redo_disturbed_call(GeneralRegisters& registers) {
  const auto number = static_cast<long>(registers.orig_rax);
  if (static_cast<long>(registers.rax) != -EINTR || number < 0 || !may_be_redone(number)) return false;
  registers.rax = registers.orig_rax;
  registers.rip -= system_call_instruction().size();
  registers.orig_rax = static_cast<unsigned long long>(kNoSystemCall);
  return true;
}

}  // namespace stepscope::collect

#endif
