// trace_diff: counts and durations by name in two traces, HTA's TraceDiff. The control is what was given first; of each
// side HTA takes the first rank and the first profiler step.
#include <algorithm>
#include <map>
#include <optional>
#include <set>

#include "compat/compat.h"
#include "compat/hta/stats.h"

namespace stepscope::compat::hta {
namespace {

struct Totals {
  double count = 0, duration = 0;
};
struct Both {
  Totals control, test;
};

bool is_within(std::string_view path, std::string_view given) {
  if (!path.starts_with(given)) return false;
  return path.size() == given.size() || given.ends_with('/') || path[given.size()] == '/';
}

// The first profiler step of any kind that the trace names; unknown without steps.
std::optional<std::int64_t> first_step(const Trace& trace, const std::vector<Row>& rows) {
  std::optional<std::int64_t> first;
  for (const Row& row : rows) {
    const std::int64_t step = profiler_step(trace.name(static_cast<SliceId>(row.index)));
    if (step >= 0) first = std::min(first.value_or(step), step);
  }
  return first;
}

Result<std::map<std::string, Totals>> totals(const Trace& trace, const Input& input) {
  const std::vector<Row> rows = parsed_rows(trace);
  const auto step = first_step(trace, rows);
  if (!step) {
    return fail({ErrorKind::unsupported, "HTA compares profiler steps, and this trace has none", trace.source.path,
                 std::nullopt, "Compare it with `stepscope diff`"});
  }
  const std::string_view device = input.argument("device_type");
  const bool shorten = input.flag("use_short_name");
  std::map<std::string, Totals> out;
  for (const Row& row : rows) {
    if (row.iteration != *step) continue;
    if ((device == "CPU" && row.stream != kNone) || (device == "GPU" && row.stream == kNone)) continue;
    const std::string_view name = trace.name(static_cast<SliceId>(row.index));
    Totals& sum = out[shorten ? short_name(name) : std::string(name)];
    sum.count++;
    sum.duration += row.dur;
  }
  return out;
}

std::string_view change_of(const Both& both) {
  if (both.control.count == 0) return "added";
  if (both.test.count == 0) return "deleted";
  if (both.test.count == both.control.count) return "unchanged";
  return both.test.count > both.control.count ? "increased" : "decreased";
}

Table compared(const std::map<std::string, Both>& names) {
  Table out{.name = "compare_traces",
            .columns = {words("name", "Operator or kernel"), number("control_counts", "Calls in the control"),
                        number("control_total_duration", "Their duration, us"),
                        number("test_counts", "Calls in the test"), number("test_total_duration", "Their duration, us"),
                        number("diff_counts", "Test - control"), number("diff_duration", "Test - control, us"),
                        words("counts_change_categories", "+ more, - fewer, = as many calls"),
                        words("change", "added, deleted, increased, decreased or unchanged")}};
  for (const auto& [name, both] : names) {
    const double more = both.test.count - both.control.count;
    out.rows.push_back({name, both.control.count, both.control.duration, both.test.count, both.test.duration, more,
                        both.test.duration - both.control.duration,
                        std::string(more > 0   ? "+"
                                    : more < 0 ? "-"
                                               : "="),
                        std::string(change_of(both))});
  }
  return out;
}

Table counted(const std::map<std::string, Both>& names) {
  Table out{.name = "ops_diff", .columns = {words("change", "What happened to the calls"), whole("names", "Names")}};
  for (const std::string_view change : {"added", "deleted", "increased", "decreased", "unchanged"}) {
    const std::int64_t count =
        std::count_if(names.begin(), names.end(), [&](const auto& entry) { return change_of(entry.second) == change; });
    out.rows.push_back({std::string(change), count});
  }
  return out;
}

Result<Answer> run_trace_diff(const Input& input) {
  Answer answer;
  const Trace *control = nullptr, *test = nullptr;
  for (const Trace& trace : input.run().traces) {
    const Trace*& side = is_within(trace.source.path, input.run().path) ? control : test;
    if (side == nullptr) side = &trace;
  }
  if (control == nullptr || test == nullptr) {
    answer.notes.emplace_back("Needs two paths: first the control, then the test.");
    return answer;
  }
  std::map<std::string, Both> names;
  const auto of_control = totals(*control, input), of_test = totals(*test, input);
  if (!of_control) return fail(of_control.error());
  if (!of_test) return fail(of_test.error());
  for (const auto& [name, sum] : *of_control) names[name].control = sum;
  for (const auto& [name, sum] : *of_test) names[name].test = sum;
  answer.tables = {counted(names), compared(names)};
  return answer;
}

}  // namespace

Analysis trace_diff_analysis() {
  return {"trace_diff", "Which operators and kernels differ between two traces?", run_trace_diff};
}

}  // namespace stepscope::compat::hta
