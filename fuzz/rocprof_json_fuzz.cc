// The reader of rocprofv3's JSON on any text: it opens or refuses, never crashes or hangs, what it gives is whole
// (check_trace), and a small window gives what a large one gives.
#include "read/reader.h"
#include "trace_input.h"

using namespace stepscope;

extern "C" int LLVMFuzzerTestOneInput(const unsigned char* data, std::size_t size) {
  const fuzz::MemoryFile file(data, size);
  const read::Reader* reader = read::reader_named("rocprof_json");
  const auto traces = reader->read(file.path(), {.max_text_bytes = 1 << 24});
  const auto again = reader->read(file.path(), {.max_text_bytes = 1 << 24, .chunk_bytes = 5});
  fuzz::must(traces.has_value() == again.has_value(), "both or none");
  if (!traces) {
    fuzz::must(traces.error().kind != ErrorKind::internal && !traces.error().message.empty(), "a clear error");
    return 0;
  }
  fuzz::must(!traces->empty() && traces->size() == again->size(), "a trace at least");
  for (std::size_t i = 0; i < traces->size(); i++) {
    const Trace &one = (*traces)[i], &other = (*again)[i];
    fuzz::check_trace(one);
    fuzz::must(one.slices.size() == other.slices.size() && one.counters.size() == other.counters.size() &&
                   one.issues.size() == other.issues.size(),
               "the same whatever the window");
    if (one.slices.size() == 0) continue;
    const std::uint64_t place = one.source.blocks[0].offset + one.slices.place[0];
    fuzz::must(reader->event_text(one, std::span(&place, 1)).has_value(), "its text");
  }
  return 0;
}
