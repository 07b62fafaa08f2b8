// The daemon that Kineto clients ask every 5 s: remembers who asks, answers at once, hands out configurations.
//
// A client waits for an answer about 90 ms and takes a later one for the answer to its next question; what is older
// than that is therefore not answered at all. Any local user can send: only processes of our own user are answered
// (root answers all), by the kernel's word on who sent.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "base/result.h"
#include "collect/kineto_daemon/endpoint.h"
#include "collect/kineto_daemon/protocol.h"

namespace stepscope::collect::kineto {

struct Client {
  int pid = 0;                 // as this process sees it
  int inside_pid = 0;          // as it sees itself, in a container another one; stands in its trace's name
  unsigned user = 0;           // uid
  std::vector<int> ancestors;  // parent first, as it sees them
  std::int64_t job = 0;        // SLURM_JOB_ID, else 0
  std::optional<int> gpu;      // told by GPU builds only
  int polls = 0;
  std::int64_t first_poll_unix_ns = 0;
  std::int64_t last_poll_unix_ns = 0;
  std::int64_t interval_ns = 0;  // between its last two polls in turn; 0: not seen yet
  bool busy = false;             // its last poll said that a trace runs
  bool was_busy = false;
  std::optional<std::int64_t> configured_unix_ns;  // when it was handed a configuration
};

// Datagrams that were not acted upon.
struct Ignored {
  std::int64_t malformed = 0;     // no message of the protocol
  std::int64_t other_user = 0;    // of another user, or of a sender that the kernel does not name
  std::int64_t forged = 0;        // says to be another process than it is
  std::int64_t late = 0;          // older than the client's patience when read
  std::int64_t unanswerable = 0;  // a client that would not accept our address: its folder is spelled differently
  std::int64_t unsent = 0;        // the client was gone, or its queue full
  std::int64_t too_many = 0;      // more clients than are remembered
};

class Server {
 public:
  struct Places {
    bool abstract = true;              // where clients without KINETO_IPC_SOCKET_DIR ask
    std::string name = "dynolog";      // of the abstract socket; another one for tests only
    std::vector<std::string> folders;  // values of KINETO_IPC_SOCKET_DIR among the clients
  };
  // ErrorKind::unsupported: a dynolog (or another stepscope) answers there already.
  static Result<Server> open(const Places& places);

  // What a client that asks (not for the first time) and can start a trace is to get: configuration text, or empty for
  // nothing. Called before the answer leaves, so it must take a few milliseconds at most.
  using Decide = std::function<std::string(const Client&)>;

  // Answers whoever asks, for `span`.
  void answer(std::chrono::milliseconds span, const Decide& decide);

  const std::map<int, Client>& clients() const { return clients_; }  // by pid
  const Ignored& ignored() const { return ignored_; }
  const std::vector<std::string>& folders() const { return folders_; }

 private:
  void answer_one(Endpoint& endpoint, const Datagram& datagram, const Decide& decide);
  Client* known(const ucred& sender, int inside_pid);
  void answer_context(Endpoint& endpoint, const Datagram& datagram, const Context& context);
  void answer_request(Endpoint& endpoint, const Datagram& datagram, const Request& request, const Decide& decide);

  std::vector<Endpoint> endpoints_;
  std::vector<std::string> folders_;
  std::map<int, Client> clients_;
  Ignored ignored_;
};

}  // namespace stepscope::collect::kineto
