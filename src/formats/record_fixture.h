// The records of a TFRecord file, read again by the tests of what writes them. Not part of the program.
#pragma once

#include <cstdint>
#include <cstring>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "formats/record_file.h"

namespace stepscope::formats {

// Nothing where the file is cut or a checksum is wrong.
inline std::optional<std::vector<std::string>> read_records(std::string_view bytes) {
  const auto checked = [&](std::uint64_t size) -> std::optional<std::string> {
    if (bytes.size() < 4 || size > bytes.size() - 4) return std::nullopt;
    const std::string part(bytes.substr(0, size));
    std::uint32_t sum = 0;
    std::memcpy(&sum, bytes.data() + size, sizeof sum);
    bytes.remove_prefix(size + sizeof sum);
    return sum == masked_crc32c(part) ? std::optional(part) : std::nullopt;
  };
  std::vector<std::string> records;
  while (!bytes.empty()) {
    const auto length = checked(8);
    if (!length) return std::nullopt;
    std::uint64_t size = 0;
    std::memcpy(&size, length->data(), sizeof size);
    auto data = checked(size);
    if (!data) return std::nullopt;
    records.push_back(*std::move(data));
  }
  return records;
}

}  // namespace stepscope::formats
