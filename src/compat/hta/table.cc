#include "compat/hta/table.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <set>

namespace stepscope::compat::hta {
namespace {

constexpr std::size_t kMostCopies = 16;  // HTA repeats device rows whose correlation several calls share

// What Python makes of the file's text: the double next to the decimal number.
double microseconds(std::int64_t ns) {
  const std::int64_t whole = ns / 1000, rest = ns % 1000;
  return static_cast<double>(whole) + static_cast<double>(rest) / 1000.0;
}

bool is_device_side(const Trace& trace, const Row& row) {
  if (row.stream >= 0 && row.correlation >= 0) return true;
  const std::string_view name = trace.name(static_cast<SliceId>(row.index));
  return name == "Event Sync" || name == "Context Sync";
}

bool has_fractions(const Trace& trace) {
  const auto& starts = trace.slices.start_ns;
  return std::any_of(starts.begin(), starts.end(), [](std::int64_t ns) { return ns % 1000 != 0; });
}

void round_inwards(Row& row) {
  const double end = std::floor(row.ts + row.dur);
  row.ts = std::ceil(row.ts);
  row.dur = end - row.ts;
}

std::vector<Row> events_with_category(const Trace& trace) {
  const Slices& slices = trace.slices;
  const bool round = has_fractions(trace);
  std::vector<Row> rows;
  rows.reserve(slices.size());
  for (std::size_t i = 0; i < slices.size(); i++) {
    const CategoryId category = slices.category[i];
    if (category == CategoryId::none || slices.name[i] == StringId::none) continue;
    if (trace.strings[trace.categories[static_cast<std::size_t>(category)].name] == "Trace") continue;
    Row row;
    row.index = static_cast<std::uint32_t>(i);
    row.ts = microseconds(slices.start_ns[i]);
    row.dur = microseconds(slices.dur_ns[i]);
    if (round) round_inwards(row);
    rows.push_back(row);
  }
  return rows;
}

// Sets one column of the rows from a table of details; both are sorted by slice.
template <class Details, class Set>
void join(std::vector<Row>& rows, const Details& details, Set set) {
  std::size_t at = 0;
  for (std::size_t i = 0; i < details.size(); i++) {
    const auto slice = static_cast<std::uint32_t>(details.slice[i]);
    while (at < rows.size() && rows[at].index < slice) at++;
    if (at < rows.size() && rows[at].index == slice) set(rows[at], i);
  }
}

std::int64_t or_none(std::int64_t value) { return value == kAbsent ? kNone : value; }

// Correlation id and row, by correlation, then row.
using Links = std::vector<std::pair<std::int64_t, std::uint32_t>>;

std::span<const Links::value_type> links_of(const Links& links, std::int64_t correlation) {
  const auto first = std::lower_bound(links.begin(), links.end(), Links::value_type{correlation, 0});
  auto last = first;
  while (last != links.end() && last->first == correlation) last++;
  return {first, last};
}

void link_partners(const Trace& trace, std::vector<Row>& rows) {
  Links host, device;
  for (std::uint32_t i = 0; i < rows.size(); i++) {
    rows[i].index_correlation = std::min<std::int64_t>(rows[i].correlation, 0);
    if (rows[i].correlation == kNone) continue;
    (is_device_side(trace, rows[i]) ? device : host).emplace_back(rows[i].correlation, i);
  }
  std::sort(host.begin(), host.end());
  std::sort(device.begin(), device.end());
  const auto connect = [&](const Links& from, const Links& to) {  // of several partners the last one counts
    for (const auto& [correlation, row] : from) {
      const auto partners = links_of(to, correlation);
      if (!partners.empty()) rows[row].index_correlation = rows[partners.back().second].index;
    }
  };
  connect(host, device);
  connect(device, host);
}

struct StepRange {
  double start, end;
  std::int64_t step;
};

void find_iterations(const Trace& trace, std::vector<Row>& rows) {
  std::vector<StepRange> steps;
  for (const Row& row : rows) {
    const std::int64_t step = profiler_step(trace.name(static_cast<SliceId>(row.index)));
    if (step >= 0) steps.push_back({row.ts, row.end(), step});
  }
  const auto step_at = [&](double ts) {
    const auto inside = std::find_if(steps.rbegin(), steps.rend(),
                                     [&](const StepRange& step) { return step.start <= ts && ts < step.end; });
    return inside == steps.rend() ? kNone : inside->step;
  };
  std::vector<std::uint32_t> row_of(trace.slices.size(), 0);
  for (std::uint32_t i = 0; i < rows.size(); i++) {
    Row& row = rows[i];
    row_of[row.index] = i;
    const bool host =
        row.stream < 0 || (row.stream == 0 && trace.kind(static_cast<SliceId>(row.index)) == SliceKind::cpu_op);
    row.iteration = host ? step_at(row.ts) : kNoIteration;
  }
  for (Row& row : rows) {
    if (row.stream <= 0) continue;
    row.iteration =
        row.index_correlation > 0 ? rows[row_of[static_cast<std::size_t>(row.index_correlation)]].iteration : kNone;
  }
}

struct Steps {
  double last_start = -INFINITY, last_end = -INFINITY;
};

// Start and end of the last profiler step among the host rows; HTA forgets to align the end.
Steps last_step(const Trace& trace, const std::vector<Row>& rows, double min_ts) {
  Steps found;
  double earliest = INFINITY, latest = -INFINITY;
  bool any = false;
  for (const Row& row : rows) {
    if (is_device_side(trace, row)) continue;
    earliest = std::min(earliest, row.ts);
    latest = std::max(latest, row.end() + min_ts);
    if (profiler_step(trace.name(static_cast<SliceId>(row.index))) < 0) continue;
    any = true;
    found.last_start = std::max(found.last_start, row.ts);
    found.last_end = std::max(found.last_end, row.end() + min_ts);
  }
  return any ? found : Steps{earliest, latest};
}

// Host rows of the steps wanted, after the device rows that they launched.
Result<std::vector<Row>> of_whole_steps(const Trace& trace, const std::vector<Row>& rows, double min_ts,
                                        bool include_last_step) {
  const Steps last = last_step(trace, rows, min_ts);
  std::vector<Row> host;
  std::vector<std::int64_t> correlations;
  for (const Row& row : rows) {
    if (is_device_side(trace, row)) continue;
    if (include_last_step ? row.ts <= last.last_end : row.ts < last.last_start) {
      host.push_back(row);
      correlations.push_back(row.correlation);
    }
  }
  std::sort(correlations.begin(), correlations.end());
  std::vector<Row> kept;
  for (const Row& row : rows) {
    if (!is_device_side(trace, row)) continue;
    const auto [first, end] = std::equal_range(correlations.begin(), correlations.end(), row.correlation);
    kept.insert(kept.end(), static_cast<std::size_t>(end - first), row);
    if (kept.size() > kMostCopies * rows.size()) {
      return fail({ErrorKind::too_large,
                   "many calls share one correlation id, for which HTA's table grows beyond all bounds",
                   trace.source.path, std::nullopt, "Use the ordinary report, which does not repeat device rows"});
    }
  }
  kept.insert(kept.end(), host.begin(), host.end());
  return kept;
}

}  // namespace

std::int64_t profiler_step(std::string_view name) {
  constexpr std::string_view start = "ProfilerStep#";
  if (!name.starts_with(start)) return kNone;
  std::int64_t step = kNone;
  std::from_chars(name.data() + start.size(), name.data() + name.size(), step);
  return step;
}

EventTable::EventTable(const Trace& trace, std::vector<Row> rows)
    : trace_(&trace), rows_(std::move(rows)), row_of_(trace.slices.size(), UINT32_MAX) {
  for (std::size_t i = rows_.size(); i-- > 0;) row_of_[rows_[i].index] = static_cast<std::uint32_t>(i);
  types_.reserve(trace.strings.size());
  for (std::size_t i = 0; i < trace.strings.size(); i++)
    types_.push_back(kernel_type(trace.strings[static_cast<StringId>(i)]));
}

std::string_view EventTable::category(const Row& row) const {
  return trace_->strings[trace_->categories[static_cast<std::size_t>(trace_->slices.category[row.index])].name];
}

const Row* EventTable::at(std::int64_t index) const {
  if (index < 0 || static_cast<std::size_t>(index) >= row_of_.size()) return nullptr;
  const std::uint32_t row = row_of_[static_cast<std::size_t>(index)];
  return row == UINT32_MAX ? nullptr : &rows_[row];
}

std::vector<Row> EventTable::device_rows() const {
  std::vector<Row> found;
  std::copy_if(rows_.begin(), rows_.end(), std::back_inserter(found),
               [](const Row& row) { return row.stream != kNone; });
  return found;
}

double EventTable::duration() const {
  const auto [first, last] =
      std::minmax_element(rows_.begin(), rows_.end(), [](const Row& a, const Row& b) { return a.ts < b.ts; });
  return rows_.empty() ? 0 : last->ts - first->ts;
}

std::vector<Row> parsed_rows(const Trace& trace) {
  std::vector<Row> rows = events_with_category(trace);
  join(rows, trace.launches,
       [&](Row& row, std::size_t i) { row.correlation = or_none(trace.launches.correlation[i]); });
  join(rows, trace.ops, [&](Row& row, std::size_t i) { row.stream = or_none(trace.ops.stream[i]); });
  join(rows, trace.device, [&](Row& row, std::size_t i) {
    row.correlation = or_none(trace.device.correlation[i]);
    row.stream = or_none(trace.device.stream[i]);
  });
  link_partners(trace, rows);
  find_iterations(trace, rows);
  return rows;
}

Result<std::shared_ptr<const Tables>> make_tables(const Run& run, bool include_last_step) {
  auto tables = std::make_shared<Tables>();
  std::vector<std::vector<Row>> parsed;
  std::set<std::string_view> steps;  // all ranks together decide whether there is a last step to drop
  double min_ts = INFINITY;
  for (const Trace& trace : run.traces) {
    parsed.push_back(parsed_rows(trace));
    for (const Row& row : parsed.back()) {
      min_ts = std::min(min_ts, row.ts);
      const std::string_view name = trace.name(static_cast<SliceId>(row.index));
      if (profiler_step(name) >= 0) steps.insert(name);
    }
  }
  tables->min_ts = std::isfinite(min_ts) ? min_ts : 0;
  for (std::size_t i = 0; i < parsed.size(); i++) {
    const Trace& trace = run.traces[i];
    for (Row& row : parsed[i]) row.ts -= tables->min_ts;
    if (steps.size() > 1) {
      auto kept = of_whole_steps(trace, parsed[i], tables->min_ts, include_last_step);
      if (!kept) return fail(kept.error());
      parsed[i] = *std::move(kept);
    }
    tables->ranks.emplace_back(trace, std::move(parsed[i]));
  }
  return tables;
}

}  // namespace stepscope::compat::hta
