#include "write/chakra/records.h"

#include "base/version.h"

namespace stepscope::write::chakra {
namespace {

// Fields of AttributeProto's value.
constexpr std::uint32_t kInt32 = 7, kInt64 = 9, kUint64 = 13, kBool = 27, kString = 29;

void append_varint(std::string& out, std::uint64_t value) {
  for (; value >= 0x80; value >>= 7) out += static_cast<char>(value | 0x80);
  out += static_cast<char>(value);
}

// Negative numbers of a narrow type are written as wide as those of 64 bits.
std::uint64_t extended(std::int32_t value) { return static_cast<std::uint64_t>(std::int64_t{value}); }

}  // namespace

void Records::begin(std::string_view profile, std::int64_t rank) {
  message_.clear();
  message_.text(1, "0.0.4");
  const auto text = [&](std::string_view name, std::string_view value) {
    message_.begin(2);
    message_.text(1, name);
    message_.text(kString, value);
    message_.end();
  };
  text("writer", "stepscope " + std::string(version()));
  text("profile", profile);
  text("rank", std::to_string(rank));
  flush();
}

void Records::add(const NodeRecord& node) {
  message_.clear();
  message_.number(1, node.id);
  message_.text(2, node.name);
  message_.number(3, static_cast<std::uint64_t>(node.type));
  ids(4, node.control);
  ids(5, node.data);
  message_.number(6, node.start_us);
  message_.number(7, node.dur_us);
  if (!node.input_values.empty() || !node.input_shapes.empty() || !node.input_types.empty()) {
    message_.begin(8);
    message_.text(1, node.input_values);
    message_.text(2, node.input_shapes);
    message_.text(3, node.input_types);
    message_.end();
  }
  attribute("is_cpu_op", kBool, node.on_host ? 1 : 0);
  attribute("num_ops", kInt64, 0);
  attribute("tensor_size", kUint64, 0);
  attribute("comm_type", kInt64, static_cast<std::uint64_t>(node.comm.type));
  attribute("comm_size", kInt64, static_cast<std::uint64_t>(node.comm.bytes));
  attribute("comm_priority", kInt32, 0);
  attribute("comm_src", kInt32, extended(node.comm.source));
  attribute("comm_dst", kInt32, extended(node.comm.target));
  attribute("comm_tag", kInt32, extended(node.comm.tag));
  text_attribute("pg_name", node.comm.group);
  attribute("start_ns", kInt64, static_cast<std::uint64_t>(node.start_ns));
  attribute("dur_ns", kInt64, static_cast<std::uint64_t>(node.dur_ns));
  known("rf_id", node.record_function_id);
  known("seq_id", node.sequence);
  known("tid", node.thread);
  known("fw_tid", node.fwd_thread);
  known("stream", node.stream);
  flush();
}

void Records::attribute(std::string_view name, std::uint32_t field, std::uint64_t value) {
  message_.begin(10);
  message_.text(1, name);
  message_.number(field, value);
  message_.end();
}

void Records::text_attribute(std::string_view name, std::string_view value) {
  message_.begin(10);
  message_.text(1, name);
  message_.text(kString, value);
  message_.end();
}

void Records::known(std::string_view name, std::int64_t value) {
  if (value != kAbsent) attribute(name, kInt64, static_cast<std::uint64_t>(value));
}

void Records::ids(std::uint32_t field, std::span<const std::uint64_t> ids) {
  if (ids.empty()) return;
  std::string packed;
  for (const std::uint64_t id : ids) append_varint(packed, id);
  message_.text(field, packed);
}

void Records::flush() {
  std::string size;
  append_varint(size, message_.bytes().size());
  file_.add(size);
  file_.add(message_.bytes());
}

}  // namespace stepscope::write::chakra
