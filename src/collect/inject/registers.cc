// What the processors share: whole register sets in and out by PTRACE_GETREGSET.
#include "collect/inject/registers.h"

#include <elf.h>
#include <sys/ptrace.h>
#include <sys/syscall.h>
#include <sys/uio.h>

#include <array>
#include <cerrno>

#include "collect/inject/disturbed_calls.h"

#ifndef NT_X86_XSTATE
#define NT_X86_XSTATE 0x202
#endif

namespace stepscope::collect {
namespace {

constexpr std::size_t kMostVectorBytes = 64 << 10;

bool read_set(pid_t thread, int set, void* into, std::size_t& bytes) {
  iovec piece{into, bytes};
  if (ptrace(static_cast<__ptrace_request>(PTRACE_GETREGSET), thread, set, &piece) != 0) return false;
  bytes = piece.iov_len;
  return true;
}

bool write_set(pid_t thread, int set, const void* from, std::size_t bytes) {
  iovec piece{const_cast<void*>(from), bytes};
  return ptrace(static_cast<__ptrace_request>(PTRACE_SETREGSET), thread, set, &piece) == 0;
}

// aarch64 keeps its wider sets (SVE, SME) in other notes; those registers overlap with the ones of NT_PRFPREG.
constexpr std::array kVectorSets {
#if defined(__x86_64__)
  NT_X86_XSTATE,
#elif defined(__aarch64__)
  0x405,  // NT_ARM_SVE: also when the thread uses no SVE, then in the short form
#endif
      NT_PRFPREG
};

}  // namespace

bool read_general(pid_t thread, GeneralRegisters& out) {
  std::size_t bytes = sizeof out;
  if (!read_set(thread, NT_PRSTATUS, &out, bytes)) return false;
  errno = ENOEXEC;
  return bytes == sizeof out;
}

bool write_general(pid_t thread, const GeneralRegisters& in) { return write_set(thread, NT_PRSTATUS, &in, sizeof in); }

bool read_registers(pid_t thread, Registers& out) {
  if (!read_general(thread, out.general)) return false;
  for (const int set : kVectorSets) {
    std::size_t bytes = kMostVectorBytes;
    out.vector.resize(bytes);
    if (!read_set(thread, set, out.vector.data(), bytes)) continue;
    out.vector.resize(bytes);
    out.vector_set = set;
    return true;
  }
  return false;
}

bool write_registers(pid_t thread, const Registers& in) {
  return write_set(thread, in.vector_set, in.vector.data(), in.vector.size()) && write_general(thread, in.general);
}

bool may_be_redone(long number) {
  // connect and close are not among them: done twice they fail or hit another file.
  constexpr std::array kCalls{
      SYS_epoll_pwait,  SYS_semop,  SYS_semtimedop, SYS_io_getevents, SYS_rt_sigtimedwait, SYS_read,    SYS_write,
      SYS_recvfrom,     SYS_sendto, SYS_recvmsg,    SYS_sendmsg,      SYS_accept,          SYS_accept4,
#ifdef SYS_epoll_pwait2
      SYS_epoll_pwait2,
#endif
#ifdef SYS_epoll_wait
      SYS_epoll_wait,
#endif
  };
  for (const long call : kCalls) {
    if (call == number) return true;
  }
  return false;
}

}  // namespace stepscope::collect
