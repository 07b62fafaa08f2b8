// overview: the first screen. Step time, what the time of the device goes to, phases, the heaviest families, kernels
// and operators. Everything here has an analysis of its own with more detail.
//
// The headline is about the whole steps when every rank has at least two, else about the span; `window` says which.
#include <algorithm>
#include <map>

#include "analyze/analysis.h"
#include "analyze/overview/verdict.h"
#include "model/answer_parts.h"
#include "model/kernel_groups.h"
#include "model/op_calls.h"
#include "model/step_parts.h"

namespace stepscope::analyze {
namespace {

constexpr std::size_t kTop = 10;

struct RankView {
  const RankTime& time;
  std::vector<StepTimes> steps;
  std::vector<std::int64_t> walls;  // of whole steps, sorted
};

using overview::Parts;

Parts host_parts(const RankView& rank) {
  Parts parts;
  for (std::size_t part = 0; part < kStepParts; part++) {
    std::int64_t sum = 0;
    for (const StepTimes& step : rank.steps) sum += step.parts[part];
    parts.emplace_back(std::string(to_string(static_cast<StepPart>(part))), sum);
  }
  return parts;
}

Table breakdown_table(const std::vector<RankView>& ranks, bool steps) {
  Table table{
      .name = "breakdown",
      .columns = {
          {"rank", ValueType::integer, Unit::none, "Rank"},
          {"device", ValueType::integer, Unit::none, "Device of the rank; unknown: none, the parts are of the host"},
          {"part", ValueType::text, Unit::none,
           "Each instant of the window belongs to the first part that fits; communication exposed: no compute ran"},
          {"time_ns", ValueType::integer, Unit::ns, "Time of the window in this part"},
          {"share", ValueType::real, Unit::ratio, "Share of the window"}}};
  const auto add = [&](std::int64_t rank, const Value& device, const Parts& parts) {
    std::int64_t whole = 0;
    for (const auto& part : parts) whole += part.second;
    for (const auto& [name, ns] : parts) {
      if (ns > 0) table.rows.push_back({rank, device, name, ns, share(ns, whole)});
    }
  };
  for (const RankView& rank : ranks) {
    for (const DeviceTime& device : rank.time.devices) {
      const Intervals window = steps ? device.steps : make_intervals({device.span});
      add(rank.time.rank, device.device < 0 ? Value() : Value(std::int64_t{device.device}),
          overview::device_parts(*rank.time.trace, device, window));
    }
    if (rank.time.devices.empty()) add(rank.time.rank, Value(), host_parts(rank));
  }
  return table;
}

Table phases_table(const std::vector<RankView>& ranks) {
  Table table{.name = "phases",
              .columns = {{"rank", ValueType::integer, Unit::none, "Rank"},
                          {"phase", ValueType::text, Unit::none, "Phase; other: in no phase that could be recognized"},
                          {"host_ns", ValueType::integer, Unit::ns,
                           "Mean per step: wall time in which a host thread was in this phase"},
                          {"device_ns", ValueType::integer, Unit::ns,
                           "Mean per step: time in which device work of this phase ran; unknown without device work"}}};
  for (const RankView& rank : ranks) {
    PhaseTimes host{}, device{};
    std::int64_t steps = 0;
    const bool whole_only = rank.time.whole_steps > 0;
    for (const StepTimes& step : rank.steps) {
      if (whole_only && rank.time.trace->steps[step.step].partial) continue;
      for (std::size_t i = 0; i < kPhases; i++) {
        host[i] += step.host_phases[i];
        device[i] += step.device_phases[i];
      }
      steps++;
    }
    for (std::size_t i = 0; i < kPhases && steps > 0; i++) {
      if (host[i] == 0 && device[i] == 0) continue;
      table.rows.push_back({rank.time.rank, std::string(to_string(static_cast<Phase>(i))), host[i] / steps,
                            rank.time.devices.empty() ? Value() : Value(device[i] / steps)});
    }
  }
  return table;
}

// Sums of several ranks under one name, heaviest first.
struct Sum {
  std::int64_t ns = 0, count = 0, host_ns = 0;
};
using Sums = std::map<std::pair<std::string, std::string>, Sum>;

using NamedSum = std::pair<Sums::key_type, Sum>;

std::vector<NamedSum> heaviest(const Sums& sums, std::size_t wanted) {
  std::vector<NamedSum> sorted(sums.begin(), sums.end());
  std::stable_sort(sorted.begin(), sorted.end(), [](const auto& a, const auto& b) {
    return std::pair(a.second.ns, a.second.host_ns) > std::pair(b.second.ns, b.second.host_ns);
  });
  sorted.resize(std::min(wanted, sorted.size()));
  return sorted;
}

Table top_work(const std::vector<RankView>& ranks, KernelKey key, std::string_view name, std::size_t wanted) {
  Sums sums;
  std::int64_t whole = 0;
  for (const RankView& rank : ranks) {
    const Trace& trace = *rank.time.trace;
    for (const DeviceTime& device : rank.time.devices) {
      whole += device.work_ns;
      for (const KernelGroup& group : kernel_groups(trace, device.rows, key)) {
        const ClassRule* rule = rule_of(trace, group.example);
        const auto found = std::min<std::size_t>(trace.device.device_class[group.example], kDeviceClasses - 1);
        const std::string family = rule == nullptr ? "unclassified" : rule->family;
        Sum& sum = key == KernelKey::rule ? sums[{family, std::string(to_string(static_cast<DeviceClass>(found)))}]
                                          : sums[{std::string(trace.name(trace.device.slice[group.example])), family}];
        sum.ns += group.total_ns;
        sum.count += static_cast<std::int64_t>(group.count);
      }
    }
  }
  const bool families = key == KernelKey::rule;
  Table table{.name = std::string(name),
              .columns = {{families ? "family" : "name", ValueType::text, Unit::none,
                           families ? "Family of device work" : "Kernel, copy or fill"},
                          {families ? "class" : "family", ValueType::text, Unit::none,
                           families ? "Class of device work" : "Its family"},
                          {"count", ValueType::integer, Unit::count, "How often, over all ranks"},
                          {"total_ns", ValueType::integer, Unit::ns, "Sum of durations over all ranks"},
                          {"share", ValueType::real, Unit::ratio, "Share of all summed device work"}}};
  for (const auto& [names, sum] : heaviest(sums, wanted)) {
    table.rows.push_back({names.first, names.second, sum.count, sum.ns, share(sum.ns, whole)});
  }
  return table;
}

Table top_operators(const Run& run, std::size_t wanted) {
  Sums sums;
  bool device_work = false;
  for (const Trace& trace : run.traces) {
    device_work |= !work_by_start(trace).empty();
    const OpCalls calls = op_calls(trace);
    for (const OpTotal& total : op_totals(trace, calls, keys_by_name(trace, calls))) {
      Sum& sum = sums[{std::string(trace.strings[static_cast<StringId>(total.key)]), ""}];
      sum.ns += total.device_self_ns;
      sum.host_ns += total.host_self_ns;
      sum.count += static_cast<std::int64_t>(total.calls);
    }
  }
  Table table{.name = "top_operators",
              .columns = {{"name", ValueType::text, Unit::none, "Operator"},
                          {"calls", ValueType::integer, Unit::count, "How often, over all ranks"},
                          {"device_self_ns", ValueType::integer, Unit::ns,
                           "Time of the device work that it launched itself; unknown without device work"},
                          {"host_self_ns", ValueType::integer, Unit::ns, "Host time without what it called"}}};
  for (const auto& [names, sum] : heaviest(sums, wanted)) {
    table.rows.push_back({names.first, sum.count, device_work ? Value(sum.ns) : Value(), sum.host_ns});
  }
  return table;
}

// Of kernels alone, communication included: what tools show that leave copies out.
struct KernelTime {
  std::int64_t sum_ns = 0, busy_ns = 0, span_ns = 0;
};

KernelTime kernel_time(const Trace& trace, const DeviceTime& device) {
  KernelTime out;
  std::vector<Interval> kernels;
  for (const std::uint32_t row : device.rows) {
    const SliceId slice = trace.device.slice[row];
    if (trace.kind(slice) != SliceKind::kernel) continue;
    kernels.push_back({trace.slices.start_ns[slice], trace.slices.end_ns(slice)});
    out.sum_ns += trace.slices.dur_ns[slice];
  }
  const Intervals busy = make_intervals(std::move(kernels));
  out.busy_ns = length(busy);
  if (!busy.empty()) out.span_ns = busy.back().end - busy.front().start;
  return out;
}

Table devices_table(const Run& run, const std::vector<RankView>& ranks) {
  Table table{.name = "devices",
              .columns = {{"rank", ValueType::integer, Unit::none, "Rank"},
                          {"device", ValueType::integer, Unit::none, "Device of the rank"},
                          {"name", ValueType::text, Unit::none, "Name as recorded"},
                          {"sm_count", ValueType::integer, Unit::count, "Streaming multiprocessors (compute units)"},
                          {"memory_bytes", ValueType::integer, Unit::bytes, "Memory of the device"},
                          {"span_ns", ValueType::integer, Unit::ns, "First start to last end of its work"},
                          {"busy_span_ns", ValueType::integer, Unit::ns, "Time in which some stream had work"},
                          {"kernel_ns", ValueType::integer, Unit::ns, "Sum of kernel durations"},
                          {"kernel_busy_ns", ValueType::integer, Unit::ns, "Time in which some kernel ran"},
                          {"kernel_span_ns", ValueType::integer, Unit::ns,
                           "First start to last end of its kernels; copies and fills may lie outside"}}};
  for (std::size_t i = 0; i < ranks.size(); i++) {
    for (const DeviceTime& device : ranks[i].time.devices) {
      const auto& infos = run.traces[i].devices;
      const auto info =
          std::find_if(infos.begin(), infos.end(), [&](const DeviceInfo& d) { return d.id == device.device; });
      const bool known = info != infos.end();
      const KernelTime kernels = kernel_time(run.traces[i], device);
      table.rows.push_back(
          {device.rank, device.device < 0 ? Value() : Value(std::int64_t{device.device}),
           known ? text(info->name) : Value(), known && info->sm_count > 0 ? Value(info->sm_count) : Value(),
           known && info->memory_bytes > 0 ? Value(info->memory_bytes) : Value(), device.span.end - device.span.start,
           length(device.busy), kernels.sum_ns, kernels.busy_ns, kernels.span_ns});
    }
  }
  return table;
}

std::int64_t class_in(const DeviceTime& device, DeviceClass wanted, const Intervals& window) {
  return shared_length(device.of(wanted), window);
}
std::int64_t hidden_in(const DeviceTime& device, const Intervals& window) {
  return shared_length(intersect(device.of(DeviceClass::communication), device.of(DeviceClass::compute)), window);
}

void add_device_scalars(Answer& answer, const std::vector<RankTime>& times) {
  add_window_lengths(answer, times);
  add_window_scalars(answer, times, "busy", "Time in which some stream of the device had work", busy_in);
  add_window_scalars(answer, times, "idle", "Time in which no stream of the device had work",
                     [](const DeviceTime& d, const Intervals& window) { return length(window) - busy_in(d, window); });
  add_window_scalars(
      answer, times, "compute", "Union of compute kernels",
      [](const DeviceTime& d, const Intervals& window) { return class_in(d, DeviceClass::compute, window); });
  add_window_scalars(
      answer, times, "communication", "Union of communication on the device",
      [](const DeviceTime& d, const Intervals& window) { return class_in(d, DeviceClass::communication, window); });
  add_window_scalars(answer, times, "communication_exposed", "Communication while no compute ran",
                     [](const DeviceTime& d, const Intervals& window) {
                       return class_in(d, DeviceClass::communication, window) - hidden_in(d, window);
                     });
  add_window_ratios(
      answer, times, "communication_hidden_ratio", "communication_hidden_ratio_steps",
      "Share of communication that compute hides; unknown without communication", hidden_in,
      [](const DeviceTime& d, const Intervals& window) { return class_in(d, DeviceClass::communication, window); });
  add_window_ratios(answer, times, "gpu_utilization_span", "gpu_utilization_steps", "Busy time over the window",
                    busy_in, window_length);
}

void add_headline(Answer& answer, const std::vector<RankView>& ranks, bool steps) {
  std::vector<std::int64_t> walls;
  for (const RankView& rank : ranks) walls.insert(walls.end(), rank.walls.begin(), rank.walls.end());
  std::sort(walls.begin(), walls.end());
  const bool known = !walls.empty();
  add_scalar(answer, "window", std::string(steps ? "steps" : "span"), Unit::none,
             steps ? "The breakdown is about the whole steps, each up to the end of its device work"
                   : "The breakdown is about the whole recording: fewer than two whole steps were found");
  add_scalar(answer, "rank_count", static_cast<std::int64_t>(ranks.size()), Unit::count, "Ranks opened");
  add_scalar(answer, "whole_step_count", static_cast<std::int64_t>(walls.size()), Unit::count,
             "Whole steps of all ranks");
  add_scalar(answer, "step_time_median_ns", to_value(median(walls)), Unit::ns,
             known ? "Median wall time of the whole steps of all ranks" : kNoSteps);
  add_scalar(answer, "step_time_spread", step_spread(walls), Unit::ratio,
             walls.size() >= 2
                 ? "Half the distance between the 10th and 90th percentile of the step times, over the median"
                 : "Needs two whole steps");
}

void add_notes(Answer& answer, const Run& run, bool device_work) {
  if (run.traces.empty()) {
    answer.notes.push_back(
        "Only the device's memory was opened, which says nothing of time: see the answer snapshot. Give a trace of the "
        "same job as well.");
    return;
  }
  if (std::all_of(run.traces.begin(), run.traces.end(), [](const Trace& trace) { return trace.only_graph(); })) {
    answer.notes.push_back(
        "An execution trace says what depends on what, not when it ran. Give the profiler's trace of the same steps as "
        "well to see times.");
    return;
  }
  for (const Trace& trace : timelines(run)) {
    if (trace.step_source.empty()) continue;
    const std::string note = steps_note(trace.step_source);
    if (std::find(answer.notes.begin(), answer.notes.end(), note) == answer.notes.end()) answer.notes.push_back(note);
  }
  if (!device_work) {
    answer.notes.push_back(std::string(kNoDeviceWork));
    answer.notes.push_back("The breakdown shows what the host did, over all steps.");
  }
}

Result<Answer> run_overview(const Run& run, const AnalyzeOptions& options) {
  if (auto derived = require_derived(run); !derived) return fail(derived.error());
  Answer answer;
  const std::size_t top = options.max_rows > 0 ? options.max_rows : kTop;
  Table operators = top_operators(run, top);  // first: it takes most memory, and nothing else is held yet
  std::vector<RankView> ranks;
  std::vector<RankTime> times = rank_times(run);
  for (const RankTime& time : times) {
    RankView view{.time = time, .steps = step_times(*time.trace, time)};
    view.walls = whole_walls(*time.trace, view.steps);
    ranks.push_back(std::move(view));
  }
  const bool steps = headline_is_steps(times), device_work = has_device_work(times);
  add_headline(answer, ranks, steps);
  add_device_scalars(answer, times);
  answer.tables = {breakdown_table(ranks, steps), phases_table(ranks)};
  if (device_work) {
    answer.tables.push_back(devices_table(run, ranks));
    answer.tables.push_back(top_work(ranks, KernelKey::rule, "top_families", top));
    answer.tables.push_back(top_work(ranks, KernelKey::name, "top_kernels", top));
  }
  answer.tables.push_back(std::move(operators));
  if (auto largest = overview::verdict(times, steps)) answer.findings.push_back(*std::move(largest));
  add_notes(answer, run, device_work);
  return answer;
}

}  // namespace

Analysis overview_analysis() { return {"overview", "Where does the time of a step go?", run_overview}; }

}  // namespace stepscope::analyze
