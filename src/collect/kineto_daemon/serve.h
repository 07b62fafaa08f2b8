// Hands one request to the ranks of a job so that all start at the same moment or iteration.
//
// First the polls are watched, for about one interval. By time: every client asks again within the next interval, so
// the start is set behind that and each gets the same text when it asks. By iteration: a rank rounds up from the
// iteration that it is in when it is told, so all must be told close together: the hand-out begins after the widest gap
// between the polls. Ranks that are told 0.3 s apart still part when a multiple of `start_roundup` falls into these 0.3
// s: the roundup has to be many times the iterations of `told_within`.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <vector>

#include "base/result.h"
#include "collect/kineto_daemon/config.h"
#include "collect/kineto_daemon/server.h"

namespace stepscope::collect::kineto {

struct ServeOptions {
  OnDemand request;
  // Is this process to be traced (a rank)? Launchers and compile workers ask as well. Called once per process, within
  // the 90 ms that it waits: a look at /proc/PID/environ is fine. Not set: exactly the expected ones.
  std::function<bool(const Client&)> wanted;
  std::vector<int> expected;                 // pids that will be told of when they never ask; may be empty
  std::chrono::milliseconds interval{5000};  // of the clients' polls; longer when their KINETO_CONFIG says so
  std::function<bool()> cancelled;           // looked at five times a second; may be empty
};

struct Served {
  OnDemand request;               // with the start that was agreed on
  std::map<int, Client> clients;  // every process that asked, by pid
  std::vector<int> configured;    // pids that were handed the request
  std::vector<int> too_late;      // wanted, but they asked when the others could no longer be joined, or were busy
  std::vector<int> never_asked;   // of the expected
  std::chrono::milliseconds told_within{0};  // between the first and the last hand-out
  std::vector<std::string> socket_folders;   // where was answered, besides the abstract name
  Ignored ignored;
};

// Returns as soon as all expected processes have the request, else when the time for handing out is over: two to three
// intervals. Fails when the request is not valid or starts too early for the clients.
Result<Served> serve(Server& server, const ServeOptions& options);

// The first moment at which every client that asks once more within `interval` can start by time.
std::int64_t earliest_start_unix_ms(const OnDemand& request, std::chrono::milliseconds interval);

// The moment (system clock) to begin a hand-out so that the clients' polls after it lie closest together. Clients that
// polled once are taken to poll every `interval_ns`. For serve and its test.
std::int64_t best_start_ns(const std::vector<Client>& clients, std::int64_t interval_ns, std::int64_t now_ns);

}  // namespace stepscope::collect::kineto
