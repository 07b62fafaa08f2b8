// The reader of Perfetto traces on anything: it opens or refuses, never crashes or hangs, and what it gives is whole.
#include "derive/derive.h"
#include "read/reader.h"
#include "trace_input.h"

using namespace stepscope;

extern "C" int LLVMFuzzerTestOneInput(const unsigned char* data, std::size_t size) {
  const fuzz::MemoryFile file(data, size);
  const read::Reader& reader = *read::reader_named("perfetto");
  reader.recognizes({reinterpret_cast<const char*>(data), size});
  read::ReadOptions options;
  options.max_text_bytes = 4 << 20;
  Result<std::vector<Trace>> traces = reader.read(file.path(), options);
  if (!traces) {
    fuzz::must(traces.error().kind != ErrorKind::internal && !traces.error().message.empty(), "a clear error");
    return 0;
  }
  fuzz::must(!traces->empty(), "a trace at least");
  for (Trace& trace : *traces) {
    fuzz::check_trace(trace);
    if (trace.slices.size() > 0) {
      const std::uint64_t place = trace.source.blocks.front().offset + trace.slices.place[0];
      fuzz::must(reader.event_text(trace, std::span(&place, 1)).has_value(), "the text of an event");
    }
    fuzz::must(derive::derive(trace, {}).has_value(), "derive takes it");
  }
  return 0;
}
