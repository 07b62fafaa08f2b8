#include "run/living.h"

#include <signal.h>
#include <unistd.h>

#include <cctype>
#include <cerrno>
#include <cstring>

namespace stepscope::run {
namespace {

// "-4026532182" in a container, whose process numbers are its own; else empty.
std::string process_namespace() {
  constexpr std::string_view kBegin = "pid:[", kFirst = "4026531836";  // of the machine itself
  char text[64] = "";
  if (::readlink("/proc/self/ns/pid", text, sizeof text - 1) < 0) return "";
  if (!std::string_view(text).starts_with(kBegin)) return "";
  const std::string number(text + kBegin.size(), std::strspn(text + kBegin.size(), "0123456789"));
  return number == kFirst ? "" : "-" + number;
}

}  // namespace

bool process_exists(std::int64_t pid) { return pid > 0 && (::kill(static_cast<pid_t>(pid), 0) == 0 || errno == EPERM); }

std::string host_name() {
  char name[256] = "";
  return ::gethostname(name, sizeof name - 1) == 0 ? name : "";
}

bool is_this_host(std::string_view host) { return !host.empty() && host == host_name(); }

std::string host_in_names() {
  std::string host = host_name();
  for (char& c : host) {
    if (!std::isalnum(static_cast<unsigned char>(c)) && c != '-' && c != '.') c = '-';
  }
  return (host.empty() ? "host" : host) + process_namespace();
}

bool is_running(std::string_view host, std::int64_t pid) { return !is_this_host(host) || process_exists(pid); }

}  // namespace stepscope::run
