// FileText: the whole text of a file, plain or gzip, for formats that are read in one piece (graphs, small JSON).
#pragma once

#include <cstdint>
#include <string>

#include "base/result.h"
#include "formats/gzip_stream.h"

namespace stepscope::formats {

struct FileText {
  std::string text;
  bool compressed = false;
  std::uint64_t file_bytes = 0;
  GzipStream::Damage damage;  // of a compressed file; what could be inflated is in `text`
};

// `max_bytes` 0: 100 times the file's size, 64 MiB at least. An Error when the file cannot be read or grows beyond it.
Result<FileText> read_text(const std::string& path, std::uint64_t max_bytes);

}  // namespace stepscope::formats
