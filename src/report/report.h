// Report: answers → something to look at. Every number is formatted in format.h and nowhere else.
#pragma once

#include <span>
#include <string>
#include <string_view>

#include "base/result.h"
#include "model/answer.h"

namespace stepscope::report {

// Of the JSON; a member that changes its meaning or goes away raises it, a new member does not.
inline constexpr int kSchemaVersion = 1;

struct TextStyle {
  bool color = false;
  bool ascii = false;         // no box or bar characters beyond ASCII
  unsigned width = 100;       // columns of the terminal
  std::size_t max_rows = 10;  // of each table; 0: all, but of a tree of bytes a screenful
  bool every_row = false;     // with max_rows 0: all of a tree too
  bool details = false;       // every scalar and table of each answer in place of the one-screen overview
  bool stacks = false;        // with them, bulky tables: stacks frame by frame
};

// The report as a person reads it in a terminal.
std::string to_text(const Report& report, const TextStyle& style);
// One table by itself; its numbers are rounded as in the report.
std::string table_text(const Table& table, const TextStyle& style);
// One JSON object, as docs/report-json.md specifies it.
std::string to_json(const Report& report);
// One CSV per table, each preceded by a line "# answer.table".
std::string to_csv(const Report& report);
// A line of CSV.
void append_csv_row(std::string& out, std::span<const Value> cells);
// One self-contained page; an error when this build was made without the page's scripts.
Result<std::string> to_html(const Report& report);

}  // namespace stepscope::report
