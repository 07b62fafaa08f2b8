#include "report/text_table.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <numeric>

#include "report/format.h"
#include "report/shorten.h"
#include "report/utf8.h"

namespace stepscope::report {
namespace {

constexpr std::size_t kGap = 2;
constexpr std::size_t kShortestText = 18;  // a text column is not squeezed below this
constexpr std::size_t kLongestOther = 44;  // all text columns but the widest are squeezed to this at once

struct Shown {
  std::string head, unit;
  bool right = false;
  std::vector<std::string> cells;
  std::size_t width = 0;
};

// The head takes several lines where it is wider than the cells, but its words stay whole.
std::size_t longest_word(std::string_view text) {
  std::size_t longest = 0;
  while (!text.empty()) {
    const std::size_t end = std::min(text.find(' '), text.size());
    longest = std::max(longest, display_width(text.substr(0, end)));
    text.remove_prefix(std::min(end + 1, text.size()));
  }
  return longest;
}

Shown show_column(const Table& table, std::size_t column, std::size_t rows, bool ascii) {
  const TableColumn& head = table.columns[column];
  Shown shown{readable_name(head.name), "", head.type == ValueType::integer || head.type == ValueType::real, {}, 0};
  const auto value_at = [&](std::size_t row) {
    return column < table.rows[row].size() ? table.rows[row][column] : Value{};
  };
  std::vector<double> numbers;
  for (std::size_t row = 0; row < rows; row++) {
    if (const auto number = number_of(value_at(row))) numbers.push_back(*number);
  }
  const ColumnFormat format = column_format(head.unit, numbers);
  shown.unit = format.suffix;
  for (std::size_t row = 0; row < rows; row++) {
    const std::string cell = printable(format.cell(value_at(row)));
    shown.cells.push_back(ascii ? to_ascii(cell) : cell);
    shown.width = std::max(shown.width, display_width(shown.cells.back()));
  }
  shown.width = std::max({shown.width, longest_word(shown.head), display_width(shown.unit)});
  return shown;
}

// The head's words on as few lines as fit the column's width, the unit last.
std::vector<std::string> head_lines(const Shown& column) {
  std::vector<std::string> lines{""};
  std::string words = column.head + (column.unit.empty() ? "" : " " + column.unit);
  for (std::size_t start = 0; start < words.size();) {
    const std::size_t end = std::min(words.find(' ', start), words.size());
    const std::string word = words.substr(start, end - start);
    start = end + 1;
    if (lines.back().empty()) {
      lines.back() = word;
    } else if (display_width(lines.back()) + 1 + display_width(word) <= column.width) {
      lines.back() += " " + word;
    } else {
      lines.push_back(word);
    }
  }
  return lines;
}

std::string padded(std::string_view text, std::size_t width, bool right) {
  const std::string space(width - std::min(width, display_width(text)), ' ');
  return right ? space + std::string(text) : std::string(text) + space;
}

std::size_t total_width(const std::vector<Shown>& columns) {
  std::size_t total = 0;
  for (const auto& column : columns) total += column.width + kGap;
  return total - std::min(total, kGap);
}

// Shortens text columns, the widest first, then drops columns from the right; gives the names of those dropped.
std::vector<std::string> fit(std::vector<Shown>& columns, std::size_t width) {
  std::vector<std::string> dropped;
  const auto widest_text = [&] {
    Shown* widest = nullptr;
    for (auto& column : columns) {
      if (!column.right && column.width > kShortestText && (widest == nullptr || column.width > widest->width)) {
        widest = &column;
      }
    }
    return widest;
  };
  while (total_width(columns) > width) {
    const std::size_t excess = total_width(columns) - width;
    if (Shown* text = widest_text()) {
      text->width = std::max({kShortestText, text->width - std::min(text->width, excess),
                              text->width > kLongestOther ? kLongestOther / 2 : kShortestText});
      if (total_width(columns) > width) continue;
      break;
    }
    if (columns.size() == 1) {
      columns.front().width = width;
      break;
    }
    dropped.push_back(columns.back().head);
    columns.pop_back();
  }
  std::reverse(dropped.begin(), dropped.end());
  return dropped;
}

std::vector<std::size_t> wanted_columns(const Table& table, const TableView& view) {
  std::vector<std::size_t> wanted;
  if (view.columns.empty()) {
    wanted.resize(table.columns.size());
    std::iota(wanted.begin(), wanted.end(), 0);
  }
  for (const auto& name : view.columns) {
    for (std::size_t i = 0; i < table.columns.size(); i++) {
      if (table.columns[i].name == name) wanted.push_back(i);
    }
  }
  return wanted;
}

void write_heads(Page& page, const std::vector<Shown>& columns, std::size_t indent) {
  std::vector<std::vector<std::string>> heads;
  std::size_t lines = 0;
  for (const auto& column : columns) {
    heads.push_back(head_lines(column));
    lines = std::max(lines, heads.back().size());
  }
  for (std::size_t i = 0; i < lines; i++) {
    std::string text;
    for (std::size_t c = 0; c < columns.size(); c++) {
      const std::size_t missing = lines - heads[c].size();  // heads stand on the cells: empty lines come first
      text += padded(i < missing ? "" : heads[c][i - missing], columns[c].width, columns[c].right);
      text += std::string(kGap, ' ');
    }
    while (text.ends_with(' ')) text.pop_back();
    page.line(std::string(indent, ' ') + page.ink(Ink::dim, text));
  }
}

void write_left_out(Page& page, const Table& table, std::size_t rows, const std::vector<std::string>& dropped,
                    std::size_t indent) {
  std::string text;
  if (rows < table.rows.size()) text = "+ " + format_plural(table.rows.size() - rows, "more row");
  if (!dropped.empty()) {
    text += text.empty() ? "columns not shown: " : "; columns not shown: ";
    for (std::size_t i = 0; i < dropped.size(); i++) text += (i == 0 ? "" : ", ") + dropped[i];
  }
  if (!text.empty()) page.paragraph(page.ink(Ink::dim, text), indent, indent + 2);
}

}  // namespace

std::string readable_name(std::string_view name) {
  for (const std::string_view unit : {"_ns", "_bytes", "_gb_per_s", "_gbps"}) {
    if (name.ends_with(unit) && name.size() > unit.size()) {
      name.remove_suffix(unit.size());
      break;
    }
  }
  std::string text = printable(name);
  std::replace(text.begin(), text.end(), '_', ' ');
  return text;
}

void write_table(Page& page, const Table& table, const TableView& view) {
  const std::size_t rows = view.max_rows == 0 ? table.rows.size() : std::min(view.max_rows, table.rows.size());
  std::vector<Shown> columns;
  for (const std::size_t column : wanted_columns(table, view)) {
    columns.push_back(show_column(table, column, rows, page.style().ascii));
  }
  if (columns.empty()) return;
  const auto dropped = fit(columns, page.width() - std::min(page.width(), view.indent));
  write_heads(page, columns, view.indent);
  for (std::size_t row = 0; row < rows; row++) {
    std::string text(view.indent, ' ');
    for (const auto& column : columns) {
      text += padded(shorten_name(column.cells[row], column.width), column.width, column.right);
      text += std::string(kGap, ' ');
    }
    page.line(text);
  }
  if (rows == 0) page.line(std::string(view.indent, ' ') + page.ink(Ink::dim, "no rows"));
  if (view.say_left_out) write_left_out(page, table, rows, dropped, view.indent);
}

}  // namespace stepscope::report
