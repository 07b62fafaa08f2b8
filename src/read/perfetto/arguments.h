// An event as JSON text: its name, category and named values, or the arguments that it had in the file it was made
// from.
#pragma once

#include <string>

#include "read/perfetto/event.h"

namespace stepscope::read::perfetto {

std::string event_json(const Event& event, const Sequence& sequence);

}  // namespace stepscope::read::perfetto
