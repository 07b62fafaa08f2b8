// ProtoFields: the fields of one protobuf message, one after the other, straight from its bytes.
//
// Nothing is copied and nothing recurses: a nested message is another ProtoFields over the bytes of its field. Damage
// (a cut varint, a length beyond the message, an unknown wire type) ends the walk and is told by ok().
#pragma once

#include <cstdint>
#include <cstring>
#include <optional>
#include <string_view>

namespace stepscope::formats {

// Reads a varint at `at` and moves behind it; nullopt when it is cut or longer than 10 bytes.
inline std::optional<std::uint64_t> read_varint(std::string_view bytes, std::size_t& at) {
  std::uint64_t value = 0;
  for (unsigned shift = 0; shift < 70 && at < bytes.size(); shift += 7) {
    const auto byte = static_cast<unsigned char>(bytes[at++]);
    if (shift < 64) value |= std::uint64_t{byte & 0x7fu} << shift;
    if (byte < 0x80) return value;
  }
  return std::nullopt;
}

enum class WireType : std::uint8_t { varint = 0, fixed64 = 1, bytes = 2, fixed32 = 5 };

struct ProtoField {
  std::uint32_t number = 0;
  WireType type = WireType::varint;
  std::uint64_t value = 0;  // varint and fixed ones
  std::string_view bytes;   // WireType::bytes

  std::int64_t integer() const { return static_cast<std::int64_t>(value); }
  std::int64_t zigzag() const { return static_cast<std::int64_t>(value >> 1) ^ -static_cast<std::int64_t>(value & 1); }
};

class ProtoFields {
 public:
  explicit ProtoFields(std::string_view message) : message_(message) {}

  // The next field; false at the end and where the bytes make no sense (then ok() is false).
  bool next(ProtoField& field) {
    if (at_ >= message_.size() || !ok_) return false;
    ok_ = take(field);
    return ok_;
  }
  bool ok() const { return ok_; }
  std::size_t position() const { return at_; }

 private:
  bool take(ProtoField& field) {
    const auto tag = read_varint(message_, at_);
    if (!tag || *tag >> 3 == 0 || *tag >> 3 > 0x1fffffff) return false;
    field = {static_cast<std::uint32_t>(*tag >> 3), static_cast<WireType>(*tag & 7), 0, {}};
    switch (field.type) {
      case WireType::varint: return number(read_varint(message_, at_), field);
      case WireType::fixed64: return fixed<std::uint64_t>(field);
      case WireType::fixed32: return fixed<std::uint32_t>(field);
      case WireType::bytes: {
        const auto size = read_varint(message_, at_);
        if (!size || *size > message_.size() - at_) return false;
        field.bytes = message_.substr(at_, *size);
        at_ += *size;
        return true;
      }
    }
    return false;
  }
  static bool number(std::optional<std::uint64_t> value, ProtoField& field) {
    field.value = value.value_or(0);
    return value.has_value();
  }
  template <class T>
  bool fixed(ProtoField& field) {
    if (message_.size() - at_ < sizeof(T)) return false;
    T value;
    std::memcpy(&value, message_.data() + at_, sizeof(T));
    field.value = value;
    at_ += sizeof(T);
    return true;
  }

  std::string_view message_;
  std::size_t at_ = 0;
  bool ok_ = true;
};

}  // namespace stepscope::formats
