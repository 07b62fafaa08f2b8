#include "run/living.h"

#include <signal.h>
#include <unistd.h>

#include <cerrno>

namespace stepscope::run {

bool process_exists(std::int64_t pid) { return pid > 0 && (::kill(static_cast<pid_t>(pid), 0) == 0 || errno == EPERM); }

bool is_this_host(std::string_view host) {
  char name[256] = "";
  return ::gethostname(name, sizeof name - 1) == 0 && host == name;
}

bool is_running(std::string_view host, std::int64_t pid) { return !is_this_host(host) || process_exists(pid); }

}  // namespace stepscope::run
