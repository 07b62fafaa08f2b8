#include "compat/hta/name_groups.h"

#include <algorithm>
#include <cmath>
#include <map>

#include "compat/hta/stats.h"

namespace stepscope::compat::hta {
namespace {

NameGroup group_of(std::string_view name, const std::vector<double>& values) {
  const auto [min, max] = std::minmax_element(values.begin(), values.end());
  const double deviation = deviation_of(values);
  return {std::string(name), sum_of(values), *max, *min, std::isnan(deviation) ? 0 : deviation, mean_of(values)};
}

std::vector<NameGroup> fold_small(const std::vector<NameGroup>& groups, std::size_t most, double ratio) {
  std::vector<double> running;
  double sum = 0;
  for (const NameGroup& group : groups) running.push_back(sum += group.sum);
  std::vector<double> sorted = running;
  std::sort(sorted.begin(), sorted.end());
  const double limit = quantile_of(sorted, ratio);
  std::map<std::string, std::vector<double>> sums;
  for (std::size_t i = 0; i < groups.size(); i++)
    sums[i >= most || running[i] > limit ? "others" : groups[i].name].push_back(groups[i].sum);
  std::vector<NameGroup> folded;
  for (const auto& [name, values] : sums) folded.push_back(group_of(name, values));
  return folded;
}

}  // namespace

std::vector<NameGroup> by_name(const EventTable& table, const std::vector<Row>& rows, std::size_t most, double ratio) {
  std::map<std::string_view, std::vector<double>> durations;
  for (const Row& row : rows) durations[table.name(row)].push_back(row.dur);
  std::vector<NameGroup> groups;
  for (const auto& [name, values] : durations) groups.push_back(group_of(name, values));
  std::stable_sort(groups.begin(), groups.end(), [](const NameGroup& a, const NameGroup& b) { return a.sum > b.sum; });
  return groups.size() > most ? fold_small(groups, most, ratio) : groups;
}

}  // namespace stepscope::compat::hta
