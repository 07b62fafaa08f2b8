// Records against bytes that TensorBoard's own writer gives, and every kind of damage to them.
#include "formats/record_file.h"

#include <doctest/doctest.h>

#include <string>

#include "formats/record_fixture.h"

namespace stepscope::formats {
namespace {

std::uint32_t unmasked(std::uint32_t masked) {
  const std::uint32_t rotated = masked - 0xa282ead8u;
  return rotated << 15 | rotated >> 17;
}

}  // namespace

TEST_CASE("records: CRC-32C of RFC 3720's examples") {
  CHECK(unmasked(masked_crc32c("")) == 0);
  CHECK(unmasked(masked_crc32c("123456789")) == 0xe3069283u);
  CHECK(unmasked(masked_crc32c(std::string(32, '\0'))) == 0x8a9136aau);
  CHECK(unmasked(masked_crc32c(std::string(32, '\xff'))) == 0x62a8ab43u);
}

TEST_CASE("records: the bytes of a record") {
  std::string out;
  append_record(out, "abc");
  CHECK(out == std::string("\x03\0\0\0\0\0\0\0\xb0\x99\x49\x0e"
                           "abc"
                           "\x6e\x57\xf1\x21",
                           19));
}

TEST_CASE("records: each comes back, the empty one too, and damage to any byte is seen") {
  std::string file;
  for (const std::string& data : {std::string("one"), std::string(), std::string(100'000, 'x')}) {
    append_record(file, data);
  }
  const auto records = read_records(file);
  REQUIRE(records);
  REQUIRE(records->size() == 3);
  CHECK(records->at(0) == "one");
  CHECK(records->at(1).empty());
  CHECK(records->at(2).size() == 100'000);
  for (const std::size_t at : {0u, 3u, 8u, 13u, 17u, 20u, 40u, 60'000u}) {
    CAPTURE(at);
    std::string damaged = file;
    damaged[at] = static_cast<char>(damaged[at] ^ 0x10);
    CHECK_FALSE(read_records(damaged));
  }
  for (const std::size_t size : {1u, 11u, 14u, 18u, 25u, 100'000u}) {
    CAPTURE(size);
    CHECK_FALSE(read_records(std::string_view(file).substr(0, size)));
  }
}

}  // namespace stepscope::formats
