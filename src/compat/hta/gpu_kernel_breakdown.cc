// gpu_kernel_breakdown: device time by type of kernel, overlaps apart, and by name of kernel.
#include <algorithm>
#include <array>
#include <map>

#include "compat/compat.h"
#include "compat/hta/name_groups.h"
#include "compat/hta/stats.h"
#include "compat/hta/unions.h"

namespace stepscope::compat::hta {
namespace {

constexpr std::array kTypes{KernelType::computation, KernelType::communication, KernelType::memory};

std::string state_name(std::size_t state) {
  std::string name;
  for (std::size_t i = 0; i < kTypes.size(); i++) {
    if (state >> i & 1) name += (name.empty() ? "" : " overlapping ") + std::string(to_string(kTypes[i]));
  }
  return name;
}

Table type_table(const std::map<std::string, double>& times) {
  Table table{.name = "types",
              .columns = {words("kernel_type", "What ran at the same time"), number("sum", "Time of all ranks, us"),
                          number("percentage", "Of the busy time")}};
  std::vector<std::pair<std::string, double>> sorted(times.begin(), times.end());
  std::stable_sort(sorted.begin(), sorted.end(), [](const auto& a, const auto& b) { return a.second > b.second; });
  double all = 0;
  for (const auto& [name, time] : sorted) all += time;
  for (const auto& [name, time] : sorted) table.rows.push_back({name, time, real(rounded(time / all * 100, 1))});
  return table;
}

struct Line {
  std::string_view type;
  NameGroup group;
  std::int64_t rank;
};

Table kernel_table(std::vector<Line> lines) {
  std::stable_sort(lines.begin(), lines.end(), [](const Line& a, const Line& b) {
    return std::tie(a.type, a.group.name, a.rank) < std::tie(b.type, b.group.name, b.rank);
  });
  Table table{.name = "kernels",
              .columns = {words("name", "Kernel"), number("sum (us)", "Sum of durations"),
                          number("max (us)", "Longest; of others: largest sum"),
                          number("min (us)", "Shortest; of others: smallest sum"),
                          number("stddev", "Standard deviation of the sample"),
                          number("mean (us)", "Mean; of others: mean sum"), words("kernel_type", "Type"),
                          whole("rank", "Rank")}};
  for (const auto& [type, group, rank] : lines) {
    table.rows.push_back({group.name, group.sum, group.max, group.min, group.std, group.mean, std::string(type), rank});
  }
  return table;
}

Result<Answer> run_gpu_kernel_breakdown(const Input& input) {
  const std::size_t types = input.flag("include_memory_kernels") ? 3 : 2;
  std::map<std::string, double> times;
  std::vector<Line> lines;
  for (const EventTable& table : input.tables().ranks) {
    const std::vector<Row> device = table.device_rows();
    std::vector<std::vector<Span>> unions;
    for (std::size_t i = 0; i < types; i++) {
      const std::vector<Row> rows = of_type(table, device, kTypes[i]);
      unions.push_back(merged(rows));
      for (NameGroup& group :
           by_name(table, rows, static_cast<std::size_t>(input.number("num_kernels")), input.number("duration_ratio")))
        lines.push_back({to_string(kTypes[i]), std::move(group), table.rank()});
    }
    const Sweep swept = sweep(unions);
    for (std::size_t state = 1; state < swept.time.size(); state++) {
      if (swept.seen[state]) times[state_name(state)] += swept.time[state];
    }
  }
  Answer answer;
  answer.tables = {type_table(times), kernel_table(std::move(lines))};
  return answer;
}

}  // namespace

Analysis gpu_kernel_breakdown_analysis() {
  return {"gpu_kernel_breakdown", "Which kernels take the device's time?", run_gpu_kernel_breakdown};
}

}  // namespace stepscope::compat::hta
