// SimpleSelect: the one shape of statement that is computed here instead of by SQLite.
//
//   select COLUMN…, AGGREGATE(COLUMN)… from TABLE [where COLUMN op CONSTANT [and …]]
//   [group by COLUMN…] [order by ITEM [asc|desc]…] [limit N [offset M]]
//
// The parser takes a statement only when it is certain of every word; anything else is SQLite's, errors included.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "query/catalog.h"

namespace stepscope::query {

enum class Aggregate : std::uint8_t { none, count_rows, count, sum, total, avg, min, max };

struct SelectItem {
  Aggregate aggregate = Aggregate::none;
  std::size_t column = 0;  // of the table; without meaning for count_rows
  std::string name;        // as SQLite would head the column
  std::string alias;       // empty: none
};

struct OrderTerm {
  std::size_t item = 0;
  bool descending = false;
};

struct SimpleSelect {
  const ModelTable* table = nullptr;
  std::vector<SelectItem> items;
  std::vector<Predicate> where;
  std::vector<std::size_t> group;  // columns of the table
  std::vector<OrderTerm> order;
  std::optional<std::int64_t> limit;
  std::int64_t offset = 0;
};

std::optional<SimpleSelect> parse_simple_select(std::string_view sql);

}  // namespace stepscope::query
