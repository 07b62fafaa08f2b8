// The reader of marks on any bytes: it opens or refuses, never crashes or hangs, and what it gives is whole.
#include "derive/derive.h"
#include "read/reader.h"
#include "run/progress.h"
#include "trace_input.h"

using namespace stepscope;

extern "C" int LLVMFuzzerTestOneInput(const unsigned char* data, std::size_t size) {
  const fuzz::MemoryFile file(data, size);
  if (const auto ring = run::read_ring(file.path())) run::progress_of(*ring, 20);
  Result<std::vector<Trace>> traces = read::reader_named("marks")->read(file.path(), {});
  if (!traces) {
    fuzz::must(traces.error().kind != ErrorKind::internal && !traces.error().message.empty(), "a clear error");
    return 0;
  }
  fuzz::must(traces->size() == 1, "one trace");
  fuzz::check_trace(traces->front());
  fuzz::must(derive::derive(traces->front(), {}).has_value(), "derive takes it");
  return 0;
}
