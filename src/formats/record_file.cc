#include "formats/record_file.h"

#include <isa-l/crc.h>

#include <bit>
#include <cstring>

namespace stepscope::formats {
namespace {

static_assert(std::endian::native == std::endian::little, "numbers are written as they lie in memory");

template <class T>
std::string bytes_of(T number) {
  std::string bytes(sizeof number, '\0');
  std::memcpy(bytes.data(), &number, sizeof number);
  return bytes;
}

}  // namespace

std::uint32_t masked_crc32c(std::string_view bytes) {
  // It only reads, whatever its type says; it leaves both inversions of the CRC to the caller.
  auto* data = reinterpret_cast<unsigned char*>(const_cast<char*>(bytes.data()));
  const std::uint32_t crc = ~crc32_iscsi(data, static_cast<int>(bytes.size()), ~0u);
  return std::rotr(crc, 15) + 0xa282ead8u;
}

void append_record(std::string& out, std::string_view data) {
  const std::string length = bytes_of(std::uint64_t{data.size()});
  out += length;
  out += bytes_of(masked_crc32c(length));
  out += data;
  out += bytes_of(masked_crc32c(data));
}

}  // namespace stepscope::formats
