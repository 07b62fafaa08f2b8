// cuda_kernel_launch_stats: what each launch cost on the host and on the device, and how late the device started. Only
// the calls in kLaunches count; Triton's, CUTLASS's, HIP's and graphs' do not.
#include <algorithm>
#include <array>
#include <map>
#include <set>

#include "compat/compat.h"
#include "compat/hta/stats.h"

namespace stepscope::compat::hta {
namespace {

constexpr std::array<std::string_view, 5> kLaunches{"cudaLaunchKernel", "cudaLaunchKernelExC", "cudaMemcpyAsync",
                                                    "cudaMemsetAsync",
                                                    "runFunction - job_prep_and_submit_for_execution"};
constexpr std::size_t kMostPairs = 100;  // per device row, where many calls share one correlation id

struct Launch {
  std::int64_t correlation;
  double cpu, gpu, delay;
};

Result<std::vector<Launch>> launches(const EventTable& table) {
  std::set<std::int64_t> wanted;
  for (const Row& row : table.rows()) {
    if (row.correlation != kNone && std::find(kLaunches.begin(), kLaunches.end(), table.name(row)) != kLaunches.end())
      wanted.insert(row.correlation);
  }
  const std::vector<Row> device = table.device_rows();
  std::multimap<std::int64_t, const Row*> by_correlation;
  for (const Row& row : device) by_correlation.emplace(row.correlation, &row);
  std::vector<Launch> found;
  for (const Row& row : table.rows()) {
    if (row.stream != kNone || wanted.count(row.correlation) == 0) continue;
    const auto [first, last] = by_correlation.equal_range(row.correlation);
    for (auto it = first; it != last; ++it) {
      const Row& work = *it->second;
      found.push_back({row.correlation, row.dur, work.dur, std::max(0.0, work.ts - row.ts - row.dur)});
    }
    if (found.size() > kMostPairs * table.rows().size()) {
      return fail({ErrorKind::too_large, "many calls share one correlation id, and HTA would pair them all",
                   table.trace().source.path, std::nullopt, "Use the ordinary report"});
    }
  }
  return found;
}

Table summary_columns() {
  Table out{.name = "summary", .columns = {whole("rank", "Rank"), whole("n", "Launches")}};
  for (const std::string_view column : {"cpu_duration", "gpu_duration", "launch_delay"}) {
    for (const std::string_view what : {"sum", "mean", "max"})
      out.columns.push_back(number(std::string(column) + "/" + std::string(what), "us"));
  }
  out.columns.push_back(whole("short", "Calls within runtime_cutoff whose device work is shorter than the call"));
  out.columns.push_back(whole("runtime_outliers", "Calls longer than runtime_cutoff"));
  out.columns.push_back(whole("delay_outliers", "Delays longer than launch_delay_cutoff"));
  return out;
}

std::vector<Value> summary_of(const Input& input, std::int64_t rank, const std::vector<Launch>& launches) {
  std::vector<Value> row{rank, static_cast<std::int64_t>(launches.size())};
  for (const auto member : {&Launch::cpu, &Launch::gpu, &Launch::delay}) {
    std::vector<double> values;
    for (const Launch& launch : launches) values.push_back(launch.*member);
    row.emplace_back(sum_of(values));
    row.push_back(real(mean_of(values)));
    row.push_back(values.empty() ? Value() : Value(*std::max_element(values.begin(), values.end())));
  }
  const double cutoff = input.number("runtime_cutoff"), late = input.number("launch_delay_cutoff");
  const auto count = [&](auto wanted) -> std::int64_t {
    return std::count_if(launches.begin(), launches.end(), wanted);
  };
  row.emplace_back(count([&](const Launch& l) { return l.cpu <= cutoff && l.gpu < l.cpu; }));
  row.emplace_back(count([&](const Launch& l) { return l.cpu > cutoff; }));
  row.emplace_back(count([&](const Launch& l) { return l.delay > late; }));
  return row;
}

Result<Answer> run_cuda_kernel_launch_stats(const Input& input) {
  Answer answer;
  Table summary = summary_columns();
  Table all{.name = "launches",
            .columns = {whole("rank", "Rank"), whole("correlation", "Correlation id"),
                        number("cpu_duration", "Of the call, us"), number("gpu_duration", "Of the device work, us"),
                        number("launch_delay", "From the end of the call to the start of the work, at least 0, us")}};
  for (const EventTable& table : input.tables().ranks) {
    const auto found = launches(table);
    if (!found) return fail(found.error());
    summary.rows.push_back(summary_of(input, table.rank(), *found));
    for (const Launch& l : *found) all.rows.push_back({table.rank(), l.correlation, l.cpu, l.gpu, l.delay});
  }
  answer.tables = {std::move(summary), std::move(all)};
  return answer;
}

}  // namespace

Analysis cuda_kernel_launch_stats_analysis() {
  return {"cuda_kernel_launch_stats", "What do launches cost, and how late do kernels start?",
          run_cuda_kernel_launch_stats};
}

}  // namespace stepscope::compat::hta
