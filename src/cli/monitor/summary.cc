#include "cli/monitor/summary.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <vector>

#include "report/format.h"

namespace stepscope::cli {
namespace {

enum class Course { changed, constant, zero };

// Of a gauge its level, of a counter its rate between one sample and the next.
struct Level {
  double mean = 0, low = 0, high = 0;
};

bool is_counter(const run::Series& series) { return series.about.kind == run::SeriesKind::counter; }

// Of a counter one sample says nothing.
bool is_known(const run::Series& series) {
  return !is_counter(series) || series.samples.back().t_ns > series.samples.front().t_ns;
}

Level level_of(const run::Series& series) {
  std::vector<double> values;
  for (std::size_t i = 0; i < series.samples.size(); i++) {
    if (!is_counter(series)) values.push_back(series.samples[i].value);
    if (is_counter(series) && i > 0) {
      values.push_back(run::rate_between(series.about, series.samples[i - 1], series.samples[i]));
    }
  }
  const auto [low, high] = std::minmax_element(values.begin(), values.end());
  double sum = 0;
  for (const double value : values) sum += value;
  const double mean = is_counter(series)
                          ? run::rate_between(series.about, series.samples.front(), series.samples.back())
                          : sum / static_cast<double>(values.size());
  return {mean, *low, *high};
}

Course course_of(const Level& level, const run::Series& series) {
  const bool grew = is_counter(series) && level.high > 0;  // at a steady rate too
  if (level.low != level.high || grew) return Course::changed;
  return level.low == 0 && series.samples.size() > 1 ? Course::zero : Course::constant;
}

std::string amount(double value, const run::SeriesAbout& about) {
  const bool rate = about.kind == run::SeriesKind::counter;
  if (about.unit == "bytes") return report::format_bytes(value) + (rate ? "/s" : "");
  if (about.unit == "bytes/s" && !rate) return report::format_bytes(value) + "/s";
  if (about.unit == "ratio" && !rate) return report::format_percent(value);
  if (about.unit == "uJ" && rate) return fmt::format("{:.4g} W", value / 1e6);
  if (about.unit == "hertz" && !rate) {
    return value < 1e9 ? fmt::format("{:.4g} MHz", value / 1e6) : fmt::format("{:.4g} GHz", value / 1e9);
  }
  if (about.unit == "count") return fmt::format("{:.4g}{}", value, rate ? " /s" : "");
  return fmt::format("{:.4g} {}", value, rate ? run::rate_unit(about.unit) : about.unit);
}

Table empty_table() {
  return {.name = "sampled",
          .columns = {{"of", ValueType::text, Unit::none, "Rank, process, device or the host"},
                      {"series", ValueType::text, Unit::none, "What was sampled"},
                      {"mean", ValueType::text, Unit::none, "Level; of a counter its rate"},
                      {"highest", ValueType::text, Unit::none, "Of the samples"}},
          .rows = {}};
}

// As a line that can be pasted whole, so it is not broken.
std::string zeros_text(std::size_t zeros, const std::string& folder) {
  return fmt::format(
      "{} series stayed 0: stepscope query {} \"select target, name from samples group by 1, 2 having "
      "max(abs(value)) = 0 and count(*) > 1\"\n",
      zeros, folder);
}

}  // namespace

std::string sampled_summary(const run::Samples& samples, const std::string& folder, const report::TextStyle& style) {
  Table table = empty_table();
  std::vector<std::vector<Value>> constants;
  std::size_t zeros = 0;
  for (const run::Series& series : samples.series) {
    const run::SeriesAbout& about = series.about;
    if (!is_known(series)) {
      constants.push_back({about.target, about.name, "one sample only", ""});
      continue;
    }
    const Level level = level_of(series);
    const Course course = course_of(level, series);
    zeros += course == Course::zero;
    if (course == Course::changed) {
      table.rows.push_back({about.target, about.name, amount(level.mean, about), amount(level.high, about)});
    } else if (course == Course::constant) {
      constants.push_back(
          {about.target, about.name, amount(level.mean, about), series.samples.size() > 1 ? "constant" : "one sample"});
    }
  }
  table.rows.insert(table.rows.end(), constants.begin(), constants.end());
  std::string out = table.rows.empty() ? "" : report::table_text(table, style);
  if (zeros > 0) out += zeros_text(zeros, folder);
  if (samples.dropped > 0) out += fmt::format("The oldest {} samples made room for newer ones.\n", samples.dropped);
  return out;
}

}  // namespace stepscope::cli
