// Valid JSON must give the same model on the strict and on the tolerant path, in chunks of any size, on more threads.
// Valid is what simdjson's own DOM parser accepts, with keys that stand once. Input: the text of a file.
#include <simdjson.h>

#include <cstdio>

#include "model/trace_compare_fixture.h"
#include "read/reader.h"
#include "trace_input.h"

using namespace stepscope;

extern "C" int LLVMFuzzerTestOneInput(const unsigned char* data, std::size_t size) {
  static simdjson::dom::parser parser;
  const simdjson::padded_string text(reinterpret_cast<const char*>(data), size);
  simdjson::dom::element root;
  if (parser.parse(text).get(root) != simdjson::SUCCESS) return 0;
  const fuzz::MemoryFile file(data, size);
  const Result<Trace> strict = fuzz::read_trace(file.path(), {1, false, 0, 0});
  for (const std::size_t chunk : {std::size_t{256}, std::size_t{700}, std::size_t{4096}, std::size_t{0}}) {
    for (const bool tolerant : {false, true}) {
      const Result<Trace> other = fuzz::read_trace(file.path(), {chunk == 700 ? 3u : 1u, tolerant, 0, chunk});
      fuzz::must(other.has_value() == strict.has_value(), "both open");
      if (!strict) continue;
      const std::string difference = first_difference(*strict, *other);
      if (!difference.empty()) std::fprintf(stderr, "chunk %zu tolerant %d: %s\n", chunk, tolerant, difference.c_str());
      fuzz::must(difference.empty(), "one model");
    }
  }
  if (strict) fuzz::check_trace(*strict);
  return 0;
}
