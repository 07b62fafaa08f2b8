#include "cli/live/machine.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <map>
#include <optional>

#include "cli/live/columns.h"
#include "report/format.h"
#include "run/manifest.h"
#include "run/samples.h"

namespace stepscope::cli {
namespace {

constexpr std::uint64_t kNewest = 20'000;          // records of a sampler: some seconds of a hundred series
constexpr std::int64_t kRecentNs = 3'000'000'000;  // that a rate is over
constexpr std::int64_t kStaleNs = 30'000'000'000;  // older values say nothing of now; clocks of hosts differ a little
constexpr std::size_t kWidth = 12;

// What stands in a column; of counters the rate.
struct Column {
  std::string_view head, collector, name;
  bool of_gpu = false;
};
constexpr std::array kColumns{Column{"cores", "cpu", "cpu_time"},
                              Column{"main", "cpu", "main_thread_time"},
                              Column{"no core", "cpu", "main_thread_wait"},
                              Column{"memory", "memory", "rss"},
                              Column{"read", "io", "read"},
                              Column{"written", "io", "written"},
                              Column{"gpu", "gpu", "gpu_utilization", true},
                              Column{"gpu mem", "gpu", "gpu_memory_used", true}};

using ByName = std::map<std::pair<std::string, std::string>, const run::Series*>;  // by target and name

// Over the last seconds; nullopt below two samples.
std::optional<double> rate_of(const run::Series& series) {
  const auto& samples = series.samples;
  const auto first = std::find_if(samples.begin(), samples.end(),
                                  [&](const run::Sample& one) { return one.t_ns >= samples.back().t_ns - kRecentNs; });
  if (first->t_ns >= samples.back().t_ns) return std::nullopt;
  return run::rate_between(series.about, *first, samples.back());
}

std::string shown(const run::Series& series) {
  const bool counts = series.about.kind == run::SeriesKind::counter;
  const auto value = counts ? rate_of(series) : std::optional(series.samples.back().value);
  if (!value) return std::string(report::kUnknown);
  if (series.about.unit == "ns") {
    return series.about.name == "cpu_time" ? fmt::format("{:.2f}", *value) : fmt::format("{:.0f} %", *value * 100);
  }
  if (series.about.unit == "ratio") return fmt::format("{:.0f} %", *value * 100);
  return report::format_bytes(*value) + (counts ? "/s" : "");
}

const run::Series* find(const ByName& known, const std::string& target, std::string_view name) {
  const auto at = known.find({target, std::string(name)});
  return at == known.end() ? nullptr : at->second;
}

// "gpu 3" or "amd gpu 3", as a collector of GPUs found this rank there; "": none did.
std::string gpu_of(const ByName& host, const std::string& rank) {
  const run::Series* const index = find(host, rank, "gpu_index");
  if (index == nullptr) return "";
  const char* const maker = index->about.collector == "amd_gpu" ? "amd " : "";
  return fmt::format("{}gpu {:.0f}", maker, index->samples.back().value);
}

// Empty where this host does not sample the rank.
std::string line_of(const ByName& host, std::int64_t rank, const std::array<bool, kColumns.size()>& used) {
  const std::string target = "rank " + std::to_string(rank);
  const std::string gpu = gpu_of(host, target);
  std::string line = right(std::to_string(rank), 5);
  bool any = false;
  for (std::size_t i = 0; i < kColumns.size(); i++) {
    if (!used[i]) continue;
    const run::Series* const series = find(host, kColumns[i].of_gpu ? gpu : target, kColumns[i].name);
    line += right(series == nullptr ? std::string(report::kUnknown) : shown(*series), kWidth);
    any |= series != nullptr;
  }
  return any ? line + "\n" : "";
}

}  // namespace

std::string machine_text(const std::string& run_folder, const std::vector<std::int64_t>& ranks) {
  std::vector<run::Samples> files;
  for (const std::string& path : run::sample_files(run_folder)) {
    if (auto samples = run::read_samples(path, kNewest)) files.push_back(std::move(*samples));
  }
  std::map<std::string, ByName> hosts;
  std::array<bool, kColumns.size()> used{};
  const std::int64_t oldest_ns = run::unix_now_ns() - kStaleNs;
  for (const run::Samples& file : files) {
    for (const run::Series& series : file.series) {
      const std::int64_t newest_ns = series.samples.back().t_ns;
      if (newest_ns < oldest_ns) continue;
      const run::Series*& known = hosts[file.host][{series.about.target, series.about.name}];
      if (known == nullptr || known->samples.back().t_ns < newest_ns) known = &series;  // else of a sampler that ended
      for (std::size_t i = 0; i < kColumns.size(); i++) used[i] |= series.about.name == kColumns[i].name;
    }
  }
  std::string head = " rank", lines;
  for (std::size_t i = 0; i < kColumns.size(); i++) {
    if (used[i]) head += right(std::string(kColumns[i].head), kWidth);
  }
  for (const std::int64_t rank : ranks) {
    for (const auto& [name, host] : hosts) lines += line_of(host, rank, used);
  }
  return lines.empty() ? "" : head + "\n" + lines;
}

}  // namespace stepscope::cli
