#include "session/formats.h"

#include "read/reader.h"

namespace stepscope::session {

std::vector<Format> formats() {
  std::vector<Format> all;
  for (const auto& reader : read::readers()) all.push_back({reader.name, reader.summary});
  return all;
}

}  // namespace stepscope::session
