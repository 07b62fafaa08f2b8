// A web server for one person on this machine: listens on loopback alone, and answers only who knows the token.
//
// What may come in is narrow: the address begins with the token, the Host names this machine (so that no other site's
// name can lead here), an Origin is the Host itself, GET reads, and POST carries a header that no form of another site
// can send. Requests are handled on worker threads, so that a slow one holds up nobody; the loop alone touches
// connections.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"

namespace stepscope::serve {

struct Request {
  bool post = false;
  std::string path;  // behind the token, without a slash in front: "api/runs"
  std::map<std::string, std::string> query;
  std::string body;
  std::string_view get(const std::string& name) const {
    const auto found = query.find(name);
    return found == query.end() ? std::string_view() : std::string_view(found->second);
  }
};

struct Response {
  int status = 200;
  std::string_view type = "application/json";
  std::string body;
  bool packed = false;  // the body is gzip
  bool as_is = false;   // the body is never packed on the way
};

// {"error": {"message", "hint"}}
Response refusal(int status, std::string_view message, std::string_view hint);
Response refusal(const Error& error);

using Handler = std::function<Response(const Request&)>;

struct ServerOptions {
  int port = 0;                         // 0: any that is free
  std::vector<std::string> host_names;  // further names that a Host may have: of a proxy in front
  unsigned threads = 8;                 // more than the three that may be slow at once, see Api
  double idle_seconds = 60;             // a connection that neither sends nor takes anything is closed
};

class Server {
 public:
  static Result<std::unique_ptr<Server>> listen(const ServerOptions& options, Handler handler);
  virtual ~Server() = default;

  virtual int port() const = 0;
  virtual const std::string& token() const = 0;
  // Until stop(), which any thread and a signal handler may call.
  virtual void run() = 0;
  virtual void stop() = 0;
};

}  // namespace stepscope::serve
