// The tables of a report as the user asked for them: one grouping, sorted by a column, cut after so many rows.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

#include "base/result.h"
#include "model/answer.h"

namespace stepscope::report {

struct Arrangement {
  std::string sort;       // a column, or what torch's key_averages().table(sort_by=…) calls it; empty: as it is
  std::size_t limit = 0;  // rows of each table; 0: all
  std::string group;      // keeps the tables "by_GROUP" of answers that have such tables; empty: all
};

// Tables without the column stay as they are; an error when no table has it. Numbers are sorted from large to small,
// texts from a to z, unknown values last.
Result<void> arrange(Report& report, const Arrangement& wanted);

// Our column for one of torch's names of operator costs; the name itself where it is none of them.
std::string_view column_for(std::string_view torch_name);

}  // namespace stepscope::report
