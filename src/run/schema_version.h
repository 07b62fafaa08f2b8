// The schema_version that every file of a run folder states. A newer one is used as far as it is understood, and said.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

namespace stepscope::run {

// nullopt where the file states none: no JSON object, or larger than a manifest gets.
std::optional<std::int64_t> stated_schema_version(const std::string& path);

// What to say of a file that states `found` where this version knows `known`.
std::string newer_schema(const std::string& file, std::int64_t found, int known);

}  // namespace stepscope::run
