#include "compat/hta/stats.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>

namespace stepscope::compat::hta {
namespace {

constexpr double kNaN = std::numeric_limits<double>::quiet_NaN();

}  // namespace

double sum_of(const std::vector<double>& values) { return std::accumulate(values.begin(), values.end(), 0.0); }

double mean_of(const std::vector<double>& values) {
  return values.empty() ? kNaN : sum_of(values) / static_cast<double>(values.size());
}

double deviation_of(const std::vector<double>& values) {
  if (values.size() < 2) return kNaN;
  const double mean = mean_of(values);
  double squares = 0;
  for (const double value : values) squares += (value - mean) * (value - mean);
  return std::sqrt(squares / static_cast<double>(values.size() - 1));
}

double quantile_of(const std::vector<double>& sorted, double part) {
  if (sorted.empty()) return kNaN;
  const double at = part * static_cast<double>(sorted.size() - 1);
  const auto low = static_cast<std::size_t>(at);
  if (low + 1 >= sorted.size()) return sorted.back();
  const double share = at - static_cast<double>(low), step = sorted[low + 1] - sorted[low];
  return share < 0.5 ? sorted[low] + step * share : sorted[low + 1] - step * (1 - share);
}

Describe describe(std::vector<double> values) {
  values.erase(std::remove_if(values.begin(), values.end(), [](double v) { return std::isnan(v); }), values.end());
  Describe out{static_cast<double>(values.size()), mean_of(values), deviation_of(values), kNaN, kNaN, kNaN, kNaN, kNaN};
  if (values.empty()) return out;
  std::sort(values.begin(), values.end());
  out.min = values.front();
  out.q25 = quantile_of(values, 0.25);
  out.q50 = quantile_of(values, 0.5);
  out.q75 = quantile_of(values, 0.75);
  out.max = values.back();
  return out;
}

double rounded(double value, int decimals) {
  const double scale = std::pow(10.0, decimals);
  return std::nearbyint(value * scale) / scale;
}

Value real(double value) { return std::isnan(value) ? Value() : Value(value); }

void add_describe_columns(Table& table, std::string_view prefix) {
  const auto add = [&](std::string_view name, std::string_view meaning) {
    table.columns.push_back(number(std::string(prefix) + std::string(name), meaning));
  };
  add("count", "Number of values");
  add("mean", "Mean");
  add("std", "Standard deviation of the sample");
  add("min", "Smallest");
  add("25%", "First quartile");
  add("50%", "Median");
  add("75%", "Third quartile");
  add("max", "Largest");
}

void add_describe_values(std::vector<Value>& row, const Describe& values, int decimals) {
  for (const double value :
       {values.count, values.mean, values.std, values.min, values.q25, values.q50, values.q75, values.max}) {
    row.push_back(real(decimals < 15 ? rounded(value, decimals) : value));
  }
}

std::vector<Row> by_start(const std::vector<Row>& rows) {
  std::vector<double> starts;
  starts.reserve(rows.size());
  for (const Row& row : rows) starts.push_back(row.ts);
  std::vector<Row> sorted;
  sorted.reserve(rows.size());
  for (const std::uint32_t at : sort_order(starts)) sorted.push_back(rows[at]);
  return sorted;
}

}  // namespace stepscope::compat::hta
