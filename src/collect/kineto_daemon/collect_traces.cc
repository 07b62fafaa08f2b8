// Looks for the files five times a second; what is no file of the told process (another owner, older than the request,
// a link) is not taken, as anyone may write below /tmp.
#include "collect/kineto_daemon/collect_traces.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <thread>

#include "collect/kineto_daemon/missing.h"
#include "collect/kineto_daemon/process.h"

namespace stepscope::collect::kineto {
namespace {

using std::chrono::milliseconds;

constexpr milliseconds kStep{200};
constexpr std::int64_t kClock_ns = 1'000'000'000;  // file systems count time coarsely

// One told process whose file is waited for.
struct Awaited {
  Client client;
  std::string root;         // put before its paths
  std::int64_t bytes = -1;  // at the last look
  bool ended = false;       // was gone at the last look
};

// The size of a regular file of the process that is younger than the request; -1: there is none.
std::int64_t size_of(const std::string& path, const Client& client) {
  struct stat found {};
  if (lstat(path.c_str(), &found) != 0 || !S_ISREG(found.st_mode) || found.st_uid != client.user) return -1;
  const std::int64_t changed_ns = std::int64_t{found.st_mtim.tv_sec} * 1'000'000'000 + found.st_mtim.tv_nsec;
  return changed_ns + kClock_ns < client.configured_unix_ns.value_or(0) ? -1 : found.st_size;
}

bool ends_as_json(const std::string& path, std::int64_t bytes) {
  const int file = open(path.c_str(), O_RDONLY | O_NOFOLLOW | O_CLOEXEC | O_NONBLOCK);
  if (file < 0) return false;
  std::array<char, 64> tail{};
  const std::int64_t from = std::max<std::int64_t>(0, bytes - static_cast<std::int64_t>(tail.size()));
  const ssize_t got = pread(file, tail.data(), tail.size(), from);
  close(file);
  const std::string_view text(tail.data(), got > 0 ? static_cast<std::size_t>(got) : 0);
  const std::size_t last = text.find_last_not_of(" \t\r\n");
  return last != std::string_view::npos && text[last] == '}';
}

std::array<std::string, 2> places(const Awaited& awaited, const std::string& prefix) {
  const int pid = awaited.client.inside_pid;
  return {awaited.root + trace_path(prefix, pid), awaited.root + trace_path("/tmp/libkineto_activities", pid)};
}

// The file, once it is whole and was as long at the look before.
std::optional<TraceFile> look(Awaited& awaited, const std::string& prefix) {
  const auto paths = places(awaited, prefix);
  for (const std::string& path : paths) {
    const std::int64_t bytes = size_of(path, awaited.client);
    if (bytes <= 0) continue;
    const bool settled = bytes == awaited.bytes;
    awaited.bytes = bytes;
    if (!settled || !ends_as_json(path, bytes)) return std::nullopt;
    return TraceFile{awaited.client.pid,
                     path,
                     static_cast<std::uint64_t>(bytes),
                     awaited.client.first_poll_unix_ns,
                     awaited.client.configured_unix_ns.value_or(0),
                     path != paths.front()};
  }
  return std::nullopt;
}

bool writes(const Awaited& awaited, const std::string& prefix) {
  const auto paths = places(awaited, prefix);
  return awaited.bytes > 0 || std::any_of(paths.begin(), paths.end(), [&](const std::string& path) {
           return size_of(path + ".tmp", awaited.client) >= 0;
         });
}

std::chrono::system_clock::time_point end_of(const OnDemand& request, milliseconds patience) {
  auto end = std::chrono::system_clock::now();
  if (request.duration_ms) {
    const std::chrono::system_clock::time_point planned{milliseconds(request.start_unix_ms + *request.duration_ms)};
    end = std::max(end, planned);
  }
  return end + patience;
}

std::vector<Awaited> all_awaited(const Served& served) {
  std::vector<Awaited> out;
  for (const int pid : served.configured) {
    const auto at = served.clients.find(pid);
    if (at == served.clients.end()) continue;
    out.push_back({at->second, has_own_files(pid) ? "/proc/" + std::to_string(pid) + "/root" : ""});
  }
  return out;
}

// Takes what is there; processes that have ended without a file leave at the second look, as a file may come last.
void look_at_all(std::vector<Awaited>& awaited, const std::string& prefix, Collected& out) {
  for (auto at = awaited.begin(); at != awaited.end();) {
    const bool lives = process_lives(at->client.pid);
    if (std::optional<TraceFile> file = look(*at, prefix)) {
      out.files.push_back(std::move(*file));
      at = awaited.erase(at);
    } else if (!lives && at->ended && at->bytes < 0) {
      out.missing.push_back(missing_trace(at->client, Reason::ended));
      at = awaited.erase(at);
    } else {
      at->ended = !lives;
      ++at;
    }
  }
}

}  // namespace

Collected collect_traces(Server* server, const Served& served, const CollectOptions& options) {
  Collected out;
  for (const int pid : served.never_asked) out.missing.push_back(missing_question(pid, served.socket_folders));
  for (const int pid : served.too_late) {
    const Client& client = served.clients.at(pid);
    const Reason reason = client.was_busy ? Reason::busy : Reason::too_late;
    out.missing.push_back(missing_trace(client, process_lives(pid) ? reason : Reason::ended));
  }
  std::vector<Awaited> awaited = all_awaited(served);
  const std::string& prefix = served.request.file_prefix;
  const auto end = end_of(served.request, options.patience);
  for (;;) {
    look_at_all(awaited, prefix, out);
    const bool cancelled = options.cancelled && options.cancelled();
    if (awaited.empty() || cancelled || std::chrono::system_clock::now() >= end) break;
    if (server != nullptr) {
      server->answer(kStep, nullptr);
    } else {
      std::this_thread::sleep_for(kStep);
    }
  }
  for (const Awaited& rest : awaited) {
    const Reason reason = writes(rest, prefix) ? Reason::still_writing : Reason::nothing_written;
    out.missing.push_back(missing_trace(rest.client, reason));
  }
  const auto by_pid = [](const auto& a, const auto& b) { return a.pid < b.pid; };
  std::sort(out.files.begin(), out.files.end(), by_pid);
  std::sort(out.missing.begin(), out.missing.end(), by_pid);
  return out;
}

}  // namespace stepscope::collect::kineto
