// The tables that people write as text: a row on each line, its fields between bars; empty lines and lines that start
// with # are skipped.
#pragma once

#include <functional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"

namespace stepscope {

// The text of a user's table, 4 MiB at most. `what` is named in errors ("class rules"), `document` tells its format.
Result<std::string> read_table(const std::string& path, std::string_view what, std::string_view document);

struct TableFormat {
  std::vector<std::string_view> fields;  // their names, as errors call them; none may be empty in a row
  std::string_view hint;                 // what a row looks like
};

// Calls `add` with the fields of each row. An error of the format, or of `add`, gets the file and the line before its
// message; `file` empty: a built-in table, whose errors are defects of ours.
Result<void> for_each_row(std::string_view text, const std::string& file, const TableFormat& format,
                          const std::function<Result<void>(std::span<const std::string_view>)>& add);

}  // namespace stepscope
