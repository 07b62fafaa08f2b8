#include "serve/http.h"

#include <event2/buffer.h>
#include <event2/event.h>
#include <event2/http.h>
#include <event2/keyvalq_struct.h>
#include <sys/eventfd.h>
#include <sys/random.h>
#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <condition_variable>
#include <deque>
#include <mutex>
#include <thread>
#include <utility>

#include "formats/gzip_text.h"
#include "report/json_writer.h"

namespace stepscope::serve {
namespace {

constexpr std::size_t kMostHeaderBytes = 32 << 10;
constexpr std::size_t kMostBodyBytes = 1 << 20;
constexpr std::size_t kMostWaiting = 256;  // requests that no thread has taken yet
constexpr std::size_t kTokenBytes = 16;
constexpr std::size_t kWorthPacking = 1400;  // bytes; less fits a packet as it is

template <auto Free>
struct Freed {
  template <class T>
  void operator()(T* value) const {
    Free(value);
  }
};
using Base = std::unique_ptr<event_base, Freed<event_base_free>>;
using Http = std::unique_ptr<evhttp, Freed<evhttp_free>>;
using Event = std::unique_ptr<event, Freed<event_free>>;

Error system_error(std::string message) {
  return {ErrorKind::unreadable, std::move(message), "", std::nullopt, "Give another port with --port"};
}

Result<std::string> new_token() {
  std::array<unsigned char, kTokenBytes> bytes{};
  if (getrandom(bytes.data(), bytes.size(), 0) != static_cast<ssize_t>(bytes.size())) {
    return fail(system_error("the system gave no random bytes"));
  }
  std::string token;
  for (const unsigned char byte : bytes) {
    constexpr std::string_view kDigits = "0123456789abcdef";
    token += kDigits[byte >> 4];
    token += kDigits[byte & 15];
  }
  return token;
}

// Takes as long for a wrong token as for the right one.
bool same_token(std::string_view given, std::string_view token) {
  if (given.size() != token.size()) return false;
  unsigned char differs = 0;
  for (std::size_t i = 0; i < token.size(); i++) differs |= static_cast<unsigned char>(given[i] ^ token[i]);
  return differs == 0;
}

// "localhost:8080" → "localhost"; "[::1]:8080" → "[::1]". A tunnel has its own port, so only the name counts.
std::string_view name_of(std::string_view host) {
  const std::size_t bracket = host.starts_with('[') ? host.find(']') : 0;
  if (bracket == host.npos) return host;
  return host.substr(0, host.find(':', bracket));
}

std::string_view header(evhttp_request* request, const char* name) {
  const char* value = evhttp_find_header(evhttp_request_get_input_headers(request), name);
  return value == nullptr ? std::string_view() : value;
}

// One request on its way through a worker.
struct Job {
  evhttp_request* request = nullptr;
  bool takes_gzip = false;
  Request asked;
  Response answer;
};

class EventServer : public Server {
 public:
  EventServer(const ServerOptions& options, Handler handler) : options_(options), handler_(std::move(handler)) {}
  ~EventServer() override {
    {
      const std::lock_guard lock(mutex_);
      closing_ = true;
    }
    wake_.notify_all();
    for (std::thread& worker : workers_) worker.join();
    finished_.reset();
    http_.reset();
    base_.reset();
    if (signal_ >= 0) close(signal_);
  }
  EventServer(const EventServer&) = delete;
  EventServer& operator=(const EventServer&) = delete;

  Result<void> start() {
    Result<std::string> token = new_token();
    if (!token) return fail(token.error());
    token_ = *std::move(token);
    raise_file_limit();
    base_.reset(event_base_new());
    signal_ = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    if (!base_ || signal_ < 0) return fail(system_error("the system gave no event loop"));
    http_.reset(evhttp_new(base_.get()));
    evhttp_set_max_headers_size(http_.get(), kMostHeaderBytes);
    evhttp_set_max_body_size(http_.get(), kMostBodyBytes);
    evhttp_set_timeout(http_.get(), static_cast<int>(options_.idle_seconds));
    evhttp_set_allowed_methods(http_.get(), EVHTTP_REQ_GET | EVHTTP_REQ_POST);
    evhttp_set_default_content_type(http_.get(), nullptr);
    evhttp_set_gencb(
        http_.get(), [](evhttp_request* request, void* self) { static_cast<EventServer*>(self)->take(request); }, this);
    evhttp_bound_socket* bound =
        evhttp_bind_socket_with_handle(http_.get(), "127.0.0.1", static_cast<std::uint16_t>(options_.port));
    if (bound == nullptr) return fail(system_error("port " + std::to_string(options_.port) + " is not free"));
    port_ = port_of(evhttp_bound_socket_get_fd(bound));
    finished_.reset(event_new(
        base_.get(), signal_, EV_READ | EV_PERSIST,
        [](evutil_socket_t, short, void* self) { static_cast<EventServer*>(self)->send_finished(); }, this));
    event_add(finished_.get(), nullptr);
    for (unsigned i = 0; i < std::max(options_.threads, 1u); i++) workers_.emplace_back([this] { work(); });
    return {};
  }

  int port() const override { return port_; }
  const std::string& token() const override { return token_; }
  void run() override {
    if (!stopped_) event_base_dispatch(base_.get());
  }
  void stop() override {
    stopped_ = true;
    signal_loop();
  }

 private:
  // A thousand idle connections are a thousand files.
  static void raise_file_limit() {
    rlimit limit{};
    if (getrlimit(RLIMIT_NOFILE, &limit) != 0) return;
    limit.rlim_cur = std::min<rlim_t>(limit.rlim_max, 65536);
    setrlimit(RLIMIT_NOFILE, &limit);
  }

  static int port_of(evutil_socket_t socket) {
    sockaddr_storage address{};
    socklen_t size = sizeof address;
    if (getsockname(socket, reinterpret_cast<sockaddr*>(&address), &size) != 0) return 0;
    return ntohs(reinterpret_cast<const sockaddr_in*>(&address)->sin_port);
  }

  bool known_name(std::string_view host) const {
    const std::string_view name = name_of(host);
    return name == "127.0.0.1" || name == "localhost" || name == "[::1]" ||
           std::any_of(options_.host_names.begin(), options_.host_names.end(),
                       [&](const std::string& one) { return name_of(one) == name; });
  }

  // Why a request is refused; an empty answer of status 200: it is not.
  Response judged(evhttp_request* request, std::string_view path) const {
    const std::string_view host = header(request, "Host");
    if (!known_name(host)) {
      return refusal(403, "the request is for another host",
                     "Open the address that stepscope view printed, or name "
                     "your proxy's host with --allow-host");
    }
    const std::string_view origin = header(request, "Origin");
    if (!origin.empty() && origin != "http://" + std::string(host) && origin != "https://" + std::string(host)) {
      return refusal(403, "the request is of a page of another site", "Open the address that stepscope view printed");
    }
    const std::size_t slash = path.find('/', 1);
    if (!path.starts_with('/') || !same_token(path.substr(1, slash == path.npos ? path.npos : slash - 1), token_)) {
      return refusal(403, "the address has not the token of this server",
                     "Open the whole address that stepscope view printed");
    }
    if (evhttp_request_get_command(request) == EVHTTP_REQ_POST && header(request, "X-Stepscope").empty()) {
      return refusal(403, "a POST needs the header X-Stepscope", "Send it, with any value");
    }
    return {};
  }

  void take(evhttp_request* request) {
    const evhttp_uri* uri = evhttp_request_get_evhttp_uri(request);
    const char* raw = uri == nullptr ? nullptr : evhttp_uri_get_path(uri);
    const std::string_view path = raw == nullptr ? std::string_view() : raw;
    const Response judgement = judged(request, path);
    if (judgement.status != 200) return send(request, judgement);
    const std::size_t slash = path.find('/', 1);
    if (slash == path.npos) {  // addresses in the page are relative to the slash
      evhttp_add_header(evhttp_request_get_output_headers(request), "Location", (token_ + "/").c_str());
      return send(request, {302, "text/plain", ""});
    }
    auto job = std::make_unique<Job>();
    job->request = request;
    job->takes_gzip = header(request, "Accept-Encoding").find("gzip") != std::string_view::npos;
    job->asked.post = evhttp_request_get_command(request) == EVHTTP_REQ_POST;
    job->asked.path = path.substr(slash + 1);
    evkeyvalq parsed{};
    const char* query = evhttp_uri_get_query(uri);
    if (query != nullptr && evhttp_parse_query_str(query, &parsed) == 0) {
      for (const evkeyval* one = parsed.tqh_first; one != nullptr; one = one->next.tqe_next) {
        job->asked.query[one->key] = one->value;
      }
    }
    evhttp_clear_headers(&parsed);
    evbuffer* body = evhttp_request_get_input_buffer(request);
    job->asked.body.resize(evbuffer_get_length(body));
    evbuffer_copyout(body, job->asked.body.data(), job->asked.body.size());
    {
      const std::lock_guard lock(mutex_);
      if (waiting_.size() >= kMostWaiting) {
        return send(request, refusal(503, "too many requests wait already", "Ask again in a moment"));
      }
      waiting_.push_back(std::move(job));
    }
    wake_.notify_one();
  }

  void work() {
    for (;;) {
      std::unique_ptr<Job> job;
      {
        std::unique_lock lock(mutex_);
        wake_.wait(lock, [this] { return closing_ || !waiting_.empty(); });
        if (closing_) return;
        job = std::move(waiting_.front());
        waiting_.pop_front();
      }
      try {
        job->answer = handler_(job->asked);
      } catch (const std::exception&) {  // memory ran out: the others are still answered
        job->answer = refusal(500, "this answer could not be made: it took too much memory", "Ask for less at once");
      }
      if (job->takes_gzip && !job->answer.as_is && job->answer.body.size() > kWorthPacking) {
        job->answer.body = formats::gzip(job->answer.body);
        job->answer.packed = true;
      }
      {
        const std::lock_guard lock(mutex_);
        done_.push_back(std::move(job));
      }
      signal_loop();
    }
  }

  void signal_loop() {
    const std::uint64_t one = 1;
    [[maybe_unused]] const ssize_t written = write(signal_, &one, sizeof one);
  }

  void send_finished() {
    std::uint64_t count = 0;
    [[maybe_unused]] const ssize_t got = read(signal_, &count, sizeof count);
    std::deque<std::unique_ptr<Job>> done;
    {
      const std::lock_guard lock(mutex_);
      done.swap(done_);
    }
    // A connection that went away meanwhile has left its request to us: to answer it frees it.
    for (const auto& job : done) send(job->request, std::move(job->answer));
    if (stopped_) event_base_loopbreak(base_.get());
  }

  static void send(evhttp_request* request, Response answer) {
    evkeyvalq* headers = evhttp_request_get_output_headers(request);
    const auto add = [&](const char* name, std::string_view value) {
      evhttp_add_header(headers, name, std::string(value).c_str());
    };
    add("Content-Type", answer.type);
    add("Content-Security-Policy",
        "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; img-src 'self' data:; "
        "base-uri 'none'; form-action 'none'; frame-ancestors 'self'");
    if (answer.packed) add("Content-Encoding", "gzip");
    add("X-Content-Type-Options", "nosniff");
    add("Referrer-Policy", "no-referrer");
    add("Cross-Origin-Resource-Policy", "same-origin");
    add("Cache-Control", "no-store");
    evbuffer* body = evhttp_request_get_output_buffer(request);
    // Kept until it is sent, and not copied: it may be a whole trace.
    auto kept = std::make_unique<std::string>(std::move(answer.body));
    const auto let_go = [](const void*, std::size_t, void* text) { delete static_cast<std::string*>(text); };
    if (evbuffer_add_reference(body, kept->data(), kept->size(), let_go, kept.get()) == 0) {
      [[maybe_unused]] const std::string* theirs = kept.release();
    }
    evhttp_send_reply(request, answer.status, nullptr, nullptr);
  }

  ServerOptions options_;
  Handler handler_;
  std::string token_;
  int port_ = 0, signal_ = -1;
  std::atomic<bool> stopped_{false};
  Base base_;
  Http http_;
  Event finished_;
  std::mutex mutex_;
  std::condition_variable wake_;
  bool closing_ = false;
  std::deque<std::unique_ptr<Job>> waiting_, done_;
  std::vector<std::thread> workers_;
};

}  // namespace

Response refusal(int status, std::string_view message, std::string_view hint) {
  report::JsonWriter json;
  json.begin_object(report::JsonWriter::Layout::line).key("error").begin_object(report::JsonWriter::Layout::line);
  json.key("message").text(message).key("hint").text(hint).end_object().end_object();
  return {status, "application/json", json.take() + "\n"};
}

Response refusal(const Error& error) {
  const bool theirs = error.kind == ErrorKind::usage || error.kind == ErrorKind::not_found;
  const int status = theirs ? 400 : error.kind == ErrorKind::changed ? 409 : 500;
  return refusal(status, error.file.empty() ? error.message : error.file + ": " + error.message, error.hint);
}

Result<std::unique_ptr<Server>> Server::listen(const ServerOptions& options, Handler handler) {
  auto server = std::make_unique<EventServer>(options, std::move(handler));
  if (const auto started = server->start(); !started) return fail(started.error());
  return server;
}

}  // namespace stepscope::serve
