// overview: the numbers of the TensorBoard plugin's overview page. Each instant of a step goes to the first role in
// kRoles that has something running, so that the parts add up to the step; device numbers are over the time from the
// first step's start to the last one's end.
#include <algorithm>
#include <array>
#include <cmath>
#include <map>

#include "compat/compat.h"
#include "compat/tensorboard/events.h"

namespace stepscope::compat::tensorboard {
namespace {

using Parts = std::array<Ranges, 8>;

Parts split(const Events& events) {
  Ranges steps, open;
  for (const NamedStep& step : events.steps) steps.push_back(step.when);
  steps = united(std::move(steps));
  Parts parts;
  for (std::size_t role = 0; role < events.roles.size(); role++) {
    if (open.empty()) {  // at first, and again once all time was given out: so the plugin has it
      parts[role] = events.roles[role];
      open = steps;
    } else {
      parts[role] = common(open, events.roles[role]);
    }
    open = without(open, parts[role]);
  }
  parts[Role::other] = open;
  return parts;
}

TableColumn column(std::string_view name, ValueType type, std::string_view meaning) {
  return {std::string(name), type, Unit::none, std::string(meaning)};
}

Table step_columns() {
  Table table{.name = "steps",
              .columns = {column("rank", ValueType::integer, "Rank"), column("step", ValueType::text, "Step")}};
  for (const std::string_view role : kRoles) table.columns.push_back(column(role, ValueType::real, "us of the step"));
  table.columns.push_back(column("Total", ValueType::real, "Length of the step, us"));
  return table;
}

Table overlap_columns() {
  return {.name = "overlap",
          .columns = {column("rank", ValueType::integer, "Rank"), column("step", ValueType::text, "Step"),
                      column("computation", ValueType::real, "Kernels (operators without kernels), us"),
                      column("communication", ValueType::real, "Collectives, us"),
                      column("overlap", ValueType::real, "Both at once, us"),
                      column("other", ValueType::real, "Neither, us")}};
}

Table device_columns() {
  return {.name = "gpus",
          .columns = {column("rank", ValueType::integer, "Rank"), column("gpu", ValueType::integer, "Device"),
                      column("utilization", ValueType::real, "Time with a kernel / time of all steps"),
                      column("sm_efficiency", ValueType::real, "Time weighed by min(blocks per SM, 1)"),
                      column("occupancy", ValueType::real, "Estimated occupancy of kernels, percent"),
                      column("tensor_cores", ValueType::real, "Time of kernels with tensor cores / of all kernels")}};
}

void add_steps(std::int64_t rank, const Events& events, Table& steps, Table& overlaps) {
  const Parts parts = split(events);
  const Ranges& work = events.roles[events.roles[Role::kernel].empty() ? Role::cpu_exec : Role::kernel];
  const Ranges& talk = events.roles[Role::communication];
  for (const NamedStep& step : events.steps) {
    const Ranges when{step.when};
    const double length = step.when.end - step.when.start;
    std::vector<Value> row{rank, step.name};
    for (const Ranges& part : parts) row.emplace_back(total(common(when, part)));
    row.emplace_back(length);
    steps.rows.push_back(std::move(row));
    const double computing = total(common(when, work)), talking = total(common(when, talk));
    const double both = total(common(when, common(work, talk)));
    overlaps.rows.push_back({rank, step.name, computing, talking, both, length + both - computing - talking});
  }
}

// Blocks of kernels that run at once add up, to at most one per SM.
double sm_time(const std::vector<const Kernel*>& kernels, const Range& window) {
  struct End {
    double time, blocks;
  };
  std::vector<End> ends;
  for (const Kernel* const kernel : kernels) {
    if (!(kernel->blocks_per_sm > 0)) continue;
    ends.push_back({kernel->when.start, kernel->blocks_per_sm});
    ends.push_back({kernel->when.end, -kernel->blocks_per_sm});
  }
  std::stable_sort(ends.begin(), ends.end(), [](const End& a, const End& b) {
    return a.time != b.time ? a.time < b.time : a.blocks > 0 && b.blocks < 0;
  });
  double sum = 0, blocks = 0;
  for (std::size_t i = 0; i + 1 < ends.size(); i++) {
    blocks += ends[i].blocks;
    const double start = std::max(ends[i].time, window.start), end = std::min(ends[i + 1].time, window.end);
    if (start < end && blocks > 0) sum += std::min(blocks, 1.0) * (end - start);
  }
  return sum;
}

// Weighted by the part of each kernel that lies in the window.
Value occupancy(const std::vector<const Kernel*>& kernels, const Range& window) {
  double sum = 0, time = 0;
  for (const Kernel* const kernel : kernels) {
    const double part = std::min(kernel->when.end, window.end) - std::max(kernel->when.start, window.start);
    if (!(kernel->occupancy >= 0) || part <= 0) continue;
    sum += kernel->occupancy * part;
    time += part;
  }
  return time > 0 ? Value(sum / time) : Value();
}

void add_devices(std::int64_t rank, const Events& events, Table& devices) {
  std::map<std::int64_t, std::vector<const Kernel*>> by_device;
  for (const Kernel& kernel : events.kernels) by_device[kernel.device].push_back(&kernel);
  const Range window{events.steps.front().when.start, events.steps.back().when.end};
  const double length = window.end - window.start;
  for (const auto& [device, kernels] : by_device) {
    Ranges ranges;
    double all = 0, with_tensor_cores = 0;
    for (const Kernel* const kernel : kernels) {
      ranges.push_back(kernel->when);
      const double time = kernel->when.end - kernel->when.start;
      all += time;
      if (kernel->uses_tensor_cores) with_tensor_cores += time;
    }
    const double busy = total(common(united(std::move(ranges)), {window}));
    const bool blocks =
        std::any_of(kernels.begin(), kernels.end(), [](const Kernel* k) { return k->blocks_per_sm > 0; });
    devices.rows.push_back({rank, device, length > 0 ? Value(busy / length) : Value(),
                            blocks && length > 0 ? Value(sm_time(kernels, window) / length) : Value(),
                            occupancy(kernels, window), all > 0 ? Value(with_tensor_cores / all) : Value()});
  }
}

bool has_runtime(const Events& events) { return !events.roles[Role::runtime].empty(); }

Result<Answer> run_overview(const Input& input) {
  Answer answer;
  Table steps = step_columns(), overlaps = overlap_columns(), devices = device_columns();
  for (const Trace& trace : input.run().traces) {
    const Events events = read_events(trace);
    const std::string rank = "Rank " + std::to_string(trace.rank.rank);
    if (events.steps.empty()) {
      answer.notes.push_back(rank + " has no steps and no operators.");
      continue;
    }
    if (has_runtime(events)) {
      answer.notes.push_back(rank +
                             " is of a profiler before 2022 (category Runtime), for which the plugin stretches " +
                             "steps to the end of their kernels; that is not done here.");
    }
    add_steps(trace.rank.rank, events, steps, overlaps);
    add_devices(trace.rank.rank, events, devices);
  }
  answer.tables = {std::move(steps), std::move(overlaps), std::move(devices)};
  return answer;
}

}  // namespace

Analysis overview_analysis() { return {"overview", "Where does a step go, and is the device used?", run_overview}; }

}  // namespace stepscope::compat::tensorboard
