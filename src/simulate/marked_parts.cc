#include "simulate/marked_parts.h"

#include <algorithm>
#include <string_view>
#include <utility>

#include "simulate/step_pieces.h"

namespace stepscope::simulate {
namespace {

Part part_of_phase(Phase phase) {
  switch (phase) {
    case Phase::forward: return Part::forward;
    case Phase::backward: return Part::backward;
    case Phase::optimizer: return Part::optimizer;
    default: return Part::rest;
  }
}

Part part_of_range(std::string_view name) {
  if (name == "forward") return Part::forward;
  if (name == "backward") return Part::backward;
  return name.starts_with("Optimizer.step#") ? Part::optimizer : Part::rest;
}

bool holds(const Intervals& set, std::int64_t time_ns) {
  const auto after = std::upper_bound(set.begin(), set.end(), time_ns,
                                      [](std::int64_t time, const Interval& one) { return time < one.start; });
  return after != set.begin() && time_ns < (after - 1)->end;
}

}  // namespace

MarkedParts MarkedParts::of(std::array<std::vector<Interval>, kParts> ranges) {
  const auto set = [&](Part part) { return make_intervals(std::move(ranges[static_cast<std::size_t>(part)])); };
  MarkedParts out{.backward = set(Part::backward)};
  out.forward = subtract(set(Part::forward), out.backward);
  out.optimizer = subtract(subtract(set(Part::optimizer), out.backward), out.forward);
  return out;
}

Part MarkedParts::at(std::int64_t time_ns) const {
  if (holds(backward, time_ns)) return Part::backward;
  if (holds(forward, time_ns)) return Part::forward;
  return holds(optimizer, time_ns) ? Part::optimizer : Part::rest;
}

MarkedParts recorded_parts(const Trace& trace) {
  std::array<std::vector<Interval>, kParts> ranges;
  for (std::size_t row = 0; row < trace.slices.size(); row++) {
    const auto slice = static_cast<SliceId>(row);
    if (trace.kind(slice) != SliceKind::user_annotation) continue;
    ranges[static_cast<std::size_t>(part_of_range(trace.name(slice)))].push_back(
        {trace.slices.start_ns[slice], trace.slices.end_ns(slice)});
  }
  return MarkedParts::of(std::move(ranges));
}

std::vector<Parts> parts_of_steps(const Trace& history, const std::vector<double>& uneven_ns) {
  std::vector<std::array<std::vector<Interval>, kParts>> marked(history.steps.size());
  for (std::size_t row = 0; row < history.slices.size(); row++) {
    const auto part = static_cast<std::size_t>(part_of_phase(static_cast<Phase>(history.slices.phase[row])));
    const std::int64_t start_ns = history.slices.start_ns[row];
    const std::size_t step = step_begun_at(history.steps, start_ns);
    if (step == history.steps.size()) continue;
    marked[step][part].push_back({start_ns, start_ns + history.slices.dur_ns[row]});
  }
  std::vector<Parts> out;
  for (std::size_t i = 0; i < marked.size(); i++) {
    const MarkedParts when = MarkedParts::of(std::move(marked[i]));
    Parts parts{static_cast<double>(length(when.forward)), static_cast<double>(length(when.backward)),
                static_cast<double>(length(when.optimizer)), 0};
    double rest_ns = static_cast<double>(history.steps[i].end_ns - history.steps[i].start_ns) - uneven_ns[i];
    for (const double ns : parts) rest_ns -= ns;
    parts[static_cast<std::size_t>(Part::rest)] = std::max(0.0, rest_ns);
    out.push_back(parts);
  }
  return out;
}

}  // namespace stepscope::simulate
