// GzipStream: a .gz file as a stream of plain bytes, with what was wrong counted instead of thrown.
//
// Members that follow each other are one text. A cut file gives all bytes up to the cut; a wrong checksum or bytes
// behind the last member are noted. The caller sets the limit for what the file may grow to (a gzip bomb).
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>

#include "base/result.h"

namespace stepscope::formats {

class GzipStream {
 public:
  struct Damage {
    bool cut = false;            // the file ends inside a member
    bool bad_checksum = false;   // content and CRC or length disagree
    bool bad_data = false;       // the compressed data is broken; the rest cannot be read
    std::uint64_t trailing = 0;  // bytes behind the last member that are no gzip
  };

  // Reads from `fd` (not owned) with pread, never past `file_bytes`.
  GzipStream(int fd, std::uint64_t file_bytes);
  ~GzipStream();
  GzipStream(GzipStream&&) noexcept;

  // Fills up to `size` bytes; fewer only at the end.
  std::size_t read(char* out, std::size_t size);
  const Damage& damage() const;
  std::uint64_t compressed_bytes_read() const;

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace stepscope::formats
