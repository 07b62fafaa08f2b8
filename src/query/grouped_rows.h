// The groups of a GroupedSelect and its calls in each, computed over blocks of columns.
//
// Two differences to SQLite are allowed: rows that `order by` leaves equal may stand in another order, and sums of
// reals are added in file order, which may change the last digit.
#pragma once

#include <memory>
#include <string>

#include "query/grouped_select.h"
#include "query/limits.h"
#include "query/query.h"
#include "query/virtual_tables.h"

namespace stepscope::query {

// Ordered by group; columns: those of the group, then the calls. Null: a sum does not fit, which SQLite words better.
// An Error: the time is over.
Result<std::shared_ptr<const ValueRows>> grouped_rows(const GroupedSelect& select, const Run& run,
                                                      const Deadline& deadline, const Limits& limits);

// "create table x(…)" of these rows.
std::string grouped_declaration(const GroupedSelect& select);

}  // namespace stepscope::query
