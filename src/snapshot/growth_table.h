// What grew, as rows of a table.
#pragma once

#include <cstddef>
#include <string_view>
#include <vector>

#include "snapshot/growth.h"
#include "snapshot/views.h"

namespace stepscope::snapshot {

Table growth_table(std::string_view name);

// The stacks that changed most, in either direction.
void add_growth_rows(Table& table, const View& view, const std::vector<std::uint32_t>& moments,
                     const std::vector<StackGrowth>& all, std::size_t most_rows, ToldStacks& told);

}  // namespace stepscope::snapshot
