// Reader of memory_state.json, which `stepscope run --memory` and SimpleMemoryProfiler write (docs/run-folder.md).
//
// Given alone it is opened as a run without times: its Reader of readers.list gives a trace that holds the rank and
// nothing else. What is in it is a value of its own.
#pragma once

#include <string>

#include "base/result.h"
#include "model/memory_state.h"

namespace stepscope::read {

// What does not fit (a node that is not there, a negative size, a category of a newer version) is left out and told in
// its issues. Errors: the file cannot be read, or is no such JSON. `max_text_bytes` limits the text; 0: 256 MiB.
Result<MemoryState> read_memory_state(const std::string& path, std::uint64_t max_text_bytes = 0);

}  // namespace stepscope::read
