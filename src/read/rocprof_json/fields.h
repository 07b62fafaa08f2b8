// Fields of a record, looked for by name: every release of the tool has some more or some fewer of them.
//
//   integer(record["dispatch_info"]["agent_id"])
#pragma once

#include <simdjson.h>

#include <cstdint>
#include <string_view>

#include "model/trace.h"

namespace stepscope::read::rocprof {

using Record = simdjson::dom::element;
using Field = simdjson::simdjson_result<simdjson::dom::element>;  // one that may not be there

// A number, a number as text (addresses are "0x00007f…"), or an object {"handle": number}; else kAbsent.
std::int64_t integer(const Field& field);
// "": not given, or no text.
std::string_view words(const Field& field);
inline bool given(const Field& field) { return field.error() == simdjson::SUCCESS; }

}  // namespace stepscope::read::rocprof
