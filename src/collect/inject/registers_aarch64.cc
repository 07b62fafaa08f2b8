// aarch64. The kernel rewinds an interrupted system call before it lets us look, so there is nothing to mark; the price
// is that a call with a relative time limit may start its time again (gdb has the same).
// Compiled with a cross compiler, not yet run on such a machine.
#include "collect/inject/registers.h"

#if defined(__aarch64__)

#include <cerrno>

#include "collect/inject/disturbed_calls.h"

// The block's address comes in x19; offsets are those of CallBlock.
asm(R"(
  .pushsection .rodata
  .balign 4
stepscope_injected:
  ldr x9, [x19, #8]        // errno_location
  blr x9
  mov x20, x0
  ldr w21, [x0]
  ldr x0, [x19, #56]       // queued_code
  mov x1, x19
  ldr x9, [x19]            // add_pending_call
  blr x9
  str w21, [x20]
  brk #0
stepscope_queued:
  stp x29, x30, [sp, #-32]!
  mov x29, sp
  str x19, [sp, #16]
  mov x19, x0
  mov w9, #1
  str w9, [x19, #64]       // started, before we look at cancelled
  dmb ish
  ldr w9, [x19, #68]       // cancelled
  cbnz w9, 1f
  ldr x0, [x19, #48]       // source
  mov x1, #0
  ldr x9, [x19, #16]       // run_simple_string
  blr x9
1:
  ldr x0, [x19, #32]       // memory
  ldr x1, [x19, #40]       // memory_bytes
  ldr x9, [x19, #24]       // unmap
  ldr x19, [sp, #16]
  ldp x29, x30, [sp], #32
  br x9
stepscope_injected_end:
  .popsection
)");

namespace stepscope::collect {
namespace {

constexpr std::uint64_t kBranchTypeBits = 0xc00;  // pstate.BTYPE: we do not come from an indirect branch

const char* label_begin() {
  const char* out = nullptr;
  asm("adrp %0, stepscope_injected\n add %0, %0, :lo12:stepscope_injected" : "=r"(out));
  return out;
}

const char* label_queued() {
  const char* out = nullptr;
  asm("adrp %0, stepscope_queued\n add %0, %0, :lo12:stepscope_queued" : "=r"(out));
  return out;
}

const char* label_end() {
  const char* out = nullptr;
  asm("adrp %0, stepscope_injected_end\n add %0, %0, :lo12:stepscope_injected_end" : "=r"(out));
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
  registers.pc = code;
  registers.sp = stack_end / 16 * 16;
  registers.regs[29] = 0;
  registers.regs[30] = 0;
  registers.regs[19] = block;
  registers.pstate &= ~kBranchTypeBits;
}

void set_system_call(GeneralRegisters& registers, std::uint64_t instruction, long number,
                     const std::uint64_t (&arguments)[6]) {
  registers.pc = instruction;
  registers.regs[8] = static_cast<std::uint64_t>(number);
  for (int i = 0; i < 6; ++i) registers.regs[i] = arguments[i];
  registers.pstate &= ~kBranchTypeBits;
}

std::uint64_t result_of(const GeneralRegisters& registers) { return registers.regs[0]; }
std::uint64_t program_counter(const GeneralRegisters& registers) { return registers.pc; }
std::string_view system_call_instruction() { return {"\x01\x00\x00\xd4", 4}; }

// The first argument is gone (x0 holds the result) once the kernel has not rewound the call itself, so it cannot be
// done again: the job sees the EINTR that any debugger would cause.
bool redo_disturbed_call(GeneralRegisters&) { return false; }

}  // namespace stepscope::collect

#endif
