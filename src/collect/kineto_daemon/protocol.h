// The datagrams between a Kineto client (libkineto inside torch) and its daemon, as dynolog's "ipc fabric" defines
// them.
//
// One datagram is a header of 40 bytes {u64 payload size; char type[32]} and the payload, all in the machine's own byte
// order. Whoever can reach the socket can send anything, so every length is checked against what really came.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <tl/expected.hpp>
#include <variant>
#include <vector>

namespace stepscope::collect::kineto {

// "ctxt": a client says which GPU it uses. Sent once by GPU builds only, so nothing may wait for it.
struct Context {
  std::int32_t gpu = 0;
  std::int32_t pid = 0;  // as the client sees itself
  std::int64_t job = 0;
};

// "req": a client asks for a configuration; every 5 s, for as long as it lives.
struct Request {
  std::int32_t type = 0;           // bits of RequestType
  std::int64_t job = 0;            // SLURM_JOB_ID, else 0
  std::vector<std::int32_t> pids;  // never empty: the process, then its ancestors, as the client sees them
};

// torch 2.13 asks for both (3) and for events only (1) while a trace runs; later Kineto for activities (2) and for
// nothing (0).
enum RequestType : std::int32_t { kEvents = 1, kActivities = 2 };

enum class Fault : std::uint8_t {
  short_header,   // fewer than 40 bytes
  size_mismatch,  // the header's size is not what follows it
  unknown_type,   // neither "ctxt" nor "req"
  short_payload,  // the payload ends before its fixed part does
  bad_count,      // no pids, more than kMostPids, or another number than the payload holds
};

inline constexpr std::size_t kHeaderBytes = 40;
inline constexpr std::int32_t kMostPids = 256;  // clients send at most 11

using Message = std::variant<Context, Request>;

tl::expected<Message, Fault> decode(std::string_view datagram);

// The answer to a Request: configuration text, empty for "nothing to do".
std::string encode_config(std::string_view config);

// The answer to a Context: how many clients of its job share its GPU.
std::string encode_count(std::int32_t count);

}  // namespace stepscope::collect::kineto
