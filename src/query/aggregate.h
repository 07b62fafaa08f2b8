// Computes a SimpleSelect over blocks of columns: the same rows as SQLite would give.
//
// Two differences are allowed: rows that `order by` leaves equal may stand in another order, and sums of reals are
// added in file order, which may change the last digit.
#pragma once

#include <string_view>

#include "query/query.h"

namespace stepscope::query {

// False: the statement is not of that shape (or a sum does not fit, which SQLite words better); nothing was written.
Result<bool> run_aggregate(const Run& run, std::string_view sql, const Limits& limits, RowSink& sink);

}  // namespace stepscope::query
