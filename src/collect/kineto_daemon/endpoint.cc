// Binding, receiving with the sender's credentials and time, and answering without ever waiting.
#include "collect/kineto_daemon/endpoint.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstddef>
#include <cstring>
#include <ctime>

namespace stepscope::collect::kineto {
namespace {

constexpr std::size_t kMostBytes = 4096;
// A client's own name, "dynoconfigclient" and a UUID, has to fit behind the folder; Kineto does not check that.
constexpr std::size_t kLongestFolder = sizeof(sockaddr_un::sun_path) - 1 - 16 - 36 - 1;

Error refusal(std::string what, int reason) {
  return {ErrorKind::unreadable, std::move(what) + ": " + std::strerror(reason), "", {}, ""};
}

Error taken(std::string file) {
  return {ErrorKind::unsupported,
          "another daemon already answers the Kineto clients here",
          std::move(file),
          {},
          "Ask that daemon (dynolog) for the trace, or stop it"};
}

void close_passed_files(const cmsghdr* part) {
  const std::size_t count = (part->cmsg_len - CMSG_LEN(0)) / sizeof(int);
  for (std::size_t i = 0; i < count; ++i) {
    int file = -1;
    std::memcpy(&file, CMSG_DATA(part) + i * sizeof(int), sizeof file);
    if (file >= 0) close(file);
  }
}

void take_part(const cmsghdr* part, Datagram& out) {
  if (part->cmsg_level != SOL_SOCKET) return;
  if (part->cmsg_type == SCM_RIGHTS) close_passed_files(part);
  if (part->cmsg_type == SCM_CREDENTIALS && part->cmsg_len >= CMSG_LEN(sizeof(ucred))) {
    ucred sender{};
    std::memcpy(&sender, CMSG_DATA(part), sizeof sender);
    out.sender = sender;
  }
  if (part->cmsg_type == SCM_TIMESTAMPNS && part->cmsg_len >= CMSG_LEN(sizeof(timespec))) {
    timespec sent{};
    std::memcpy(&sent, CMSG_DATA(part), sizeof sent);
    out.sent_unix_ns = std::int64_t{sent.tv_sec} * 1'000'000'000 + sent.tv_nsec;
  }
}

// The path in a file address; empty for an abstract or nameless one.
std::string_view path_of(const Address& address) {
  constexpr std::size_t before = offsetof(sockaddr_un, sun_path);
  if (address.bytes <= before || address.name.sun_path[0] == '\0') return {};
  return {address.name.sun_path, strnlen(address.name.sun_path, address.bytes - before)};
}

bool is_abstract(const Address& address) {
  return address.bytes > offsetof(sockaddr_un, sun_path) + 1 && address.name.sun_path[0] == '\0';
}

Address address_of(const std::string& path) {
  Address out;
  out.name.sun_family = AF_UNIX;
  path.copy(out.name.sun_path, sizeof out.name.sun_path - 1);
  out.bytes = static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + path.size() + 1);
  return out;
}

// The inode of a socket file; 0: none.
ino_t socket_at(const std::string& path) {
  struct stat found {};
  return lstat(path.c_str(), &found) == 0 && S_ISSOCK(found.st_mode) ? found.st_ino : 0;
}

bool someone_listens(const Address& at) {
  const int probe = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);
  if (probe < 0) return false;
  const bool dead = connect(probe, reinterpret_cast<const sockaddr*>(&at.name), at.bytes) != 0 &&
                    (errno == ECONNREFUSED || errno == ENOENT);
  close(probe);
  return !dead;
}

// Root answers clients of every user, and these must be able to write to the socket. By descriptor: the folder may
// belong to someone who swaps the file for a link.
void open_to_all(const std::string& path) {
  const int file = open(path.c_str(), O_PATH | O_NOFOLLOW | O_CLOEXEC);
  if (file < 0) return;
  struct stat found {};
  if (fstat(file, &found) == 0 && S_ISSOCK(found.st_mode)) {
    chmod(("/proc/self/fd/" + std::to_string(file)).c_str(), 0666);
  }
  close(file);
}

}  // namespace

Endpoint::Endpoint(int socket) : socket_(socket), buffer_(kMostBytes, '\0') {}

Endpoint::Endpoint(Endpoint&& other) noexcept
    : socket_(other.socket_), file_(std::move(other.file_)), inode_(other.inode_), buffer_(std::move(other.buffer_)) {
  other.socket_ = -1;
  other.file_.clear();
}

Endpoint::~Endpoint() {
  if (socket_ >= 0) close(socket_);
  if (!file_.empty() && socket_at(file_) == inode_) unlink(file_.c_str());
}

Result<Endpoint> Endpoint::bind_abstract(std::string_view name) {
  Endpoint out(socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  if (out.socket_ < 0) return fail(refusal("no local socket", errno));
  const int on = 1;
  setsockopt(out.socket_, SOL_SOCKET, SO_PASSCRED, &on, sizeof on);
  setsockopt(out.socket_, SOL_SOCKET, SO_TIMESTAMPNS, &on, sizeof on);
  Address at;
  at.name.sun_family = AF_UNIX;
  name = name.substr(0, sizeof at.name.sun_path - 2);
  name.copy(at.name.sun_path + 1, name.size());
  at.bytes = static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + name.size() + 2);  // both NULs are counted
  if (bind(out.socket_, reinterpret_cast<const sockaddr*>(&at.name), at.bytes) == 0) return out;
  if (errno == EADDRINUSE) return fail(taken(""));
  return fail(refusal("the name of the Kineto daemon cannot be taken", errno));
}

Result<Endpoint> Endpoint::bind_file(const std::string& folder) {
  if (folder.empty() || folder.size() > kLongestFolder) {
    return fail({ErrorKind::usage,
                 "the folder of Kineto's sockets has " + std::to_string(folder.size()) + " characters",
                 folder,
                 {},
                 "Start the job with KINETO_IPC_SOCKET_DIR of 1 to " + std::to_string(kLongestFolder) + " characters"});
  }
  Endpoint out(socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  if (out.socket_ < 0) return fail(refusal("no local socket", errno));
  const int on = 1;
  setsockopt(out.socket_, SOL_SOCKET, SO_PASSCRED, &on, sizeof on);
  setsockopt(out.socket_, SOL_SOCKET, SO_TIMESTAMPNS, &on, sizeof on);
  const std::string path = folder + "/dynolog";
  const Address at = address_of(path);
  if (socket_at(path) != 0) {
    if (someone_listens(at)) return fail(taken(path));
    unlink(path.c_str());
  }
  fchmod(out.socket_, 0600);  // the file is made with this mode
  if (bind(out.socket_, reinterpret_cast<const sockaddr*>(&at.name), at.bytes) != 0) {
    Error error = errno == EADDRINUSE ? taken(path) : refusal("no socket can be made", errno);
    error.file = path;
    return fail(std::move(error));
  }
  out.file_ = path;
  out.inode_ = socket_at(path);
  if (geteuid() == 0) open_to_all(path);
  return out;
}

bool Endpoint::receive(Datagram& out) {
  out = Datagram{};
  iovec part{buffer_.data(), buffer_.size()};
  alignas(cmsghdr) std::array<char, 512> control{};
  msghdr message{};
  message.msg_name = &out.from.name;
  message.msg_namelen = sizeof out.from.name;
  message.msg_iov = &part;
  message.msg_iovlen = 1;
  message.msg_control = control.data();
  message.msg_controllen = control.size();
  ssize_t bytes = -1;
  do {
    bytes = recvmsg(socket_, &message, MSG_DONTWAIT | MSG_CMSG_CLOEXEC);
  } while (bytes < 0 && errno == EINTR);
  if (bytes < 0) return false;
  out.bytes = std::string_view(buffer_).substr(0, static_cast<std::size_t>(bytes));
  out.whole = (message.msg_flags & MSG_TRUNC) == 0;
  out.from.bytes = message.msg_namelen;
  for (cmsghdr* at = CMSG_FIRSTHDR(&message); at != nullptr; at = CMSG_NXTHDR(&message, at)) take_part(at, out);
  return true;
}

bool Endpoint::may_answer(const Address& to) const {
  if (file_.empty()) return is_abstract(to);
  const std::string_view path = path_of(to);
  const std::size_t slash = path.rfind('/');
  // What stands before the slash is the client's KINETO_IPC_SOCKET_DIR, letter by letter.
  return slash != std::string_view::npos && file_.compare(0, slash + 1, path.substr(0, slash + 1)) == 0;
}

bool Endpoint::send(const Address& to, std::string_view bytes) const {
  const auto* name = reinterpret_cast<const sockaddr*>(&to.name);
  ssize_t sent = -1;
  do {
    sent = sendto(socket_, bytes.data(), bytes.size(), MSG_DONTWAIT | MSG_NOSIGNAL, name, to.bytes);
  } while (sent < 0 && errno == EINTR);
  return sent == static_cast<ssize_t>(bytes.size());
}

}  // namespace stepscope::collect::kineto
