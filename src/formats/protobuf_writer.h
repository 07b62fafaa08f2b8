// ProtoWriter: one protobuf message by appending, nested messages included.
//
// A nested message begins with one byte for its length; where the length needs more, the content moves up once. Most
// messages of a trace are shorter than 128 bytes, so nothing moves.
#pragma once

#include <cstdint>
#include <cstring>
#include <string>
#include <string_view>
#include <vector>

namespace stepscope::formats {

class ProtoWriter {
 public:
  void number(std::uint32_t field, std::uint64_t value) {
    varint(std::uint64_t{field} << 3);
    varint(value);
  }
  void fixed(std::uint32_t field, std::uint64_t value) {
    varint(std::uint64_t{field} << 3 | 1);
    char bytes[sizeof value];
    std::memcpy(bytes, &value, sizeof value);
    out_.append(bytes, sizeof value);
  }
  void real(std::uint32_t field, double value) {
    std::uint64_t bits;
    std::memcpy(&bits, &value, sizeof bits);
    fixed(field, bits);
  }
  void real32(std::uint32_t field, float value) {
    varint(std::uint64_t{field} << 3 | 5);
    char bytes[sizeof value];
    std::memcpy(bytes, &value, sizeof value);
    out_.append(bytes, sizeof value);
  }
  void text(std::uint32_t field, std::string_view bytes) {
    varint(std::uint64_t{field} << 3 | 2);
    varint(bytes.size());
    out_ += bytes;
  }
  // What is written until end() is one message, the value of `field`.
  void begin(std::uint32_t field) {
    varint(std::uint64_t{field} << 3 | 2);
    open_.push_back(out_.size());
    out_ += '\0';
  }
  void end() {
    const std::size_t start = open_.back();
    open_.pop_back();
    std::uint64_t size = out_.size() - start - 1;
    char bytes[10];
    std::size_t count = 0;
    for (; size >= 0x80; size >>= 7) bytes[count++] = static_cast<char>(size | 0x80);
    bytes[count++] = static_cast<char>(size);
    out_.replace(start, 1, bytes, count);
  }

  bool empty() const { return out_.empty(); }
  std::string_view bytes() const { return out_; }
  void clear() { out_.clear(); }

 private:
  void varint(std::uint64_t value) {
    for (; value >= 0x80; value >>= 7) out_ += static_cast<char>(value | 0x80);
    out_ += static_cast<char>(value);
  }

  std::string out_;
  std::vector<std::size_t> open_;  // where the lengths of the nested messages stand
};

}  // namespace stepscope::formats
