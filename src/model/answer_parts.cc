#include "model/answer_parts.h"

#include <algorithm>
#include <cmath>

namespace stepscope {
namespace {

enum class Which { span, steps };

Intervals window_of(const DeviceTime& device, Which which) {
  return which == Which::steps ? device.steps : make_intervals({device.span});
}

struct Sum {
  std::int64_t value = 0;
  std::int64_t devices = 0;
};

Sum sum_over(const std::vector<RankTime>& ranks, Which which, const Measure& measure) {
  Sum sum;
  for (const RankTime& rank : ranks) {
    for (const DeviceTime& device : rank.devices) {
      if (which == Which::steps && device.steps.empty()) continue;
      sum.value += measure(device, window_of(device, which));
      sum.devices++;
    }
  }
  return sum;
}

std::string meaning_in(Which which, std::string_view meaning, const Sum& sum, bool device_work, std::string_view how) {
  if (!device_work) return std::string(kNoDeviceWork);
  if (sum.devices == 0) return std::string(kNoSteps);
  std::string out(meaning);
  out += which == Which::span ? ", from the first to the last device work" : ", inside the whole steps";
  if (sum.devices > 1) out += "; " + std::string(how) + " " + std::to_string(sum.devices) + " devices";
  return out;
}

void add_mean(Answer& answer, const std::vector<RankTime>& ranks, Which which, std::string_view name,
              std::string_view meaning, const Measure& measure) {
  const Sum sum = sum_over(ranks, which, measure);
  add_scalar(answer, name, sum.devices > 0 ? Value(sum.value / sum.devices) : Value(), Unit::ns,
             meaning_in(which, meaning, sum, has_device_work(ranks), "mean over"));
}

}  // namespace

Value value_if(bool known, std::int64_t number) { return known ? Value(number) : Value(); }

Value share(std::int64_t part, std::int64_t whole) {
  return whole > 0 ? Value(static_cast<double>(part) / static_cast<double>(whole)) : Value();
}

std::optional<std::int64_t> median(std::vector<std::int64_t> values) {
  std::sort(values.begin(), values.end());
  const auto middle = quantile(values, 0.5);
  return middle ? std::optional(static_cast<std::int64_t>(std::llround(*middle))) : std::nullopt;
}

void add_scalar(Answer& answer, std::string_view name, Value value, Unit unit, std::string_view meaning) {
  answer.scalars.push_back({std::string(name), std::move(value), unit, std::string(meaning)});
}

void add_window_scalars(Answer& answer, const std::vector<RankTime>& ranks, std::string_view name,
                        std::string_view meaning, const Measure& measure) {
  add_mean(answer, ranks, Which::span, std::string(name) + "_span_ns", meaning, measure);
  add_mean(answer, ranks, Which::steps, std::string(name) + "_steps_ns", meaning, measure);
}

void add_window_lengths(Answer& answer, const std::vector<RankTime>& ranks) {
  add_mean(answer, ranks, Which::span, "span_ns", "Length of the window span", window_length);
  add_mean(answer, ranks, Which::steps, "steps_ns",
           "Length of the window steps: each step up to the end of its device work", window_length);
}

void add_window_ratios(Answer& answer, const std::vector<RankTime>& ranks, std::string_view span_name,
                       std::string_view steps_name, std::string_view meaning, const Measure& part,
                       const Measure& whole) {
  for (const Which which : {Which::span, Which::steps}) {
    const Sum parts = sum_over(ranks, which, part);
    const Sum wholes = sum_over(ranks, which, whole);
    add_scalar(answer, which == Which::span ? span_name : steps_name, share(parts.value, wholes.value), Unit::ratio,
               meaning_in(which, meaning, parts, has_device_work(ranks), "of"));
  }
}

std::int64_t window_length(const DeviceTime&, const Intervals& window) { return length(window); }

std::int64_t busy_in(const DeviceTime& device, const Intervals& window) { return shared_length(device.busy, window); }

void limit_rows(Answer& answer, Table& table, std::size_t max_rows, std::string_view rest) {
  if (max_rows == 0 || table.rows.size() <= max_rows) return;
  answer.notes.push_back("Table " + table.name + " shows " + std::to_string(max_rows) + " of " +
                         std::to_string(table.rows.size()) + " rows; left out: " + std::string(rest) + ".");
  table.rows.resize(max_rows);
}

bool has_device_work(const std::vector<RankTime>& ranks) {
  return std::any_of(ranks.begin(), ranks.end(), [](const RankTime& r) { return !r.devices.empty(); });
}

Result<void> require_derived(const Run& run) {
  for (const Trace& trace : run.traces) {
    const std::size_t slices = trace.slices.size(), device = trace.device.size();
    const bool whole = trace.slices.parent.size() == slices && trace.slices.phase.size() == slices &&
                       trace.by_track.size() == slices && trace.track_begin.size() == trace.tracks.size() + 1 &&
                       trace.device.launch.size() == device && trace.device.op.size() == device &&
                       trace.device.device_class.size() == device && trace.device.rule.size() == device &&
                       trace.device.phase.size() == device;
    if (!whole) {
      return fail({.kind = ErrorKind::internal,
                   .message = "The trace was not linked before it was analyzed",
                   .file = trace.source.path});
    }
  }
  return {};
}

}  // namespace stepscope
