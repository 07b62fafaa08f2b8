// GroupedSelect: a statement that aggregates one table, taken apart into what is computed here and the rest of it.
//
//   select ITEMS from TABLE [where COLUMN op CONSTANT [and …]] [group by COLUMN…] [having …] [order by …] [limit …]
//   select distinct COLUMN… from TABLE …
//
// Which rows pass, their groups, and the aggregates of plain columns are computed here, over blocks of columns. What
// is made of these (arithmetic, rounding, HAVING, the order, the limit) is SQLite's: `outer` is the statement once more
// with a column of the table of groups in the place of each aggregate. The parser takes a statement only when it is
// certain of every word; anything else is SQLite's as a whole, errors included.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "query/catalog.h"

namespace stepscope::query {

enum class Aggregate : std::uint8_t { count_rows, count, count_distinct, sum, total, avg, min, max };

struct AggregateCall {
  Aggregate aggregate = Aggregate::count_rows;
  std::size_t column = 0;  // of the table; without meaning for count_rows
  bool operator==(const AggregateCall&) const = default;
};

// How `outer` names the table of groups and its columns.
inline constexpr std::string_view kGroupedTable = "grouped rows";
std::string group_column(std::size_t i);
std::string call_column(std::size_t i);

struct GroupedSelect {
  const ModelTable* table = nullptr;
  std::vector<Predicate> where;
  std::vector<std::size_t> group;  // columns of the table
  std::vector<AggregateCall> calls;
  std::string outer;
};

std::optional<GroupedSelect> parse_grouped_select(std::string_view sql);

}  // namespace stepscope::query
