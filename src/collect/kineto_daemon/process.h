// What /proc says of a process that may be a Kineto client.
#pragma once

#include <optional>
#include <string>

namespace stepscope::collect::kineto {

// A variable of the environment that the process was started with; none: not set, or nothing of it can be read.
std::optional<std::string> process_variable(int pid, const std::string& name);

// False when the process has ended (a zombie has).
bool process_lives(int pid);

// The user that it runs as (effective); none when it has ended.
std::optional<unsigned> process_user(int pid);

// True when it sees other files at its paths than this process does (a container); they are below /proc/PID/root.
bool has_own_files(int pid);

// True when it counts processes in a way of its own (a container). Also true when that cannot be read.
bool has_own_pids(int pid);

}  // namespace stepscope::collect::kineto
