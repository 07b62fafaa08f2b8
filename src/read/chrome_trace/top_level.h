// The members of the top-level object beside the events: devices, rank, clock, and everything else as raw text.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

#include "model/trace.h"

namespace stepscope::read::chrome_trace {

void apply_top_level(Trace& trace, std::string_view key, std::string_view value);

struct Head {
  bool bare_array = false;       // the file is [ … ], not {"traceEvents": [ … ]}
  std::size_t events_begin = 0;  // behind the '['
};

// Finds the event array in the first bytes of the text and applies the members before it. nullopt: more text is needed
// (or, at the end of the text, there is none).
std::optional<Head> find_events(Trace& trace, std::string_view text);

// The same for a text whose first members are broken: goes by the text `"traceEvents": [` alone.
std::optional<Head> find_events_by_text(std::string_view text);

}  // namespace stepscope::read::chrome_trace
