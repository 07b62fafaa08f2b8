// Statistics as pandas computes them, for tables that are to equal pandas' tables: sample deviation, quantiles between
// neighbors, NaN left out and shown as unknown, halves rounded to even. And short ways to name columns.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "compat/hta/table.h"
#include "model/answer.h"

namespace stepscope::compat::hta {

struct Describe {  // NaN where there are too few values
  double count, mean, std, min, q25, q50, q75, max;
};
Describe describe(std::vector<double> values);

double sum_of(const std::vector<double>& values);
double mean_of(const std::vector<double>& values);
double deviation_of(const std::vector<double>& values);  // NaN for fewer than two
double quantile_of(const std::vector<double>& sorted, double part);
double rounded(double value, int decimals);
Value real(double value);  // NaN: unknown

inline TableColumn words(std::string_view name, std::string_view meaning) {
  return {std::string(name), ValueType::text, Unit::none, std::string(meaning)};
}
inline TableColumn whole(std::string_view name, std::string_view meaning) {
  return {std::string(name), ValueType::integer, Unit::none, std::string(meaning)};
}
inline TableColumn number(std::string_view name, std::string_view meaning) {
  return {std::string(name), ValueType::real, Unit::none, std::string(meaning)};
}
// The eight columns of describe(), named after `prefix`, and their values.
void add_describe_columns(Table& table, std::string_view prefix);
void add_describe_values(std::vector<Value>& row, const Describe& values, int decimals = 15);

// The order that sorts `keys`; among equal keys as numpy leaves them, which HTA's tables depend on (sort_order.cc).
std::vector<std::uint32_t> sort_order(const std::vector<double>& keys);
std::vector<Row> by_start(const std::vector<Row>& rows);

}  // namespace stepscope::compat::hta
