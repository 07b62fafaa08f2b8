// Whether a process that wrote into the run folder is still there.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace stepscope::run {

// On this host and known to the system.
bool process_exists(std::int64_t pid);

std::string host_name();
bool is_this_host(std::string_view host);

// What the names of this host's files in a run folder begin with: HOST, in a container HOST-NUMBER with the number of
// its process namespace (docs/run-folder.md; made in the same way by the hooks).
std::string host_in_names();

// Of a process on another host that cannot be told: it counts as running.
bool is_running(std::string_view host, std::int64_t pid);

}  // namespace stepscope::run
