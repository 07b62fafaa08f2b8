// The report in a terminal: an overview of one screen, or with TextStyle::details every table of each answer.
#include <fmt/format.h>

#include <algorithm>
#include <numeric>
#include <optional>

#include "base/version.h"
#include "report/format.h"
#include "report/page.h"
#include "report/report.h"
#include "report/shorten.h"
#include "report/text_parts.h"
#include "report/text_table.h"
#include "report/utf8.h"

namespace stepscope::report {
namespace {

constexpr std::size_t kScreenful = 20;  // rows of a tree, where nobody said how many

// The reason why an answer knows nothing stands beside its scalars already.
bool is_said(const Answer& answer, const std::string& note) {
  return std::count_if(answer.scalars.begin(), answer.scalars.end(), [&](const Scalar& scalar) {
           return std::holds_alternative<std::monostate>(scalar.value) && scalar.meaning == note;
         }) > 0;
}

// Each stack of a bulky table: its number, and a line for each frame.
void write_stacks(Page& page, const Table& table) {
  const std::size_t most = page.style().max_rows == 0 ? table.rows.size() : page.style().max_rows;
  for (std::size_t i = 0; i < std::min(most, table.rows.size()); i++) {
    const auto& row = table.rows[i];
    page.line();
    page.line("  " + page.ink(Ink::accent, "stack " + format_value(row[1], Unit::none)));
    const std::string frames = format_value(row[2], Unit::none);
    for (std::size_t at = 0; at < frames.size();) {
      const std::size_t end = std::min(frames.find('\n', at), frames.size());
      page.line("    " + cut_middle(printable(frames.substr(at, end - at)), page.width() - 4));
      at = end + 1;
    }
  }
  if (most < table.rows.size())
    page.line("  " + page.ink(Ink::dim, "+ " + format_plural(table.rows.size() - most, "more stack")));
}

// Of a table whose rows are the nodes of a tree the column with the bytes of each and those below it.
std::optional<std::size_t> bytes_of_tree(const Table& table) {
  const auto at = [&](std::string_view name) {
    const auto found =
        std::find_if(table.columns.begin(), table.columns.end(), [&](const TableColumn& c) { return c.name == name; });
    return static_cast<std::size_t>(found - table.columns.begin());
  };
  const std::size_t bytes = at("total_bytes"), none = table.columns.size();
  return bytes == none || at("depth") == none ? std::nullopt : std::optional(bytes);
}

// In the order of the table; of rows that have as much the first.
Table largest_rows(const Table& table, std::size_t column, std::size_t most) {
  const auto size = [&](std::size_t row) {
    return column < table.rows[row].size() ? number_of(table.rows[row][column]).value_or(0) : 0;
  };
  std::vector<std::size_t> order(table.rows.size());
  std::iota(order.begin(), order.end(), 0);
  std::stable_sort(order.begin(), order.end(), [&](std::size_t a, std::size_t b) { return size(a) > size(b); });
  order.resize(std::min(most, order.size()));
  std::sort(order.begin(), order.end());
  Table kept{.name = table.name, .columns = table.columns, .rows = {}};
  for (const std::size_t row : order) kept.rows.push_back(table.rows[row]);
  return kept;
}

void write_rows(Page& page, const Table& table) {
  const TextStyle& style = page.style();
  const auto bytes = bytes_of_tree(table);
  const bool whole = !bytes || style.max_rows > 0 || style.every_row || table.rows.size() <= kScreenful;
  if (whole) return write_table(page, table, {.max_rows = style.max_rows});
  write_table(page, largest_rows(table, *bytes, kScreenful), {});
  page.line("  " + page.ink(Ink::dim, fmt::format("the {} largest of {} rows; all: --rows 0", kScreenful,
                                                  format_count(static_cast<std::int64_t>(table.rows.size())))));
}

void write_answer_details(Page& page, const Answer& answer) {
  page.section(answer.name + (answer.summary.empty() ? "" : ": " + answer.summary));
  write_scalars(page, answer);
  // Before tables, which may have many rows.
  if (!answer.findings.empty()) page.line();
  for (const auto& finding : answer.findings) write_finding(page, finding);
  std::string empty;
  for (const auto& table : answer.tables) {
    if (answer.name == "quality" && table.name == "issues") continue;  // shown below, with their places
    if (table.bulky) {
      if (page.style().stacks) write_stacks(page, table);
      continue;
    }
    if (table.rows.empty()) {
      empty += (empty.empty() ? "" : ", ") + readable_name(table.name);
      continue;
    }
    page.line();
    page.line(page.ink(Ink::accent, fmt::format("{}.{}", answer.name, readable_name(table.name))));
    write_rows(page, table);
  }
  if (!empty.empty()) {
    page.line();
    page.hanging(page.ink(Ink::dim, "  Tables without rows: "), page.ink(Ink::dim, empty));
  }
  bool first = true;
  for (const auto& note : answer.notes) {
    if (is_said(answer, note)) continue;
    if (first) page.line();
    first = false;
    page.hanging("  - ", printable(note));
  }
}

}  // namespace

std::string to_text(const Report& report, const TextStyle& style) {
  Page page(style);
  write_input(page, report);
  if (style.details) {
    for (const auto& answer : report.answers) write_answer_details(page, answer);
  } else {
    write_overview(page, report);
  }
  write_failed(page, report);
  write_quality(page, report);
  if (!style.details) write_next(page, report);
  return page.take();
}

std::string table_text(const Table& table, const TextStyle& style) {
  Page page(style);
  write_table(page, table, {.max_rows = style.max_rows, .indent = 0});
  return page.take();
}

}  // namespace stepscope::report
