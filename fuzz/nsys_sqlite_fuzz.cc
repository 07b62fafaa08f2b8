// The reader of nsys on anything that may stand in a database: it opens or refuses, never crashes or hangs, and what it
// gives is whole (check_trace). The database must be a real file: SQLite follows links to where memory has no name.
#include <stdlib.h>
#include <unistd.h>

#include <algorithm>

#include "read/reader.h"
#include "trace_input.h"

using namespace stepscope;

namespace {

class TemporaryFile {
 public:
  TemporaryFile(const unsigned char* data, std::size_t size) {
    const int fd = mkstemp(path_);
    fuzz::must(fd >= 0 && write(fd, data, size) == static_cast<ssize_t>(size), "a temporary file");
    close(fd);
  }
  ~TemporaryFile() { unlink(path_); }
  TemporaryFile(const TemporaryFile&) = delete;
  TemporaryFile& operator=(const TemporaryFile&) = delete;
  std::string path() const { return path_; }

 private:
  char path_[32] = "/tmp/nsys_fuzz_XXXXXX";
};

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const unsigned char* data, std::size_t size) {
  constexpr std::string_view magic{"SQLite format 3\0", 16};
  const std::string_view head(reinterpret_cast<const char*>(data), std::min(size, magic.size()));
  if (head != magic) return 0;  // reports would start nsys
  const TemporaryFile file(data, size);
  const auto traces = read::reader_named("nsys_sqlite")->read(file.path(), {});
  if (!traces) {
    fuzz::must(traces.error().kind != ErrorKind::internal && !traces.error().message.empty(), "a clear error");
    return 0;
  }
  fuzz::must(!traces->empty(), "a trace at least");
  for (const Trace& trace : *traces) fuzz::check_trace(trace);
  return 0;
}
