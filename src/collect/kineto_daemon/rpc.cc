// One connection, one question, one answer; every step has a limit in time, as the port may be anyone's.
#include "collect/kineto_daemon/rpc.h"

#include <arpa/inet.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <poll.h>
#include <simdjson.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

#include "collect/kineto_daemon/process.h"
#include "run/json_text.h"

namespace stepscope::collect::kineto {
namespace {

using std::chrono::milliseconds;

constexpr std::int32_t kLargestAnswer = 1 << 20;

Error unreadable(const std::string& what, int port) {
  return {ErrorKind::unreadable,
          "dynolog on port " + std::to_string(port) + " " + what,
          "",
          {},
          "Check that dynolog runs and listens there (dyno status), or stop it"};
}

// A connection that is closed at the end, and whose steps end after `patience`.
class Connection {
 public:
  Connection(int family, milliseconds patience)
      : socket_(socket(family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0)), patience_(patience) {}
  Connection(const Connection&) = delete;
  Connection& operator=(const Connection&) = delete;
  ~Connection() {
    if (socket_ >= 0) close(socket_);
  }

  bool connect_to(const sockaddr* at, socklen_t bytes) const {
    if (socket_ < 0) return false;
    if (connect(socket_, at, bytes) == 0) return true;
    if (errno != EINPROGRESS || !ready(POLLOUT)) return false;
    int failure = 0;
    socklen_t size = sizeof failure;
    return getsockopt(socket_, SOL_SOCKET, SO_ERROR, &failure, &size) == 0 && failure == 0;
  }

  bool send_all(std::string_view bytes) const {
    while (!bytes.empty()) {
      if (!ready(POLLOUT)) return false;
      const ssize_t sent = send(socket_, bytes.data(), bytes.size(), MSG_NOSIGNAL);
      if (sent < 0 && errno != EAGAIN && errno != EINTR) return false;
      if (sent > 0) bytes.remove_prefix(static_cast<std::size_t>(sent));
    }
    return true;
  }

  bool receive_all(char* to, std::size_t bytes) const {
    while (bytes > 0) {
      if (!ready(POLLIN)) return false;
      const ssize_t got = recv(socket_, to, bytes, 0);
      if (got == 0 || (got < 0 && errno != EAGAIN && errno != EINTR)) return false;
      if (got < 0) continue;
      to += got;
      bytes -= static_cast<std::size_t>(got);
    }
    return true;
  }

 private:
  bool ready(short what) const {
    pollfd waited{socket_, what, 0};
    return poll(&waited, 1, static_cast<int>(patience_.count())) > 0;
  }

  int socket_;
  milliseconds patience_;
};

bool connect_v4(const Connection& connection, int port) {
  sockaddr_in at{};
  at.sin_family = AF_INET;
  at.sin_port = htons(static_cast<std::uint16_t>(port));
  at.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  return connection.connect_to(reinterpret_cast<const sockaddr*>(&at), sizeof at);
}

bool connect_v6(const Connection& connection, int port) {
  sockaddr_in6 at{};
  at.sin6_family = AF_INET6;
  at.sin6_port = htons(static_cast<std::uint16_t>(port));
  at.sin6_addr = in6addr_loopback;
  return connection.connect_to(reinterpret_cast<const sockaddr*>(&at), sizeof at);
}

Result<std::string> converse(const Connection& connection, const std::string& question, int port) {
  const auto size = static_cast<std::int32_t>(question.size());
  std::string message(sizeof size, '\0');
  std::memcpy(message.data(), &size, sizeof size);
  if (!connection.send_all(message + question)) return fail(unreadable("does not take the request", port));
  std::int32_t bytes = 0;
  if (!connection.receive_all(reinterpret_cast<char*>(&bytes), sizeof bytes) || bytes <= 0 || bytes > kLargestAnswer) {
    return fail(unreadable("gives no answer", port));
  }
  std::string answer(static_cast<std::size_t>(bytes), '\0');
  if (!connection.receive_all(answer.data(), answer.size())) return fail(unreadable("ends within its answer", port));
  return answer;
}

std::string question_of(const DynologOptions& options, const std::string& config) {
  std::string pids;
  for (const int pid : options.pids) pids += (pids.empty() ? "" : ", ") + std::to_string(pid);
  return R"({"fn": "setKinetOnDemandRequest", "config": )" + run::json_string(config) +
         ", \"job_id\": " + std::to_string(options.job) + ", \"pids\": [" + pids + "], \"process_limit\": 1000}";
}

bool take_pids(simdjson::dom::element answer, const char* key, std::vector<int>& out) {
  simdjson::dom::array pids;
  if (answer[key].get(pids) != simdjson::SUCCESS) return false;
  for (const simdjson::dom::element pid : pids) {
    std::int64_t number = 0;
    if (pid.get(number) == simdjson::SUCCESS) out.push_back(static_cast<int>(number));
  }
  return true;
}

bool contains(const std::vector<int>& pids, int pid) { return std::find(pids.begin(), pids.end(), pid) != pids.end(); }

Client asked_client(int pid, std::int64_t job, bool told) {
  Client out;
  out.pid = out.inside_pid = pid;
  out.user = process_user(pid).value_or(geteuid());
  out.job = job;
  out.was_busy = !told;
  if (told) {
    const auto now = std::chrono::system_clock::now().time_since_epoch();
    out.configured_unix_ns = std::chrono::duration_cast<std::chrono::nanoseconds>(now).count();
  }
  return out;
}

Result<Served> served_by(const std::string& answer, const DynologOptions& options) {
  simdjson::dom::parser parser;
  simdjson::dom::element parsed;
  std::vector<int> matched, triggered;
  if (parser.parse(answer).get(parsed) != simdjson::SUCCESS || !take_pids(parsed, "processesMatched", matched) ||
      !take_pids(parsed, "activityProfilersTriggered", triggered)) {
    return fail(unreadable("answers something else: " + answer.substr(0, 100), options.port));
  }
  Served out;
  out.request = options.request;
  for (const int pid : options.pids) {
    if (!contains(matched, pid)) {
      out.never_asked.push_back(pid);
      continue;
    }
    const bool told = contains(triggered, pid);
    out.clients[pid] = asked_client(pid, options.job, told);
    (told ? out.configured : out.too_late).push_back(pid);
  }
  out.told_within = options.interval;
  return out;
}

}  // namespace

Result<Served> ask_dynolog(const DynologOptions& options) {
  DynologOptions asked = options;
  if (asked.pids.empty()) return fail({ErrorKind::usage, "dynolog is asked for no process", "", {}, "Name a process"});
  if (const auto checked = to_config(asked.request); !checked) return fail(checked.error());
  if (asked.request.duration_ms && asked.request.start_unix_ms == 0) {
    asked.request.start_unix_ms = earliest_start_unix_ms(asked.request, asked.interval);
  }
  const Result<std::string> config = to_config(asked.request);
  if (!config) return fail(config.error());
  const std::string question = question_of(asked, *config);
  const Connection v4(AF_INET, asked.patience), v6(AF_INET6, asked.patience);
  Result<std::string> answer = fail(unreadable("does not listen", asked.port));
  if (connect_v4(v4, asked.port)) {
    answer = converse(v4, question, asked.port);
  } else if (connect_v6(v6, asked.port)) {
    answer = converse(v6, question, asked.port);
  }
  if (!answer) return fail(answer.error());
  return served_by(*answer, asked);
}

}  // namespace stepscope::collect::kineto
