// Whether a process that wrote into the run folder is still there.
#pragma once

#include <cstdint>
#include <string_view>

namespace stepscope::run {

// On this host and known to the system.
bool process_exists(std::int64_t pid);

bool is_this_host(std::string_view host);

// Of a process on another host that cannot be told: it counts as running.
bool is_running(std::string_view host, std::int64_t pid);

}  // namespace stepscope::run
