// Why a process cannot be attached to, and where its main thread is when it does not come back to Python.
//
// Everything is read from files below `proc_root`, so that machines which forbid something can be played in tests.
#pragma once

#include <sys/types.h>

#include <string>

#include "base/result.h"

namespace stepscope::collect {

// What can be seen beforehand: no such process, ourselves, a kernel thread, ended, stopped, traced, 32-bit.
Result<void> check_target(const std::string& proc_root, pid_t pid);

// The sentence for a ptrace call that was refused with this errno, with the fix.
Error why_refused(const std::string& proc_root, pid_t pid, int reason);

// "it waits in the system call futex (futex_wait_queue), called from libc.so.6" and so on, as far as we may know.
std::string place_of_main_thread(const std::string& proc_root, pid_t pid);

}  // namespace stepscope::collect
