#include <fmt/format.h>

#include "query/query.h"

namespace stepscope::query {
namespace {

enum Kind : std::uint8_t { kWhole = 1, kReal = 2, kText = 4, kTruth = 8 };

std::uint8_t kind_of(const Value& value) {
  constexpr std::uint8_t kinds[] = {0, kWhole, kReal, kText, kTruth};  // in the order of Value's alternatives
  return kinds[value.index()];
}

ValueType type_of(std::uint8_t kinds) {
  if ((kinds & (kWhole | kReal)) == kinds && kinds != 0) return kinds == kWhole ? ValueType::integer : ValueType::real;
  return kinds == kTruth ? ValueType::boolean : ValueType::text;
}

void make_text(Value& value) {
  if (const auto* whole = std::get_if<std::int64_t>(&value)) {
    value = std::to_string(*whole);
  } else if (const auto* real = std::get_if<double>(&value)) {
    value = fmt::format("{}", *real);
  } else if (const auto* truth = std::get_if<bool>(&value)) {
    value = std::string(*truth ? "true" : "false");
  }
}

}  // namespace

void TableSink::columns(std::span<const std::string> names) {
  for (const std::string& name : names) table_.columns.push_back({name, ValueType::text, Unit::none, ""});
  kinds_.assign(names.size(), 0);
}

bool TableSink::row(std::span<const Value> cells) {
  for (std::size_t i = 0; i < cells.size(); i++) kinds_[i] |= kind_of(cells[i]);
  table_.rows.emplace_back(cells.begin(), cells.end());
  return true;
}

Table TableSink::take() {
  for (std::size_t i = 0; i < kinds_.size(); i++) {
    table_.columns[i].type = type_of(kinds_[i]);
    if (table_.columns[i].type != ValueType::text || kinds_[i] == kText) continue;
    for (auto& row : table_.rows) make_text(row[i]);
  }
  return std::move(table_);
}

}  // namespace stepscope::query
