// The first rows by a number: "select … order by dur_ns desc limit 10" asks SQLite to sort millions of rows for ten.
//
// Here the value of the last row that can be among them is found over blocks of columns, and the statement is given the
// condition that rows must not be behind it. What is shown, and in which order, stays SQLite's.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "base/result.h"
#include "query/limits.h"
#include "query/query.h"

namespace stepscope::query {

// The statement with that condition; nullopt where it is not of that shape or nothing would be won. An Error: the time
// is over.
Result<std::optional<std::string>> narrow_to_top(const Run& run, std::string_view sql, const Deadline& deadline,
                                                 const Limits& limits);

}  // namespace stepscope::query
