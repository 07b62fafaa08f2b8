// What the fuzz targets of the trace reader share: a file in memory, the reader, and what must hold of every trace.
#pragma once

#include <cstdint>
#include <string>

#include "base/result.h"
#include "model/trace.h"
#include "read/reader.h"

namespace stepscope::fuzz {

void must(bool holds, const char* what);  // aborts

// A file that lives in memory only; its path can be opened like any other.
class MemoryFile {
 public:
  MemoryFile(const unsigned char* data, std::size_t size);
  ~MemoryFile();
  MemoryFile(const MemoryFile&) = delete;
  MemoryFile& operator=(const MemoryFile&) = delete;
  const std::string& path() const { return path_; }
  int fd() const { return fd_; }

 private:
  int fd_;
  std::string path_;
};

Result<Trace> read_trace(const std::string& path, const read::ReadOptions& options);

// All columns of a table have as many rows as it says, all ids exist, no duration is negative, all places are in the
// text, and something that is left out is an issue.
void check_trace(const Trace& trace);

}  // namespace stepscope::fuzz
