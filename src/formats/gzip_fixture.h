// gzip(): a text packed as one member, for tests. Not part of the program.
#pragma once

#include <doctest/doctest.h>
#include <isa-l/igzip_lib.h>

#include <cstdint>
#include <string>
#include <string_view>

namespace stepscope::formats {

inline std::string gzip(std::string_view text) {
  std::string out(text.size() + text.size() / 8 + 1024, '\0');
  isal_zstream stream;
  isal_deflate_init(&stream);
  stream.gzip_flag = IGZIP_GZIP;
  stream.end_of_stream = 1;
  stream.next_in = reinterpret_cast<std::uint8_t*>(const_cast<char*>(text.data()));
  stream.avail_in = static_cast<std::uint32_t>(text.size());
  stream.next_out = reinterpret_cast<std::uint8_t*>(out.data());
  stream.avail_out = static_cast<std::uint32_t>(out.size());
  REQUIRE(isal_deflate(&stream) == COMP_OK);
  out.resize(stream.total_out);
  return out;
}

}  // namespace stepscope::formats
