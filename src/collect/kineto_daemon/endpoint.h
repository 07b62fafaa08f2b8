// One bound socket of the daemon: the abstract name NUL "dynolog" NUL, or the file DIR/dynolog.
//
// A Kineto client ends its process (std::terminate) when an answer comes from an address that does not begin with its
// own KINETO_IPC_SOCKET_DIR, spelled its way. So an answer leaves by the socket that the question came to, and only
// when may_answer says that the client will accept the sender.
#pragma once

#include <sys/socket.h>
#include <sys/un.h>

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "base/result.h"

namespace stepscope::collect::kineto {

struct Address {
  sockaddr_un name{};
  socklen_t bytes = 0;
};

struct Datagram {
  std::string_view bytes;  // in the endpoint's buffer, until the next receive
  bool whole = true;       // false: longer than any message
  Address from;
  std::optional<ucred> sender;               // the kernel's word: pid as this process sees it (0: not visible), uid
  std::optional<std::int64_t> sent_unix_ns;  // the kernel's word; none where it gives no time
};

class Endpoint {
 public:
  // ErrorKind::unsupported means exactly that another daemon answers on the name; other kinds are the system's refusal.
  static Result<Endpoint> bind_abstract(std::string_view name = "dynolog");
  // A socket file of a daemon that is gone is replaced. `folder` as the clients spell it.
  static Result<Endpoint> bind_file(const std::string& folder);

  Endpoint(Endpoint&& other) noexcept;
  Endpoint& operator=(Endpoint&&) = delete;
  ~Endpoint();  // removes the socket file

  int descriptor() const { return socket_; }
  // The next waiting datagram; false when there is none.
  bool receive(Datagram& out);
  bool may_answer(const Address& to) const;
  // Never waits; false when the client is gone or its queue is full.
  bool send(const Address& to, std::string_view bytes) const;

 private:
  explicit Endpoint(int socket);

  int socket_ = -1;
  std::string file_;  // empty: abstract
  ino_t inode_ = 0;   // of file_: a daemon that came later may have put its own there
  std::string buffer_;
};

}  // namespace stepscope::collect::kineto
