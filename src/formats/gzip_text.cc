#include "formats/gzip_text.h"

#include <isa-l/igzip_lib.h>

#include <cstdint>
#include <vector>

namespace stepscope::formats {

std::string gzip(std::string_view text) {
  std::string out(text.size() + text.size() / 8 + 1024, '\0');
  std::vector<std::uint8_t> level(ISAL_DEF_LVL1_DEFAULT);
  isal_zstream stream;
  isal_deflate_init(&stream);
  stream.level = 1;
  stream.level_buf = level.data();
  stream.level_buf_size = static_cast<std::uint32_t>(level.size());
  stream.gzip_flag = IGZIP_GZIP;
  stream.end_of_stream = 1;
  stream.next_in = reinterpret_cast<std::uint8_t*>(const_cast<char*>(text.data()));
  stream.avail_in = static_cast<std::uint32_t>(text.size());
  stream.next_out = reinterpret_cast<std::uint8_t*>(out.data());
  stream.avail_out = static_cast<std::uint32_t>(out.size());
  isal_deflate(&stream);  // the room is always enough
  out.resize(stream.total_out);
  return out;
}

}  // namespace stepscope::formats
