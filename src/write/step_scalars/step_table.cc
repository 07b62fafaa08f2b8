#include "write/step_scalars/step_table.h"

#include <cmath>
#include <limits>
#include <string_view>

namespace stepscope::write {
namespace {

// What is no measure: a moment, and the number of something (an event, a micro batch).
bool is_measure(const TableColumn& column) {
  if (column.unit == Unit::unix_ns || column.name == "start_ns") return false;
  return column.type == ValueType::real || (column.type == ValueType::integer && column.unit != Unit::none);
}

std::string text_of(const Value& value) {
  if (const auto* whole = std::get_if<std::int64_t>(&value)) return std::to_string(*whole);
  const auto* text = std::get_if<std::string>(&value);
  return text == nullptr ? "unknown" : *text;
}

}  // namespace

std::string StepTable::label(const std::vector<Value>& row) const {
  std::string text;
  for (const std::size_t column : labels) text += text_of(row[column]) + "/";
  return text;
}

std::string StepTable::name(const std::vector<Value>& row) const { return text_of(row[step]); }

std::optional<StepTable> step_table(const Table& table) {
  if (table.name != "steps") return std::nullopt;
  StepTable found;
  bool behind = false;
  for (std::size_t i = 0; i < table.columns.size(); i++) {
    const TableColumn& column = table.columns[i];
    if (column.name == "rank") {
      found.rank = i;
    } else if (column.name == "step") {
      found.step = i;
      behind = true;
    } else if (!behind) {
      found.labels.push_back(i);
    } else if (column.name == "number") {
      found.number = i;
    } else if (column.name == "partial") {
      found.partial = i;
    } else if (is_measure(column)) {
      found.measures.push_back(i);
    }
  }
  return behind ? std::optional(found) : std::nullopt;
}

std::string curve_name(const TableColumn& column) {
  if (column.unit != Unit::ns) return column.name;
  constexpr std::string_view kNs = "_ns";
  const std::size_t unit = column.name.ends_with(kNs) ? kNs.size() : 0;
  return column.name.substr(0, column.name.size() - unit) + "_s";
}

std::optional<double> curve_value(const Value& value, Unit unit) {
  const auto* whole = std::get_if<std::int64_t>(&value);
  const auto* real = std::get_if<double>(&value);
  if (whole == nullptr && real == nullptr) return std::nullopt;
  const double number = (whole != nullptr ? static_cast<double>(*whole) : *real) / (unit == Unit::ns ? 1e9 : 1);
  return std::abs(number) <= std::numeric_limits<float>::max() ? std::optional(number) : std::nullopt;
}

}  // namespace stepscope::write
