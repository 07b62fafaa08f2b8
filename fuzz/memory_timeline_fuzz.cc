// The reader of memory timelines on anything: it opens or refuses with a place, never crashes or hangs; what it gives
// is whole, and the same whatever the size of its window.
#include "read/reader.h"
#include "trace_input.h"

using namespace stepscope;

namespace {

Result<std::vector<Trace>> read_with(const fuzz::MemoryFile& file, std::size_t window) {
  read::ReadOptions options;
  options.max_text_bytes = 4 << 20;
  options.chunk_bytes = window;
  return read::reader_named("memory_timeline")->read(file.path(), options);
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const unsigned char* data, std::size_t size) {
  const fuzz::MemoryFile file(data, size);
  read::reader_named("memory_timeline")->recognizes({reinterpret_cast<const char*>(data), size});
  const auto whole = read_with(file, 0), pieces = read_with(file, 16);
  fuzz::must(whole.has_value() == pieces.has_value(), "the window changes nothing");
  if (!whole) {
    fuzz::must(whole.error().kind != ErrorKind::internal && !whole.error().message.empty(), "a clear error");
    return 0;
  }
  const MemoryTimeline &rows = whole->front().memory_timeline, &other = pieces->front().memory_timeline;
  fuzz::must(rows.size() > 0 && rows.size() == other.size(), "rows, the same whatever the window");
  fuzz::must(rows.bytes.size() == rows.size() && rows.category.size() == rows.size(), "columns of one length");
  for (std::size_t i = 0; i < rows.size(); i++) {
    fuzz::must(rows.category[i] < kTimelineCategories && rows.bytes[i] == other.bytes[i], "a category");
  }
  return 0;
}
