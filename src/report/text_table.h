// A table of an answer as aligned text that never leaves the page's width.
//
// Columns stand in the order that the analysis gave, numbers to the right. When they do not fit, text cells are
// shortened first (never below a readable width), then columns are left out from the right; what was left out is said
// below the table.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

#include "report/page.h"
#include "report/utf8.h"

namespace stepscope::report {

struct TableView {
  std::size_t max_rows = 0;          // 0: all
  std::vector<std::string> columns;  // names in the order wanted; those that the table lacks are skipped; empty: all
  std::size_t indent = 2;
  bool say_left_out = true;  // the line below the table about rows and columns left out
};

void write_table(Page& page, const Table& table, const TableView& view);

// "device_total_ns" to "device total": units stand elsewhere.
std::string readable_name(std::string_view name);
// The same of a scalar or a column: its label, where it has one.
std::string shown_name(const auto& named) {
  return named.label.empty() ? readable_name(named.name) : printable(named.label);
}

}  // namespace stepscope::report
