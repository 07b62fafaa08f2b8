#include "read/nsys_sqlite/payload.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cstring>

namespace stepscope::read::nsys {
namespace {

constexpr std::size_t kHeader = 32;
constexpr std::int64_t kFirstOwnType = 1 << 24;  // ids from here are schemas and enums that the program registered
constexpr std::size_t kLongestPayload = 1 << 20;

struct Kind {
  std::size_t bytes = 0;
  bool is_signed = false;
  bool is_real = false;
};

// Types of nvtxPayloadEntryType on 64-bit Linux; those without a fixed size are left out.
Kind kind_of(std::int64_t type) {
  static constexpr std::array<Kind, 24> kinds{
      {{0, false, false}, {1, true, false}, {1, false, false}, {2, true, false}, {2, false, false}, {4, true, false},
       {4, false, false}, {8, true, false}, {8, false, false}, {8, true, false}, {8, false, false}, {1, true, false},
       {1, false, false}, {2, true, false}, {2, false, false}, {4, true, false}, {4, false, false}, {8, true, false},
       {8, false, false}, {4, true, true},  {8, true, true},   {0, true, true},  {8, false, false}, {8, false, false}}};
  if (type >= kFirstOwnType) return {4, true, false};  // a C enum
  return type > 0 && type < static_cast<std::int64_t>(kinds.size()) ? kinds[static_cast<std::size_t>(type)] : Kind{};
}

template <class T>
T load(std::string_view bytes, std::size_t at) {
  T value{};
  std::memcpy(&value, bytes.data() + at, sizeof value);
  return value;
}

// Little-endian, as all machines are on which nsys runs.
std::int64_t integer_at(std::string_view bytes, std::size_t at, const Kind& kind) {
  std::uint64_t value = 0;
  for (std::size_t i = 0; i < kind.bytes; i++) {
    value |= static_cast<std::uint64_t>(static_cast<unsigned char>(bytes[at + i])) << (8 * i);
  }
  const auto unused = static_cast<int>(64 - 8 * kind.bytes);
  const auto widened = static_cast<std::int64_t>(value << unused);
  return kind.is_signed ? widened >> unused : static_cast<std::int64_t>(value);
}

int digit(char c) {
  if (c >= '0' && c <= '9') return c - '0';
  if (c >= 'a' && c <= 'f') return c - 'a' + 10;
  return c >= 'A' && c <= 'F' ? c - 'A' + 10 : -1;
}

// Some tools that rewrite exports keep blobs as hexadecimal text.
std::optional<std::string> from_hex(std::string_view text) {
  if (text.size() % 2 != 0) return std::nullopt;
  std::string out;
  for (std::size_t i = 0; i < text.size(); i += 2) {
    if (digit(text[i]) < 0 || digit(text[i + 1]) < 0) return std::nullopt;
    out += static_cast<char>(digit(text[i]) * 16 + digit(text[i + 1]));
  }
  return out;
}

}  // namespace

PayloadSchemas::PayloadSchemas(Export& file) {
  enum { domain, schema, index, type, name, offset };
  Scan entry(file, "NVTX_PAYLOAD_SCHEMA_ENTRIES", {"domainId", "schemaId", "idx", "type", "name", "offset"}, 4);
  while (entry.next()) {
    const std::int64_t at = entry[offset] == kAbsent ? 0 : entry[offset];  // the first field has none
    schemas_[{entry[domain], entry[schema]}][entry[index]] = {entry[type], at, std::string(entry.text(name))};
  }
  enum { enum_domain, enum_schema, value, label };
  Scan each(file, "NVTX_PAYLOAD_ENUM_ENTRIES", {"domainId", "schemaId", "value", "name"}, 4);
  while (each.next()) enums_[{each[enum_domain], each[enum_schema]}][each[value]] = std::string(each.text(label));
}

bool PayloadSchemas::is_nccl(std::int64_t domain) const {
  return std::any_of(schemas_.begin(), schemas_.end(), [&](const auto& schema) {
    return schema.first.first == domain &&
           std::any_of(schema.second.begin(), schema.second.end(),
                       [](const auto& entry) { return entry.second.name == "NCCL communicator ID"; });
  });
}

std::vector<PayloadField> PayloadSchemas::decode(std::string_view bytes) const {
  std::string unpacked;
  if (bytes.size() >= 2 * kHeader && bytes.size() <= kLongestPayload) {
    if (auto raw = from_hex(bytes)) bytes = unpacked = *std::move(raw);
  }
  if (bytes.size() < kHeader) return {};
  const Key key{load<std::uint32_t>(bytes, 0), load<std::uint32_t>(bytes, 8)};
  const auto schema = schemas_.find(key);
  if (schema == schemas_.end()) return {};
  std::vector<PayloadField> fields;
  for (const auto& [index, entry] : schema->second) {
    const Kind kind = kind_of(entry.type);
    if (kind.bytes == 0 || entry.offset < 0 || entry.offset > static_cast<std::int64_t>(kLongestPayload)) continue;
    const std::size_t at = kHeader + static_cast<std::size_t>(entry.offset);
    if (at + kind.bytes > bytes.size()) continue;
    PayloadField out{.name = entry.name};
    if (kind.is_real) {
      const double value = kind.bytes == 4 ? load<float>(bytes, at) : load<double>(bytes, at);
      out.text = std::to_string(value);
    } else {
      out.number = integer_at(bytes, at, kind);
      out.text = kind.is_signed ? std::to_string(out.number) : std::to_string(static_cast<std::uint64_t>(out.number));
    }
    const auto names = enums_.find({key.first, entry.type});
    if (names != enums_.end() && names->second.contains(out.number)) out.text = names->second.at(out.number);
    fields.push_back(std::move(out));
  }
  return fields;
}

std::int64_t field(const std::vector<PayloadField>& fields, std::string_view name) {
  const auto found = std::find_if(fields.begin(), fields.end(), [&](const auto& f) { return f.name == name; });
  return found == fields.end() ? kAbsent : found->number;
}

}  // namespace stepscope::read::nsys
