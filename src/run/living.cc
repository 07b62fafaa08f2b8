#include "run/living.h"

#include <signal.h>
#include <unistd.h>

#include <cerrno>

namespace stepscope::run {

bool process_exists(std::int64_t pid) { return pid > 0 && (::kill(static_cast<pid_t>(pid), 0) == 0 || errno == EPERM); }

bool is_running(std::string_view host, std::int64_t pid) {
  char name[256] = "";
  const bool here = ::gethostname(name, sizeof name - 1) == 0 && host == name;
  return !here || process_exists(pid);
}

}  // namespace stepscope::run
