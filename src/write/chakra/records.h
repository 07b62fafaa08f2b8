// The records of a Chakra file (schema 0.0.4): a varint length and a protobuf message each, first the GlobalMetadata.
// Attributes have the types that the first feeders read, and a node has all that they look at: they leave what is
// absent uninitialised.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>

#include "formats/out_file.h"
#include "formats/protobuf_writer.h"
#include "model/trace.h"

namespace stepscope::write::chakra {

enum class NodeType : std::uint8_t { metadata = 1, compute = 4, send = 5, receive = 6, collective = 7 };

// What an attribute that is not known says, where a reader must find a number.
inline constexpr std::int32_t kUnknown = -1;

struct CommRecord {
  std::int64_t type = 0;  // CollectiveCommType
  std::int64_t bytes = 0;
  std::int32_t source = kUnknown, target = kUnknown, tag = 0;
  std::string_view group;  // digits; empty: all ranks
};

// kAbsent numbers are left out.
struct NodeRecord {
  std::uint64_t id = 0;
  std::string_view name;
  NodeType type = NodeType::compute;
  std::span<const std::uint64_t> control, data;  // ids of nodes written before
  std::uint64_t start_us = 0, dur_us = 0;
  std::int64_t start_ns = 0, dur_ns = 0;
  bool on_host = false;
  CommRecord comm;
  std::int64_t record_function_id = kAbsent, sequence = kAbsent, thread = kAbsent, fwd_thread = kAbsent;
  std::int64_t stream = kAbsent;
  std::string_view input_values, input_shapes, input_types;
};

class Records {
 public:
  explicit Records(formats::OutFile& file) : file_(file) {}

  void begin(std::string_view profile, std::int64_t rank);
  void add(const NodeRecord& node);

 private:
  void attribute(std::string_view name, std::uint32_t field, std::uint64_t value);
  void text_attribute(std::string_view name, std::string_view value);
  void known(std::string_view name, std::int64_t value);
  void ids(std::uint32_t field, std::span<const std::uint64_t> ids);
  void flush();

  formats::OutFile& file_;
  formats::ProtoWriter message_;
};

// Whole microseconds of the durations of one lane: the parts cut off are carried on, so that the sum keeps its length.
class WholeMicroseconds {
 public:
  std::uint64_t of(std::int64_t dur_ns) {
    rest_ns_ += dur_ns;
    const std::int64_t us = rest_ns_ / 1000;
    rest_ns_ -= us * 1000;
    return static_cast<std::uint64_t>(us);
  }

 private:
  std::int64_t rest_ns_ = 0;
};

}  // namespace stepscope::write::chakra
