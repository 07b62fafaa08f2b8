// The framing of TFRecord files, which TensorBoard's event files are: each record is a length (u64), its checksum
// (u32), the data and their checksum (u32), little-endian. Checksums are CRC-32C, masked.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace stepscope::formats {

// CRC-32C (Castagnoli) of fewer than 2^31 bytes, rotated and shifted as the format wants it: a record may hold
// checksums, whose own checksum would else be weak.
std::uint32_t masked_crc32c(std::string_view bytes);

// Appends `data`, fewer than 2^31 bytes, to `out` as one record.
void append_record(std::string& out, std::string_view data);

}  // namespace stepscope::formats
