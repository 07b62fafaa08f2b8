// The report as CSV: the exact values of every table, for a spreadsheet or a script.
//
// Each table is preceded by a line "# answer.table" and followed by an empty line; the scalars of an answer come first,
// as a table of their own. Quoting follows RFC 4180 with "\n" line ends; unknown is an empty field.
#include <fmt/format.h>

#include <cmath>

#include "report/report.h"
#include "report/utf8.h"

namespace stepscope::report {
namespace {

void append_field(std::string& out, std::string_view text) {
  const std::string clean = valid_utf8(text);
  const bool edge_space = !clean.empty() && (clean.front() == ' ' || clean.back() == ' ' || clean.front() == '#');
  if (!edge_space && clean.find_first_of(",\"\r\n") == std::string::npos) {
    out += clean;
    return;
  }
  out += '"';
  for (const char c : clean) {
    if (c == '"') out += '"';
    out += c;
  }
  out += '"';
}

void append_value(std::string& out, const Value& value) {
  if (const auto* text = std::get_if<std::string>(&value)) {
    append_field(out, *text);
  } else if (const auto* truth = std::get_if<bool>(&value)) {
    out += *truth ? "true" : "false";
  } else if (const auto* whole = std::get_if<std::int64_t>(&value)) {
    out += fmt::format("{}", *whole);
  } else if (const auto* real = std::get_if<double>(&value); real != nullptr && std::isfinite(*real)) {
    out += fmt::format("{}", *real);
  }
}

void append_table(std::string& out, std::string_view answer, const Table& table) {
  out += fmt::format("# {}.{}\n", answer, table.name);
  std::string_view comma;
  for (const auto& column : table.columns) {
    out += comma;
    append_field(out, column.name);
    comma = ",";
  }
  out += '\n';
  for (const auto& row : table.rows) append_csv_row(out, row);
  out += '\n';
}

Table scalars_as_table(const Answer& answer) {
  Table table{"scalars", {{"name"}, {"value"}, {"unit"}, {"meaning"}}, {}};
  for (const auto& scalar : answer.scalars) {
    table.rows.push_back({scalar.name, scalar.value, std::string(to_string(scalar.unit)), scalar.meaning});
  }
  return table;
}

}  // namespace

void append_csv_row(std::string& out, std::span<const Value> cells) {
  for (const Value& value : cells) {
    if (&value != cells.data()) out += ',';
    append_value(out, value);
  }
  out += '\n';
}

std::string to_csv(const Report& report) {
  std::string out;
  for (const auto& answer : report.answers) {
    if (!answer.scalars.empty()) append_table(out, answer.name, scalars_as_table(answer));
    for (const auto& table : answer.tables) append_table(out, answer.name, table);
  }
  return out;
}

}  // namespace stepscope::report
