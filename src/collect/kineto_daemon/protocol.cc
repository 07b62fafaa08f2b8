// Takes datagrams apart and puts answers together; numbers are copied byte by byte, as nothing in a datagram is
// aligned.
#include "collect/kineto_daemon/protocol.h"

#include <cstring>
#include <type_traits>

namespace stepscope::collect::kineto {
namespace {

constexpr std::size_t kTypeBytes = 32;
constexpr std::size_t kContextBytes = 16;
constexpr std::size_t kRequestBytes = 16;  // without the pids

// The caller has made sure that `at` lies within `bytes`.
template <class T>
T number_at(std::string_view bytes, std::size_t at) {
  static_assert(std::is_integral_v<T>);
  T out;
  std::memcpy(&out, bytes.data() + at, sizeof out);
  return out;
}

tl::expected<Message, Fault> decode_context(std::string_view payload) {
  if (payload.size() < kContextBytes) return tl::unexpected(Fault::short_payload);
  return Context{number_at<std::int32_t>(payload, 0), number_at<std::int32_t>(payload, 4),
                 number_at<std::int64_t>(payload, 8)};
}

tl::expected<Message, Fault> decode_request(std::string_view payload) {
  if (payload.size() < kRequestBytes) return tl::unexpected(Fault::short_payload);
  const auto count = number_at<std::int32_t>(payload, 4);
  if (count < 1 || count > kMostPids) return tl::unexpected(Fault::bad_count);
  const std::size_t bytes = static_cast<std::size_t>(count) * sizeof(std::int32_t);
  if (payload.size() != kRequestBytes + bytes) return tl::unexpected(Fault::bad_count);
  Request out{number_at<std::int32_t>(payload, 0), number_at<std::int64_t>(payload, 8), {}};
  out.pids.resize(static_cast<std::size_t>(count));
  std::memcpy(out.pids.data(), payload.data() + kRequestBytes, bytes);
  return out;
}

std::string encode(std::string_view type, std::string_view payload) {
  std::string out(kHeaderBytes, '\0');
  const std::uint64_t size = payload.size();
  std::memcpy(out.data(), &size, sizeof size);
  std::memcpy(out.data() + sizeof size, type.data(), type.size());
  out += payload;
  return out;
}

}  // namespace

tl::expected<Message, Fault> decode(std::string_view datagram) {
  if (datagram.size() < kHeaderBytes) return tl::unexpected(Fault::short_header);
  const std::string_view payload = datagram.substr(kHeaderBytes);
  if (number_at<std::uint64_t>(datagram, 0) != payload.size()) return tl::unexpected(Fault::size_mismatch);
  std::string_view type = datagram.substr(sizeof(std::uint64_t), kTypeBytes);
  type = type.substr(0, type.find('\0'));
  if (type == "ctxt") return decode_context(payload);
  if (type == "req") return decode_request(payload);
  return tl::unexpected(Fault::unknown_type);
}

std::string encode_config(std::string_view config) { return encode("req", config); }

std::string encode_count(std::int32_t count) {
  char bytes[sizeof count];
  std::memcpy(bytes, &count, sizeof count);
  return encode("ctxt", {bytes, sizeof bytes});
}

}  // namespace stepscope::collect::kineto
