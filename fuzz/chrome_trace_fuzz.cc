// The trace reader on anything: it opens or refuses, never crashes or hangs, and what it gives is whole (check_trace).
// Input: first byte chooses chunk size, threads and path; the rest is the file, packed or not.
#include "read/reader.h"
#include "trace_input.h"

using namespace stepscope;

extern "C" int LLVMFuzzerTestOneInput(const unsigned char* data, std::size_t size) {
  if (size == 0) return 0;
  const unsigned choice = data[0];
  const fuzz::MemoryFile file(data + 1, size - 1);
  read::ReadOptions options;
  options.threads = 1 + (choice & 1);
  options.tolerant_only = (choice & 2) != 0;
  options.chunk_bytes = std::size_t{256} << (choice >> 2 & 7);
  options.max_text_bytes = 4 << 20;
  const Result<Trace> trace = fuzz::read_trace(file.path(), options);
  if (trace) {
    fuzz::check_trace(*trace);
  } else {
    fuzz::must(trace.error().kind != ErrorKind::internal && !trace.error().message.empty(), "a clear error");
  }
  return 0;
}
