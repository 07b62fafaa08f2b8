// When to answer whom with the request: one window by time, watching and then a window by iteration.
#include "collect/kineto_daemon/serve.h"

#include <algorithm>

#include "collect/kineto_daemon/process.h"

namespace stepscope::collect::kineto {
namespace {

using std::chrono::milliseconds;

constexpr std::int64_t kMs_ns = 1'000'000;
constexpr std::int64_t kSlack_ms = 500;  // by which a poll may come later than its interval says
// Kineto looks at a new request one second after it came, and refuses it when less than the warmup is left then.
constexpr std::int64_t kTakeUp_ms = 2000;
// Without a daemon clients sleep longer and longer between their attempts, this long at the most.
constexpr std::int64_t kLongestSleep_ms = 5120;
constexpr std::int64_t kAtOnce_ms = 300;  // within which a client asks again after attempts that took long
constexpr milliseconds kStep{200};

std::int64_t now_unix_ms() {
  return std::chrono::duration_cast<milliseconds>(std::chrono::system_clock::now().time_since_epoch()).count();
}

bool contains(const std::vector<int>& pids, int pid) { return std::find(pids.begin(), pids.end(), pid) != pids.end(); }

// One hand-out: who is wanted, what they get, and until when.
class HandOut {
 public:
  HandOut(Server& server, const ServeOptions& options)
      : server_(server), options_(options), begin_ns_(now_unix_ms() * kMs_ns) {}

  bool wanted(const Client& client) {
    const auto [at, fresh] = wanted_.try_emplace(client.pid, false);
    if (fresh) at->second = options_.wanted ? options_.wanted(client) : contains(options_.expected, client.pid);
    return at->second;
  }

  bool cancelled() const { return options_.cancelled && options_.cancelled(); }

  // Answers without handing out until everyone expected has polled (nobody expected: for one whole interval).
  void watch() {
    const std::int64_t longest_ms = std::max(options_.interval.count(), kLongestSleep_ms) + kSlack_ms;
    std::int64_t end = now_unix_ms() + longest_ms;
    bool complete = false;
    const Server::Decide nothing = [this](const Client& client) {
      wanted(client);
      return std::string();
    };
    while (now_unix_ms() < end && !cancelled()) {
      server_.answer(std::min(kStep, milliseconds(std::max<std::int64_t>(1, end - now_unix_ms()))), nothing);
      if (complete || options_.expected.empty() || !all([](const Client& client) { return client.polls > 0; }))
        continue;
      complete = true;
      end = std::min(end, now_unix_ms() + kAtOnce_ms);
    }
  }

  void hand_out(const std::string& config, std::int64_t from_ms, std::int64_t until_ms) {
    const Server::Decide decide = [&, this](const Client& client) {
      const std::int64_t now = now_unix_ms();
      const bool due = wanted(client) && !told(client) && now >= from_ms && now <= until_ms;
      return due ? config : std::string();
    };
    while (now_unix_ms() < until_ms && !cancelled()) {
      server_.answer(std::min(kStep, milliseconds(std::max<std::int64_t>(1, until_ms - now_unix_ms()))), decide);
      if (!options_.expected.empty() && all([this](const Client& client) { return told(client); })) return;
    }
  }

  std::vector<Client> wanted_clients() {
    std::vector<Client> out;
    for (const auto& [pid, client] : server_.clients()) {
      if (client.polls > 0 && wanted(client)) out.push_back(client);
    }
    return out;
  }

  Served result(OnDemand request) {
    Served out;
    out.request = std::move(request);
    out.clients = server_.clients();
    out.ignored = server_.ignored();
    out.socket_folders = server_.folders();
    std::int64_t first = 0, last = 0;
    for (const Client& client : wanted_clients()) {
      (told(client) ? out.configured : out.too_late).push_back(client.pid);
      if (!told(client)) continue;
      first = first == 0 ? *client.configured_unix_ns : std::min(first, *client.configured_unix_ns);
      last = std::max(last, *client.configured_unix_ns);
    }
    out.told_within = milliseconds((last - first) / kMs_ns);
    for (const int pid : options_.expected) {
      const auto at = out.clients.find(pid);
      if (at == out.clients.end() || at->second.polls == 0) out.never_asked.push_back(pid);
    }
    return out;
  }

 private:
  // Does it hold for every expected process that has not ended?
  template <class Test>
  bool all(const Test& test) const {
    return std::all_of(options_.expected.begin(), options_.expected.end(), [&](int pid) {
      const auto at = server_.clients().find(pid);
      return (at != server_.clients().end() && test(at->second)) || !process_lives(pid);
    });
  }

  // By this hand-out, not by one before it on the same server.
  bool told(const Client& client) const { return client.configured_unix_ns.value_or(0) >= begin_ns_; }

  Server& server_;
  const ServeOptions& options_;
  std::int64_t begin_ns_;
  std::map<int, bool> wanted_;
};

// How long before the start the last client must have its text.
std::int64_t before_start_ms(const OnDemand& request) { return request.warmup_s * 1000 + kTakeUp_ms; }

Error too_early(std::int64_t earliest_ms) {
  return {ErrorKind::usage,
          "the start is too early: not every process will have asked by then",
          "",
          {},
          "Start " + std::to_string((earliest_ms - now_unix_ms() + 999) / 1000) + " s from now or later"};
}

Result<void> serve_by_time(HandOut& hand_out, OnDemand& request, milliseconds interval) {
  const std::int64_t watched_ms = std::max(interval.count(), kLongestSleep_ms) + kSlack_ms;
  const std::int64_t earliest_ms = earliest_start_unix_ms(request, interval) + watched_ms;
  if (request.start_unix_ms != 0 && request.start_unix_ms < earliest_ms) return fail(too_early(earliest_ms));
  hand_out.watch();
  if (request.start_unix_ms == 0) request.start_unix_ms = earliest_start_unix_ms(request, interval);
  const Result<std::string> config = to_config(request);
  if (!config) return fail(config.error());
  hand_out.hand_out(*config, 0, request.start_unix_ms - before_start_ms(request));
  return {};
}

Result<void> serve_by_iteration(HandOut& hand_out, const OnDemand& request, std::int64_t interval_ms) {
  const Result<std::string> config = to_config(request);
  if (!config) return fail(config.error());
  hand_out.watch();
  const std::vector<Client> clients = hand_out.wanted_clients();
  const std::int64_t from_ms = best_start_ns(clients, interval_ms * kMs_ns, now_unix_ms() * kMs_ns) / kMs_ns;
  std::int64_t longest_ms = interval_ms;
  for (const Client& client : clients) longest_ms = std::max(longest_ms, client.interval_ns / kMs_ns);
  if (!clients.empty()) hand_out.hand_out(*config, from_ms, from_ms + longest_ms + kSlack_ms);
  return {};
}

}  // namespace

std::int64_t best_start_ns(const std::vector<Client>& clients, std::int64_t interval_ns, std::int64_t now_ns) {
  const auto next_after = [&](const Client& client, std::int64_t moment) {
    const std::int64_t every = client.interval_ns > 0 ? client.interval_ns : interval_ns;
    const std::int64_t behind = moment - client.last_poll_unix_ns;
    return behind < 0 ? client.last_poll_unix_ns : client.last_poll_unix_ns + (behind / every + 1) * every;
  };
  std::int64_t best = now_ns, best_spread = -1;
  for (const Client& opening : clients) {
    const std::int64_t first = next_after(opening, now_ns);
    std::int64_t last = first;
    std::int64_t before = now_ns;  // the last poll before the opening one that must not yet be handed out
    for (const Client& client : clients) {
      const std::int64_t next = next_after(client, first - 1);
      last = std::max(last, next);
      const std::int64_t every = client.interval_ns > 0 ? client.interval_ns : interval_ns;
      before = std::max(before, next - every);
    }
    if (best_spread >= 0 && last - first >= best_spread) continue;
    best_spread = last - first;
    best = first - (first - before) / 2;
  }
  return best;
}

std::int64_t earliest_start_unix_ms(const OnDemand& request, std::chrono::milliseconds interval) {
  return now_unix_ms() + interval.count() + kSlack_ms + before_start_ms(request);
}

Result<Served> serve(Server& server, const ServeOptions& options) {
  if (const auto checked = to_config(options.request); !checked) return fail(checked.error());
  HandOut hand_out(server, options);
  OnDemand request = options.request;
  const Result<void> done = request.iterations ? serve_by_iteration(hand_out, request, options.interval.count())
                                               : serve_by_time(hand_out, request, options.interval);
  if (!done) return fail(done.error());
  return hand_out.result(std::move(request));
}

}  // namespace stepscope::collect::kineto
