// Names that fit: C++ kernel names are hundreds of characters long and differ in the middle. The full name is always in
// the JSON and the CSV.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

namespace stepscope::report {

// `name` in at most `width` columns: as it is where it fits; else without what says least, step by step (return type
// and parameter list, namespaces, inner template arguments), at last with "…" in the middle. The input must be
// printable (see utf8.h). Of frames of a stack, joined by " < ", the first ones are kept.
std::string shorten_name(std::string_view name, std::size_t width);

// The names of one column. Names that would look the same are cut so that the place where they first differ shows.
std::vector<std::string> shorten_names(const std::vector<std::string>& names, std::size_t width);

// `text` in at most `width` columns, cut in the middle by "…".
std::string cut_middle(std::string_view text, std::size_t width);

}  // namespace stepscope::report
