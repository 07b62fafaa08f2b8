// A Kineto client as small as it can be, made from the protocol's description and not from our own encoder.
#pragma once

#include <doctest/doctest.h>
#include <poll.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <cstddef>
#include <cstring>
#include <optional>
#include <string>
#include <vector>

#include "collect/kineto_daemon/server.h"

namespace stepscope::collect::kineto {

template <class T>
void append(std::string& out, T number) {
  out.append(reinterpret_cast<const char*>(&number), sizeof number);
}

inline std::string datagram(const std::string& type, const std::string& payload) {
  std::string out;
  append<std::uint64_t>(out, payload.size());
  out += type + std::string(32 - type.size(), '\0') + payload;
  return out;
}

inline std::string request(std::int32_t type, const std::vector<std::int32_t>& pids, std::int64_t job = 0) {
  std::string out;
  append(out, type);
  append(out, static_cast<std::int32_t>(pids.size()));
  append(out, job);
  for (const std::int32_t pid : pids) append(out, pid);
  return datagram("req", out);
}

inline std::string context(std::int32_t gpu, std::int32_t pid, std::int64_t job = 0) {
  std::string out;
  append(out, gpu);
  append(out, pid);
  append(out, job);
  return datagram("ctxt", out);
}

class FakeClient {
 public:
  // `folder` empty: abstract names. `own`: this client's name, unique on the machine.
  explicit FakeClient(std::string own, std::string daemon = "dynolog", std::string folder = "")
      : folder_(std::move(folder)), daemon_(std::move(daemon)), socket_(::socket(AF_UNIX, SOCK_DGRAM, 0)) {
    sockaddr_un at{};
    const socklen_t bytes = fill(at, own + std::to_string(::getpid()));
    bound_ = ::bind(socket_, reinterpret_cast<sockaddr*>(&at), bytes) == 0;
  }
  FakeClient(const FakeClient&) = delete;
  FakeClient& operator=(const FakeClient&) = delete;
  ~FakeClient() { ::close(socket_); }

  bool send(const std::string& bytes) const {
    sockaddr_un at{};
    const socklen_t size = fill(at, daemon_);
    return ::sendto(socket_, bytes.data(), bytes.size(), 0, reinterpret_cast<sockaddr*>(&at), size) >= 0;
  }

  // The payload of the next answer; none within `wait_ms`.
  std::optional<std::string> answer(int wait_ms) const {
    pollfd waited{socket_, POLLIN, 0};
    if (::poll(&waited, 1, wait_ms) <= 0) return std::nullopt;
    char bytes[8192];
    const ssize_t got = ::recv(socket_, bytes, sizeof bytes, 0);
    std::uint64_t size = 0;
    if (got < 40) return std::nullopt;
    std::memcpy(&size, bytes, sizeof size);
    return size + 40 == static_cast<std::uint64_t>(got) ? std::optional(std::string(bytes + 40, size)) : std::nullopt;
  }

  bool bound() const { return bound_; }

 private:
  socklen_t fill(sockaddr_un& at, const std::string& name) const {
    at.sun_family = AF_UNIX;
    const std::string path = folder_.empty() ? std::string(1, '\0') + name : folder_ + "/" + name;
    std::memcpy(at.sun_path, path.data(), path.size());
    return static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + path.size() + 1);
  }

  std::string folder_, daemon_;
  int socket_;
  bool bound_ = false;
};

// Asks until an answer comes, as Kineto does: on a busy machine one may come too late to be given.
inline std::optional<std::string> ask(Server& server, const FakeClient& client, const std::string& question,
                                      const Server::Decide& decide) {
  for (int i = 0; i < 100; ++i) {
    client.send(question);
    server.answer(std::chrono::milliseconds(5), decide);
    if (auto answer = client.answer(0)) return answer;
  }
  return std::nullopt;
}

}  // namespace stepscope::collect::kineto
