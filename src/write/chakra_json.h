// A Chakra file as one JSON document: {"version": …, "attr": […], "nodes": […]}, the messages as protobuf's own JSON
// form spells them (lowerCamelCase, 64-bit numbers as texts, enumerations by name), one node a line.
#pragma once

#include <string>

#include "base/result.h"

namespace stepscope::write {

// `path` plain or gzip. A damaged record is an error with its place; nothing is written then.
Result<void> write_chakra_json(const std::string& path, const std::string& out);

}  // namespace stepscope::write
