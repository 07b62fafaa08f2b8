// The loop over the sockets. Nothing that a client sends or fails to take ends it.
#include "collect/kineto_daemon/server.h"

#include <poll.h>
#include <unistd.h>

#include <algorithm>

#include "collect/kineto_daemon/process.h"

namespace stepscope::collect::kineto {
namespace {

constexpr std::int64_t kPatience_ns = 80'000'000;  // Kineto looks nine times, 10 ms apart
constexpr std::size_t kMostClients = 4096;
constexpr int kMostInARow = 256;  // datagrams of one socket before the others and the clock are looked at

std::int64_t now_unix_ns() {
  return std::chrono::duration_cast<std::chrono::nanoseconds>(std::chrono::system_clock::now().time_since_epoch())
      .count();
}

// A client whose last attempt to reach a daemon took long asks again at once: no interval. True ones are whole seconds.
constexpr std::int64_t kLeastInterval_ns = 500'000'000;

bool is_ours(const ucred& sender) { return geteuid() == 0 || sender.uid == geteuid(); }

void note_poll(Client& client, const Request& request, std::int64_t now_ns) {
  if (client.polls == 0) {
    client.first_poll_unix_ns = now_ns;
  } else if (now_ns - client.last_poll_unix_ns >= kLeastInterval_ns) {
    client.interval_ns = now_ns - client.last_poll_unix_ns;
  }
  ++client.polls;
  client.last_poll_unix_ns = now_ns;
  client.job = request.job;
  client.ancestors.assign(request.pids.begin() + 1, request.pids.end());
  client.busy = (request.type & kActivities) == 0;
  client.was_busy = client.was_busy || client.busy;
}

}  // namespace

Result<Server> Server::open(const Places& places) {
  Server out;
  out.folders_ = places.folders;
  if (places.abstract) {
    Result<Endpoint> endpoint = Endpoint::bind_abstract(places.name);
    if (!endpoint) return fail(std::move(endpoint.error()));
    out.endpoints_.push_back(std::move(*endpoint));
  }
  for (const std::string& folder : places.folders) {
    Result<Endpoint> endpoint = Endpoint::bind_file(folder);
    if (!endpoint) return fail(std::move(endpoint.error()));
    out.endpoints_.push_back(std::move(*endpoint));
  }
  return out;
}

void Server::answer(std::chrono::milliseconds span, const Decide& decide) {
  using Clock = std::chrono::steady_clock;
  const Clock::time_point end = Clock::now() + span;
  std::vector<pollfd> waited;
  for (const Endpoint& endpoint : endpoints_) waited.push_back({endpoint.descriptor(), POLLIN, 0});
  for (;;) {
    const auto left = std::chrono::ceil<std::chrono::milliseconds>(end - Clock::now());
    if (left.count() <= 0) return;
    poll(waited.data(), waited.size(), static_cast<int>(std::min<std::int64_t>(left.count(), 1000)));
    for (Endpoint& endpoint : endpoints_) {
      Datagram datagram;
      for (int i = 0; i < kMostInARow && endpoint.receive(datagram); ++i) answer_one(endpoint, datagram, decide);
    }
  }
}

void Server::answer_one(Endpoint& endpoint, const Datagram& datagram, const Decide& decide) {
  if (!datagram.sender || !is_ours(*datagram.sender)) {
    ++ignored_.other_user;
    return;
  }
  const auto message = datagram.whole ? decode(datagram.bytes) : tl::unexpected(Fault::size_mismatch);
  if (!message) {
    ++ignored_.malformed;
  } else if (!endpoint.may_answer(datagram.from)) {
    ++ignored_.unanswerable;
  } else if (datagram.sent_unix_ns && now_unix_ns() - *datagram.sent_unix_ns > kPatience_ns) {
    ++ignored_.late;
  } else if (const auto* context = std::get_if<Context>(&*message)) {
    answer_context(endpoint, datagram, *context);
  } else {
    answer_request(endpoint, datagram, std::get<Request>(*message), decide);
  }
}

// The client's entry, made when it is new; none when it lies about its pid or there are too many.
Client* Server::known(const ucred& sender, int inside_pid) {
  auto found = clients_.find(sender.pid);
  if (found != clients_.end() && found->second.inside_pid == inside_pid) return &found->second;
  const bool its_own = inside_pid == sender.pid || (sender.pid > 0 && inside_pid > 0 && has_own_pids(sender.pid));
  if (!its_own || sender.pid <= 0) {
    ++ignored_.forged;
    return nullptr;
  }
  if (found == clients_.end() && clients_.size() >= kMostClients) {
    ++ignored_.too_many;
    return nullptr;
  }
  Client& client = clients_[sender.pid];
  client = Client{};
  client.pid = sender.pid;
  client.inside_pid = inside_pid;
  client.user = sender.uid;
  return &client;
}

void Server::answer_context(Endpoint& endpoint, const Datagram& datagram, const Context& context) {
  Client* const client = known(*datagram.sender, context.pid);
  if (client == nullptr) return;
  const bool is_first = client->polls == 0 && !client->gpu;
  client->gpu = context.gpu;
  client->job = context.job;
  const auto sharing = std::count_if(clients_.begin(), clients_.end(), [&](const auto& entry) {
    return entry.second.gpu == context.gpu && entry.second.job == context.job;
  });
  if (is_first) return;
  if (!endpoint.send(datagram.from, encode_count(static_cast<std::int32_t>(sharing)))) ++ignored_.unsent;
}

void Server::answer_request(Endpoint& endpoint, const Datagram& datagram, const Request& request,
                            const Decide& decide) {
  Client* const client = known(*datagram.sender, request.pids.front());
  if (client == nullptr) return;
  const bool is_first = client->polls == 0 && !client->gpu;
  note_poll(*client, request, datagram.sent_unix_ns.value_or(now_unix_ns()));
  if (is_first) return;
  const std::string config = client->busy || !decide ? std::string() : decide(*client);
  if (!endpoint.send(datagram.from, encode_config(config))) {
    ++ignored_.unsent;
  } else if (!config.empty()) {
    client->configured_unix_ns = now_unix_ns();
  }
}

}  // namespace stepscope::collect::kineto
