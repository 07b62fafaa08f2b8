#include "analyze/flops/module_times.h"

#include <algorithm>
#include <limits>

#include "base/intervals.h"
#include "base/name_verdicts.h"
#include "model/lookup.h"

namespace stepscope::analyze::flops {
namespace {

constexpr std::uint32_t kNoCall = 0xffffffff;

std::uint8_t names_a_node(std::string_view name) {
  return name.starts_with("autograd::engine::evaluate_function: ") ? 1 : 0;
}

// Per slice: does it run within a node of autograd?
std::vector<bool> in_backward(const Trace& trace) {
  NameVerdicts<std::uint8_t, std::uint8_t (*)(std::string_view)> node(trace.strings, 2, names_a_node);
  std::vector<bool> within(trace.slices.size(), false);
  for (const SliceId slice : trace.by_track) {  // callers before what they call
    const SliceId parent = trace.slices.parent[slice];
    if (parent == SliceId::none) continue;
    within[static_cast<std::size_t>(slice)] =
        within[static_cast<std::size_t>(parent)] || node(trace.slices.name[parent]) == 1;
  }
  return within;
}

// Per call of a module: the stretch of its device work; start above end: it has none.
std::vector<Interval> device_spans(const Trace& trace) {
  std::vector<std::uint32_t> call_at(trace.slices.size(), kNoCall);
  for (std::uint32_t row = 0; row < trace.modules.size(); row++) {
    call_at[static_cast<std::size_t>(trace.modules[row].slice)] = row;
  }
  constexpr Interval kNothing{std::numeric_limits<std::int64_t>::max(), std::numeric_limits<std::int64_t>::min()};
  std::vector<Interval> spans(trace.modules.size(), kNothing);
  for (std::size_t row = 0; row < trace.device.size(); row++) {
    const SliceId work = trace.device.slice[row];
    if (!is_device_work(trace.kind(work))) continue;
    const std::int64_t start = trace.slices.start_ns[work], end = start + trace.slices.dur_ns[work];
    SliceId at = trace.device.launch[row] != SliceId::none ? trace.device.launch[row] : trace.device.op[row];
    for (int level = 0; at != SliceId::none && level < kDeepestWalk; level++, at = trace.slices.parent[at]) {
      const std::uint32_t call = call_at[static_cast<std::size_t>(at)];
      if (call == kNoCall) continue;
      spans[call] = {std::min(spans[call].start, start), std::max(spans[call].end, end)};
    }
  }
  return spans;
}

}  // namespace

std::vector<std::optional<std::int64_t>> forward_times(const Trace& trace) {
  const std::vector<bool> again = in_backward(trace);
  const std::vector<Interval> spans = device_spans(trace);
  std::vector<std::optional<std::int64_t>> times(trace.modules.size());
  for (std::size_t row = 0; row < trace.modules.size(); row++) {
    const SliceId call = trace.modules[row].slice;
    if (again[static_cast<std::size_t>(call)]) continue;
    const bool on_device = spans[row].start <= spans[row].end;
    times[row] = on_device ? spans[row].end - spans[row].start : trace.slices.dur_ns[call];
  }
  return times;
}

}  // namespace stepscope::analyze::flops
