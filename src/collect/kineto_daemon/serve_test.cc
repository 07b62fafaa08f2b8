#include "collect/kineto_daemon/serve.h"

#include <arpa/inet.h>
#include <doctest/doctest.h>
#include <netinet/in.h>
#include <sys/wait.h>

#include <algorithm>
#include <thread>

#include "base/temp_fixture.h"
#include "collect/kineto_daemon/collect_traces.h"
#include "collect/kineto_daemon/kineto_client_fixture.h"
#include "collect/kineto_daemon/rpc.h"

namespace stepscope::collect::kineto {
namespace {

using std::chrono::milliseconds;

const int self = static_cast<int>(::getpid());
constexpr std::int64_t kSecond = 1'000'000'000;

// Of this process, whichever of its children asks; other tests of this machine do not meet.
const std::string name = "stepscope_serve" + std::to_string(self);

Server open_server() {
  Server::Places places;
  places.name = name;
  auto server = Server::open(places);
  REQUIRE(server.has_value());
  return std::move(*server);
}

Client polled_at(std::int64_t last_ns, std::int64_t interval_ns = 0) {
  Client out;
  out.polls = interval_ns > 0 ? 2 : 1;
  out.last_poll_unix_ns = last_ns;
  out.interval_ns = interval_ns;
  return out;
}

OnDemand by_time(const std::string& prefix) {
  OnDemand out;
  out.file_prefix = prefix;
  out.duration_ms = 100;
  out.warmup_s = 0;
  return out;
}

// A process of its own that polls every 100 ms until it is told or gave up; then writes `text` to the file that it was
// told, and stays until it is ended.
class Rank {
 public:
  explicit Rank(const std::string& text) : pid_(::fork()) {
    if (pid_ != 0) return;
    const int own = static_cast<int>(::getpid());
    const FakeClient client("rank", name);
    std::string config;
    for (int i = 0; i < 300 && config.empty(); ++i) {
      if (i > 0) ::usleep(100'000);
      if (client.send(request(3, {own, 1}))) config = client.answer(90).value_or("");
    }
    const std::string prefix = config.substr(0, config.find(".json")).substr(std::strlen("ACTIVITIES_LOG_FILE="));
    if (!text.empty()) std::ofstream(trace_path(prefix, own)) << text;
    for (;;) ::pause();
  }
  Rank(const Rank&) = delete;
  Rank& operator=(const Rank&) = delete;
  ~Rank() { end(); }
  void end() {
    if (pid_ > 0) {
      ::kill(pid_, SIGKILL);
      ::waitpid(pid_, nullptr, 0);
    }
    pid_ = 0;
  }
  int pid() const { return pid_; }

 private:
  pid_t pid_;
};

}  // namespace

TEST_CASE("kineto daemon: the hand-out begins after the widest gap between the polls") {
  // Every 5 s at 0.1, 0.3 and 4.9: the three lie together from 9.9 on.
  const std::vector<Client> clients{polled_at(kSecond / 10), polled_at(3 * kSecond / 10), polled_at(49 * kSecond / 10)};
  const std::int64_t start = best_start_ns(clients, 5 * kSecond, 495 * kSecond / 100);
  CHECK(start > 53 * kSecond / 10);
  CHECK(start < 99 * kSecond / 10);
  // One client: any moment before its next poll is good.
  const std::int64_t only = best_start_ns({polled_at(0, kSecond)}, 5 * kSecond, kSecond / 2);
  CHECK(only >= kSecond / 2);
  CHECK(only < kSecond);
  CHECK(best_start_ns({}, 5 * kSecond, 42) == 42);
}

TEST_CASE("kineto daemon: every rank gets one text with one start, others get none") {
  Server server = open_server();
  const TempFolder folder;
  Rank first("{}"), second("{}"), other("{}");
  ServeOptions options;
  options.request = by_time(folder / "trace");
  options.interval = milliseconds(3000);
  options.expected = {first.pid(), second.pid()};
  const auto served = serve(server, options);
  REQUIRE(served.has_value());
  std::vector<int> pids{first.pid(), second.pid()};
  std::sort(pids.begin(), pids.end());
  CHECK(served->configured == pids);
  CHECK(served->too_late.empty());
  CHECK(served->never_asked.empty());
  CHECK(served->request.start_unix_ms > 0);
  CollectOptions collect;
  collect.patience = milliseconds(20000);
  const Collected collected = collect_traces(&server, *served, collect);
  REQUIRE(collected.files.size() == 2);
  CHECK(collected.missing.empty());
  CHECK(collected.files[0].path == trace_path(folder / "trace", pids[0]));
  CHECK(collected.files[0].bytes == 2);
  CHECK(collected.files[0].accepted_unix_ns >= collected.files[0].first_poll_unix_ns);
  CHECK_FALSE(collected.files[0].elsewhere);
  CHECK(server.clients().count(other.pid()) == 1);
  CHECK_FALSE(server.clients().at(other.pid()).configured_unix_ns.has_value());
}

TEST_CASE("kineto daemon: by iteration all are watched first, then told") {
  Server server = open_server();
  const TempFolder folder;
  Rank first("{}"), second("{}");
  ServeOptions options;
  options.request = by_time(folder / "trace");
  options.request.duration_ms.reset();
  options.request.iterations = 3;
  options.interval = milliseconds(1000);
  options.wanted = [&](const Client& client) { return client.pid == first.pid() || client.pid == second.pid(); };
  const auto served = serve(server, options);
  REQUIRE(served.has_value());
  CHECK(served->configured.size() == 2);
  for (const int pid : served->configured) CHECK(served->clients.at(pid).polls > 1);
}

TEST_CASE("kineto daemon: why there is no trace is said") {
  Server server = open_server();
  const TempFolder folder;
  Rank silent(""), partial("{\"traceEvents\": ["), dies("");
  ServeOptions options;
  options.request = by_time(folder / "trace");
  options.interval = milliseconds(3000);
  options.expected = {silent.pid(), partial.pid(), dies.pid()};
  auto served = serve(server, options);
  REQUIRE(served.has_value());
  REQUIRE(served->configured.size() == 3);
  served->never_asked = {self};
  dies.end();
  CollectOptions collect;
  collect.patience = milliseconds(1500);
  const Collected collected = collect_traces(&server, *served, collect);
  CHECK(collected.files.empty());
  REQUIRE(collected.missing.size() == 4);
  for (const Missing& missing : collected.missing) {
    CAPTURE(missing.text);
    CHECK_FALSE(missing.hint.empty());
    if (missing.pid == self) CHECK(missing.reason == Reason::no_daemon_variable);
    if (missing.pid == silent.pid()) CHECK(missing.reason == Reason::nothing_written);
    if (missing.pid == partial.pid()) CHECK(missing.reason == Reason::still_writing);
    if (missing.pid != self && missing.pid != silent.pid() && missing.pid != partial.pid()) {
      CHECK(missing.reason == Reason::ended);
    }
  }
}

TEST_CASE("kineto daemon: files that the process did not write are not taken") {
  Server server = open_server();
  const TempFolder folder;
  Rank rank("");
  ServeOptions options;
  options.request = by_time(folder / "trace");
  options.interval = milliseconds(3000);
  options.expected = {rank.pid()};
  const auto served = serve(server, options);
  REQUIRE(served.has_value());
  REQUIRE(served->configured.size() == 1);
  const std::string path = trace_path(folder / "trace", rank.pid());
  CollectOptions collect;
  collect.patience = milliseconds(1000);
  SUBCASE("a link") {
    folder.put("elsewhere", "{}");
    std::filesystem::create_symlink(folder / "elsewhere", path);
  }
  SUBCASE("an old file") {
    std::ofstream(path) << "{}";
    std::filesystem::last_write_time(path, std::filesystem::file_time_type::clock::now() - std::chrono::hours(1));
  }
  SUBCASE("another user's") {
    if (::geteuid() != 0) {
      MESSAGE("skipped: only root can give a file away");
      return;
    }
    std::ofstream(path) << "{}";
    REQUIRE(::chown(path.c_str(), 65534, 65534) == 0);
  }
  CHECK(collect_traces(&server, *served, collect).files.empty());
}

TEST_CASE("kineto daemon: a process that has ended is not waited for") {
  Server server = open_server();
  Rank gone("");
  const int pid = gone.pid();
  gone.end();
  ServeOptions options;
  options.request = by_time("/tmp/x/trace");
  options.interval = std::chrono::hours(24);
  options.expected = {pid};
  const auto served = serve(server, options);  // else it takes a day
  REQUIRE(served.has_value());
  CHECK(served->configured.empty());
  const Collected collected = collect_traces(&server, *served, {});
  REQUIRE(collected.missing.size() == 1);
  CHECK(collected.missing[0].reason == Reason::ended);
}

TEST_CASE("kineto daemon: a start that not all can make is refused") {
  Server server = open_server();
  ServeOptions options;
  options.request = by_time("/tmp/x/trace");
  options.request.start_unix_ms = 1000;
  const auto served = serve(server, options);
  REQUIRE_FALSE(served.has_value());
  CHECK(served.error().kind == ErrorKind::usage);
}

namespace {

// Listens as dynolog does, takes one question and gives one answer.
class StandIn {
 public:
  explicit StandIn(std::string answer) : socket_(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)) {
    sockaddr_in at{};
    at.sin_family = AF_INET;
    at.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    socklen_t bytes = sizeof at;
    REQUIRE(::bind(socket_, reinterpret_cast<sockaddr*>(&at), sizeof at) == 0);
    REQUIRE(::listen(socket_, 4) == 0);
    REQUIRE(::getsockname(socket_, reinterpret_cast<sockaddr*>(&at), &bytes) == 0);
    port = ntohs(at.sin_port);
    thread_ = std::thread([this, answer = std::move(answer)] { converse(answer); });
  }
  ~StandIn() {
    ::shutdown(socket_, SHUT_RDWR);
    thread_.join();
    ::close(socket_);
  }
  StandIn(const StandIn&) = delete;
  StandIn& operator=(const StandIn&) = delete;

  int port = 0;
  std::string question;  // read it after the answer came

 private:
  void converse(const std::string& answer) {
    const int peer = ::accept(socket_, nullptr, nullptr);
    if (peer < 0) return;
    std::int32_t size = 0;
    if (::recv(peer, &size, sizeof size, MSG_WAITALL) == sizeof size && size > 0) {
      std::string text(static_cast<std::size_t>(size), '\0');
      if (::recv(peer, text.data(), text.size(), MSG_WAITALL) == size) question = text;
      ::send(peer, answer.data(), answer.size(), MSG_NOSIGNAL);
    }
    ::close(peer);
  }

  int socket_;
  std::thread thread_;
};

std::string with_length(const std::string& text) {
  std::string out;
  append(out, static_cast<std::int32_t>(text.size()));
  return out + text;
}

DynologOptions to_dynolog(int port) {
  DynologOptions out;
  out.request = by_time("/tmp/x/trace");
  out.request.start_unix_ms = 4'000'000'000'000;
  out.pids = {11, 12, 13};
  out.job = 5;
  out.port = port;
  out.patience = milliseconds(20000);
  return out;
}

}  // namespace

TEST_CASE("dynolog: the request goes out and the answer is sorted by process") {
  std::string question;
  {
    StandIn dynolog(
        with_length(R"({"activityProfilersBusy":1,"activityProfilersTriggered":[11,99],)"
                    R"("eventProfilersBusy":0,"eventProfilersTriggered":[],"processesMatched":[11,12,99]})"));
    const auto served = ask_dynolog(to_dynolog(dynolog.port));
    REQUIRE(served.has_value());
    CHECK(served->configured == std::vector<int>{11});
    CHECK(served->too_late == std::vector<int>{12});
    CHECK(served->never_asked == std::vector<int>{13});
    CHECK(served->clients.at(11).configured_unix_ns.has_value());
    question = dynolog.question;
  }
  CHECK(question ==
        R"({"fn": "setKinetOnDemandRequest", "config": "ACTIVITIES_LOG_FILE=/tmp/x/trace.json\n)"
        R"(PROFILE_START_TIME=4000000000000\nACTIVITIES_DURATION_MSECS=100\nACTIVITIES_WARMUP_PERIOD_SECS=0\n)"
        R"(PROFILE_REPORT_INPUT_SHAPES=true\nPROFILE_PROFILE_MEMORY=false\nPROFILE_WITH_STACK=false\n)"
        R"(PROFILE_WITH_FLOPS=false\nPROFILE_WITH_MODULES=false\n", "job_id": 5, "pids": [11, 12, 13], )"
        R"("process_limit": 1000})");
}

TEST_CASE("dynolog: what is no answer is an error") {
  for (const std::string& answer : {std::string(), std::string("\1"), with_length("{}"), with_length("no json"),
                                    with_length("[]"), std::string("\xff\xff\xff\xff"), std::string("\xff\xff\xff\x7f"),
                                    with_length(R"({"status":"failed"})"), with_length("{}").substr(0, 5)}) {
    const StandIn dynolog(answer);
    const auto served = ask_dynolog(to_dynolog(dynolog.port));
    REQUIRE_FALSE(served.has_value());
    CHECK(served.error().kind == ErrorKind::unreadable);
  }
}

TEST_CASE("dynolog: nobody there, nobody asked for") {
  int port = 0;
  { port = StandIn("").port; }
  CHECK(ask_dynolog(to_dynolog(port)).error().kind == ErrorKind::unreadable);
  DynologOptions nobody = to_dynolog(port);
  nobody.pids.clear();
  CHECK(ask_dynolog(nobody).error().kind == ErrorKind::usage);
}

}  // namespace stepscope::collect::kineto
