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
constexpr std::size_t kReadableText = 30;  // most names can still be told at this width
constexpr std::size_t kShortestText = 18;  // a text column is not squeezed below this

struct Shown {
  std::string head, unit;
  bool right = false;
  std::vector<std::string> cells;
  std::size_t width = 0;  // as shown; at first that of the cells and of the head's longest word
  std::size_t natural_width = 0;
  std::size_t head_width = 0;  // of the head on one line
  bool known = false;          // some cell is
  bool prose = false;          // sentences: broken over lines, never cut
};

// Columns of sentences, by the names that the analyses give them.
bool is_prose(std::string_view name) {
  constexpr std::array<std::string_view, 6> names{"meaning", "why", "costs", "how", "sentence", "advice"};
  return std::find(names.begin(), names.end(), name) != names.end();
}

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
  Shown shown{.head = shown_name(head), .right = head.type == ValueType::integer || head.type == ValueType::real};
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
    shown.known = shown.known || !std::holds_alternative<std::monostate>(value_at(row));
    const std::string cell = printable(format.cell(value_at(row)));
    shown.cells.push_back(ascii ? to_ascii(cell) : cell);
    shown.width = std::max(shown.width, display_width(shown.cells.back()));
  }
  shown.prose = is_prose(head.name);
  shown.width = std::max({shown.width, longest_word(shown.head), display_width(shown.unit)});
  shown.natural_width = shown.width;
  shown.head_width = display_width(shown.head) + (shown.unit.empty() ? 0 : 1 + display_width(shown.unit));
  return shown;
}

// The words on as few lines as fit the width; a word that is longer than a line is cut.
std::vector<std::string> wrapped(std::string_view words, std::size_t width) {
  std::vector<std::string> lines(1);
  while (!words.empty()) {
    const std::size_t end = std::min(words.find(' '), words.size());
    const std::string word = cut_middle(words.substr(0, end), width);
    words.remove_prefix(std::min(end + 1, words.size()));
    if (lines.back().empty()) {
      lines.back() = word;
    } else if (display_width(lines.back()) + 1 + display_width(word) <= width) {
      lines.back().append(1, ' ').append(word);
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

// Heads on one line where all of them fit.
void widen_heads(std::vector<Shown>& columns, std::size_t width) {
  std::size_t total = total_width(columns);
  for (const auto& column : columns) total += column.head_width - std::min(column.head_width, column.width);
  if (total > width) return;
  for (auto& column : columns) column.width = std::max(column.width, column.head_width);
}

// Squeezes text columns, the widest first, down to `shortest`.
void squeeze(std::vector<Shown>& columns, std::size_t width, std::size_t shortest) {
  while (total_width(columns) > width) {
    Shown* widest = nullptr;
    for (auto& column : columns) {
      const bool can = !column.right && column.width > std::max(shortest, longest_word(column.head));
      if (can && (widest == nullptr || column.width > widest->width)) widest = &column;
    }
    if (widest == nullptr) return;
    widest->width--;
  }
}

// Gives room that dropped columns left back to squeezed ones, the most squeezed first.
void grow(std::vector<Shown>& columns, std::size_t width) {
  for (std::size_t spare = width - std::min(width, total_width(columns)); spare > 0; spare--) {
    const auto squeezed = [](const Shown& c) { return c.natural_width - std::min(c.natural_width, c.width); };
    const auto most = std::max_element(columns.begin(), columns.end(),
                                       [&](const Shown& a, const Shown& b) { return squeezed(a) < squeezed(b); });
    if (squeezed(*most) == 0) return;
    most->width++;
  }
}

// Makes room step by step, what costs the reader least first; gives the heads of the columns left out.
std::vector<std::string> fit(std::vector<Shown>& columns, std::size_t width) {
  std::vector<std::string> dropped;
  const auto drop = [&](bool prose, std::size_t keep) {
    while (total_width(columns) > width && columns.size() > keep) {
      auto out = columns.end() - 1;
      if (prose) {
        const auto last = std::find_if(columns.rbegin(), columns.rend(), [](const Shown& c) { return c.prose; });
        if (last == columns.rend()) return;
        out = last.base() - 1;
      }
      dropped.push_back(out->head);
      columns.erase(out);
    }
  };
  squeeze(columns, width, kReadableText);
  drop(true, 3);
  drop(false, 7);
  squeeze(columns, width, kShortestText);
  drop(false, 1);
  if (total_width(columns) > width) columns.front().width = width;
  grow(columns, width);
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

// Cells of several lines side by side; with `bottom` the shorter ones stand at the bottom, as heads do.
void write_lines(Page& page, const std::vector<Shown>& columns, const std::vector<std::vector<std::string>>& cells,
                 std::size_t indent, bool bottom, Ink ink) {
  std::size_t lines = 0;
  for (const auto& cell : cells) lines = std::max(lines, cell.size());
  for (std::size_t i = 0; i < lines; i++) {
    std::string text;
    for (std::size_t c = 0; c < columns.size(); c++) {
      const std::size_t missing = bottom ? lines - cells[c].size() : 0;
      const bool has = i >= missing && i - missing < cells[c].size();
      text += padded(has ? cells[c][i - missing] : "", columns[c].width, columns[c].right);
      text.append(kGap, ' ');
    }
    while (text.ends_with(' ')) text.pop_back();
    page.line(std::string(indent, ' ') + page.ink(ink, text));
  }
}

void write_heads(Page& page, const std::vector<Shown>& columns, std::size_t indent) {
  std::vector<std::vector<std::string>> heads;
  for (const auto& column : columns) {
    const std::string words = column.unit.empty() ? column.head : column.head + " " + column.unit;
    heads.push_back(wrapped(words, column.width));
  }
  write_lines(page, columns, heads, indent, true, Ink::dim);
}

void write_row(Page& page, const std::vector<Shown>& columns, std::size_t row, std::size_t indent) {
  std::vector<std::vector<std::string>> cells;
  for (const auto& column : columns) {
    cells.push_back(column.prose ? wrapped(column.cells[row], column.width) : std::vector{column.cells[row]});
  }
  write_lines(page, columns, cells, indent, false, Ink::plain);
}

// The rank, device or snapshot of a table that is about one: said once, below.
bool says_one_place(const Shown& column) {
  const bool place = column.head == "rank" || column.head == "device" || column.head == "snapshot";
  if (column.cells.size() < 2 || !column.known || !place) return false;
  return std::all_of(column.cells.begin(), column.cells.end(),
                     [&](const auto& c) { return c == column.cells.front(); });
}

struct LeftOut {
  std::vector<std::string> constant, dropped, unknown;
};

void write_left_out(Page& page, std::size_t rows, const LeftOut& columns, std::size_t indent) {
  std::vector<std::string> texts;
  if (rows > 0) texts.push_back("+ " + format_plural(rows, "more row"));
  const auto add = [&](std::string_view why, const std::vector<std::string>& names) {
    if (!names.empty()) texts.push_back(fmt::format("{}: {}", why, fmt::join(names, ", ")));
  };
  add("all rows", columns.constant);
  add("no room for", columns.dropped);
  add("unknown in all rows", columns.unknown);
  if (!texts.empty()) page.paragraph(page.ink(Ink::dim, fmt::format("{}", fmt::join(texts, "; "))), indent, indent + 2);
}

}  // namespace

std::string readable_name(std::string_view name) {
  if (name.find('(') != std::string_view::npos) return printable(name);  // an expression, of a query
  for (const std::string_view unit : {"_ns", "_bytes", "_gb_per_s", "_gbps", "_flop_per_s", "_flop"}) {
    if (name.ends_with(unit) && name.size() > unit.size()) {
      name.remove_suffix(unit.size());
      break;
    }
  }
  std::string text = printable(name);
  if (const std::size_t at = text.find("_ns_per_"); at != std::string::npos) text.erase(at, 3);
  std::replace(text.begin(), text.end(), '_', ' ');
  return text;
}

void write_table(Page& page, const Table& table, const TableView& view) {
  const std::size_t rows = view.max_rows == 0 ? table.rows.size() : std::min(view.max_rows, table.rows.size());
  if (rows == 0) return page.line(std::string(view.indent, ' ') + page.ink(Ink::dim, "no rows"));
  std::vector<Shown> columns;
  std::vector<std::string> unknown, constant;
  for (const std::size_t column : wanted_columns(table, view)) {
    Shown shown = show_column(table, column, rows, page.style().ascii);
    if (says_one_place(shown)) {
      constant.push_back(fmt::format("{} {}", shown.head, shown.cells.front()));
    } else if (shown.known) {
      columns.push_back(std::move(shown));
    } else {
      unknown.push_back(shown.head);
    }
  }
  if (columns.empty()) {  // of each row nothing is known, or all say the same
    page.line(std::string(view.indent, ' ') + page.ink(Ink::dim, format_plural(rows, "row")));
    return write_left_out(page, table.rows.size() - rows, {constant, {}, unknown}, view.indent);
  }
  const std::size_t width = page.width() - std::min(page.width(), view.indent);
  const auto dropped = fit(columns, width);
  widen_heads(columns, width);
  write_heads(page, columns, view.indent);
  for (auto& column : columns) {
    if (!column.prose) column.cells = shorten_names(column.cells, column.width);
  }
  for (std::size_t row = 0; row < rows; row++) write_row(page, columns, row, view.indent);
  if (view.say_left_out) write_left_out(page, table.rows.size() - rows, {constant, dropped, unknown}, view.indent);
}

}  // namespace stepscope::report
