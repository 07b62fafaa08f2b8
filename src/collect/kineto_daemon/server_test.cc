#include "collect/kineto_daemon/server.h"

#include <doctest/doctest.h>
#include <fcntl.h>
#include <sys/wait.h>

#include <filesystem>

#include "base/temp_fixture.h"
#include "collect/kineto_daemon/kineto_client_fixture.h"

namespace stepscope::collect::kineto {
namespace {

using std::chrono::milliseconds;
namespace fs = std::filesystem;

// A name of its own for each process: other tests of this machine do not meet.
std::string test_name() { return "stepscope_test" + std::to_string(::getpid()); }

Server open_server(const std::string& name = test_name(), std::vector<std::string> folders = {}) {
  Server::Places places;
  places.abstract = folders.empty();
  places.name = name;
  places.folders = std::move(folders);
  auto server = Server::open(places);
  REQUIRE(server.has_value());
  return std::move(*server);
}

Server::Decide always(std::string text) {
  return [text](const Client&) { return text; };
}

const int self = static_cast<int>(::getpid());

}  // namespace

TEST_CASE("kineto daemon: a client is answered and remembered") {
  Server server = open_server();
  const FakeClient client("client", test_name());
  REQUIRE(client.bound());
  CHECK(ask(server, client, request(3, {self, 5, 1}, 77), always("")) == "");
  CHECK(ask(server, client, request(2, {self, 5, 1}, 77), always("A=1\n")) == "A=1\n");
  REQUIRE(server.clients().count(self) == 1);
  const Client& seen = server.clients().at(self);
  CHECK(seen.ancestors == std::vector<int>{5, 1});
  CHECK(seen.job == 77);
  CHECK(seen.polls >= 2);
  CHECK(seen.last_poll_unix_ns >= seen.first_poll_unix_ns);
  CHECK(seen.configured_unix_ns.has_value());
  CHECK_FALSE(seen.gpu.has_value());
  CHECK_FALSE(seen.was_busy);
}

// What Kineto does not read as the answer to its first question it reads as the answer to the second.
TEST_CASE("kineto daemon: the first question of a client gets no answer") {
  Server server = open_server();
  const FakeClient client("client", test_name());
  bool with_context = false;
  SUBCASE("a request") {}
  SUBCASE("a context") { with_context = true; }
  CHECK(client.send(with_context ? context(0, self) : request(3, {self})));
  server.answer(milliseconds(5), always("A=1\n"));
  CHECK_FALSE(client.answer(0).has_value());
  CHECK(ask(server, client, request(3, {self}), always("A=1\n")) == "A=1\n");
}

TEST_CASE("kineto daemon: a client that records gets nothing, old mask and new") {
  Server server = open_server();
  const FakeClient client("client", test_name());
  CHECK(ask(server, client, request(1, {self}), always("A=1\n")) == "");
  CHECK(server.clients().at(self).busy);
  CHECK(ask(server, client, request(0, {self}), always("A=1\n")) == "");
  CHECK(ask(server, client, request(2, {self}), always("A=1\n")) == "A=1\n");
  CHECK_FALSE(server.clients().at(self).busy);
  CHECK(server.clients().at(self).was_busy);
}

TEST_CASE("kineto daemon: a context is answered with the clients on that GPU") {
  Server server = open_server();
  const FakeClient client("client", test_name());
  const auto answer = ask(server, client, context(1, self, 9), nullptr);
  REQUIRE(answer.has_value());
  std::int32_t count = 0;
  REQUIRE(answer->size() == sizeof count);
  std::memcpy(&count, answer->data(), sizeof count);
  CHECK(count == 1);
  CHECK(server.clients().at(self).gpu == 1);
  CHECK(server.clients().at(self).polls == 0);
}

TEST_CASE("kineto daemon: garbage is counted and nothing else") {
  Server server = open_server();
  const FakeClient client("client", test_name());
  const std::vector<std::string> bad{"",
                                     "x",
                                     std::string(39, 'r'),
                                     datagram("nope", "1234"),
                                     datagram("req", ""),
                                     datagram("ctxt", "short"),
                                     std::string(3000, '\xff'),
                                     request(3, {self}) + "tail",
                                     request(3, {self}).substr(0, 58),
                                     std::string(40, '\xff'),
                                     std::string(60000, 'r')};
  for (const std::string& bytes : bad) {
    CHECK(client.send(bytes));
    server.answer(milliseconds(1), always("A=1\n"));
  }
  CHECK(server.ignored().malformed == static_cast<std::int64_t>(bad.size()));
  CHECK(server.clients().empty());
  CHECK_FALSE(client.answer(0).has_value());
  CHECK(ask(server, client, request(3, {self}), always("A=1\n")) == "A=1\n");
}

TEST_CASE("kineto daemon: nobody speaks for another process") {
  Server server = open_server();
  const FakeClient client("client", test_name());
  CHECK(client.send(request(3, {self + 1})));
  CHECK(client.send(request(3, {-1})));
  for (int i = 0; i < 10 && server.ignored().forged + server.ignored().late < 2; ++i) {
    server.answer(milliseconds(5), always("A=1\n"));
  }
  CHECK(server.ignored().forged + server.ignored().late == 2);
  CHECK(server.clients().empty());
  CHECK_FALSE(client.answer(0).has_value());
}

TEST_CASE("kineto daemon: another user is not answered") {
  if (::geteuid() != 0) {
    MESSAGE("skipped: only root can be another user");
    return;
  }
  Server server = open_server();
  const FakeClient client("client", test_name());
  CHECK(client.send(request(3, {self})));
  REQUIRE(::seteuid(65534) == 0);
  server.answer(milliseconds(5), always("A=1\n"));
  REQUIRE(::seteuid(0) == 0);
  CHECK(server.ignored().other_user == 1);
  CHECK_FALSE(client.answer(0).has_value());
}

TEST_CASE("kineto daemon: what came too long ago is not answered") {
  Server server = open_server();
  const FakeClient client("client", test_name());
  CHECK(client.send(request(3, {self})));
  ::usleep(200'000);
  server.answer(milliseconds(5), always("A=1\n"));
  CHECK(server.ignored().late == 1);
  CHECK_FALSE(client.answer(0).has_value());
}

TEST_CASE("kineto daemon: clients that are gone or take nothing do not stop it") {
  Server server = open_server();
  int unsent = 0;
  for (int i = 0; i < 20 && unsent == 0; ++i) {
    { FakeClient("gone", test_name()).send(request(3, {self})); }
    server.answer(milliseconds(5), always("A=1\n"));
    unsent = static_cast<int>(server.ignored().unsent);
  }
  CHECK(unsent == 1);
  CHECK_FALSE(server.clients().at(self).configured_unix_ns.has_value());

  const FakeClient full("full", test_name());  // never reads
  for (int i = 0; i < 2000 && server.ignored().unsent < 2; ++i) {
    full.send(request(3, {self}));
    server.answer(milliseconds(1), always("A=1\n"));
  }
  CHECK(server.ignored().unsent == 2);

  const FakeClient good("good", test_name());
  CHECK(ask(server, good, request(3, {self}), always("A=1\n")) == "A=1\n");
}

TEST_CASE("kineto daemon: passed files are closed") {
  Server server = open_server();
  const auto open_files = [] {
    return std::distance(fs::directory_iterator("/proc/self/fd"), fs::directory_iterator());
  };
  int pair[2];
  REQUIRE(::socketpair(AF_UNIX, SOCK_DGRAM, 0, pair) == 0);
  const std::string name = std::string(1, '\0') + test_name();
  sockaddr_un at{};
  at.sun_family = AF_UNIX;
  std::memcpy(at.sun_path, name.data(), name.size());
  char byte = 'x';
  iovec part{&byte, 1};
  alignas(cmsghdr) char control[CMSG_SPACE(sizeof pair)] = {};
  msghdr message{};
  message.msg_name = &at;
  message.msg_namelen = static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + name.size() + 1);
  message.msg_iov = &part;
  message.msg_iovlen = 1;
  message.msg_control = control;
  message.msg_controllen = sizeof control;
  cmsghdr* const header = CMSG_FIRSTHDR(&message);
  header->cmsg_level = SOL_SOCKET;
  header->cmsg_type = SCM_RIGHTS;
  header->cmsg_len = CMSG_LEN(sizeof pair);
  std::memcpy(CMSG_DATA(header), pair, sizeof pair);
  const FakeClient client("client", test_name());
  const auto before = open_files();
  const int sender = ::socket(AF_UNIX, SOCK_DGRAM, 0);
  CHECK(::sendmsg(sender, &message, 0) == 1);
  ::close(sender);
  server.answer(milliseconds(5), nullptr);
  CHECK(server.ignored().malformed == 1);
  CHECK(open_files() == before);
  ::close(pair[0]);
  ::close(pair[1]);
}

TEST_CASE("kineto daemon: the name is taken once") {
  const Server server = open_server();
  Server::Places places;
  places.name = test_name();
  const auto second = Server::open(places);
  REQUIRE_FALSE(second.has_value());
  CHECK(second.error().kind == ErrorKind::unsupported);
}

TEST_CASE("kineto daemon: in a folder") {
  const TempFolder folder;
  const std::string path = folder.path().string();
  {
    Server server = open_server("", {path});
    const FakeClient client("client", "dynolog", path);
    CHECK(ask(server, client, request(3, {self}), always("A=1\n")) == "A=1\n");
    Server::Places places;
    places.abstract = false;
    places.folders = {path};
    const auto second = Server::open(places);
    REQUIRE_FALSE(second.has_value());
    CHECK(second.error().kind == ErrorKind::unsupported);
  }
  CHECK_FALSE(fs::exists(path + "/dynolog"));

  SUBCASE("a socket that nobody listens on is replaced") {
    { const FakeClient left_behind("", "", path); }
    fs::rename(path + "/" + std::to_string(self), path + "/dynolog");
    Server server = open_server("", {path});
    const FakeClient client("client2", "dynolog", path);
    CHECK(ask(server, client, request(3, {self}), always("A=1\n")) == "A=1\n");
  }
  SUBCASE("a file that is no socket stays") {
    folder.put("dynolog", "mine");
    Server::Places places;
    places.abstract = false;
    places.folders = {path};
    CHECK_FALSE(Server::open(places).has_value());
    CHECK(fs::file_size(path + "/dynolog") == 4);
  }
  SUBCASE("a folder that is missing or too long") {
    Server::Places places;
    places.abstract = false;
    places.folders = {path + "/no"};
    CHECK(Server::open(places).error().kind == ErrorKind::unreadable);
    places.folders = {"/tmp/" + std::string(60, 'x')};
    CHECK(Server::open(places).error().kind == ErrorKind::usage);
  }
}

// A Kineto client ends its process when the answer's sender is not below its own spelling of the folder.
TEST_CASE("kineto daemon: a client that spells the folder in another way gets no answer") {
  const TempFolder folder;
  const std::string path = folder.path().string();
  fs::create_directory_symlink(path, path + "/link");
  Server server = open_server("", {path});
  for (const std::string& spelling : {path + "/link", path + "/", path + "/./"}) {
    const FakeClient client("client", "dynolog", spelling);
    REQUIRE(client.bound());
    const auto before = server.ignored().unanswerable;
    CHECK(client.send(request(3, {self})));
    server.answer(milliseconds(5), always("A=1\n"));
    CHECK(server.ignored().unanswerable == before + 1);
    CHECK_FALSE(client.answer(0).has_value());
    for (const auto& entry : fs::directory_iterator(path)) {
      if (entry.path().filename().string().starts_with("client")) fs::remove(entry);
    }
  }
}

TEST_CASE("kineto daemon: hundreds of clients at once") {
  constexpr int kClients = 200;
  Server server = open_server();
  const std::string name = test_name();
  std::vector<pid_t> children;
  for (int i = 0; i < kClients; ++i) {
    const pid_t child = ::fork();
    if (child == 0) {
      const FakeClient client("many", name);
      const std::string question = request(3, {static_cast<int>(::getpid())});
      int code = 1;
      for (int attempt = 0; attempt < 300 && code != 0; ++attempt) {
        if (client.send(question) && client.answer(90) == "A=1\n") code = 0;
      }
      ::_exit(code);
    }
    REQUIRE(child > 0);
    children.push_back(child);
  }
  int good = 0;
  while (!children.empty()) {
    server.answer(milliseconds(20), always("A=1\n"));
    int status = 0;
    while (!children.empty() && ::waitpid(children.back(), &status, WNOHANG) != 0) {
      children.pop_back();
      good += WIFEXITED(status) && WEXITSTATUS(status) == 0;
    }
  }
  CHECK(good == kClients);
  CHECK(server.clients().size() == kClients);
}

}  // namespace stepscope::collect::kineto
