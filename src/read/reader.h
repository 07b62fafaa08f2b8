// Contract of the readers: one file (or folder) per input format, one line in readers.list.
//
// A reader turns bytes into traces, one per rank that the file holds (most hold one): exactly what the file says,
// nothing inferred. Damage is repaired or counted as an Issue of the trace; an Error means that no useful part could be
// read.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "model/trace.h"

namespace stepscope::read {

struct ReadOptions {
  unsigned threads = 1;              // parse threads for this one file
  bool tolerant_only = false;        // skip the fast strict path (tests compare the two)
  std::uint64_t max_text_bytes = 0;  // what a compressed file may grow to; 0: the reader decides
  std::size_t chunk_bytes = 0;       // 0: the reader decides (tests use small ones)
};

struct Reader {
  std::string_view name;
  std::string_view summary;  // what it opens, for --version and errors
  // Does the uncompressed start of a file (up to 64 KiB) look like this format? Content only, never the name.
  bool (*recognizes)(std::string_view head);
  // Never an empty list: a file without any rank in it is an Error or one trace that says so in its issues.
  Result<std::vector<Trace>> (*read)(const std::string& path, const ReadOptions& options);
  // The arguments of events as JSON text, by their place in the uncompressed text (ascending offsets).
  Result<std::vector<std::string>> (*event_text)(const Trace& trace, std::span<const std::uint64_t> offsets);
};

std::span<const Reader> readers();  // from readers.list

// The reader of that name; null: there is none.
inline const Reader* reader_named(std::string_view name) {
  for (const Reader& reader : readers()) {
    if (reader.name == name) return &reader;
  }
  return nullptr;
}

}  // namespace stepscope::read
