#include "model/launch_calls.h"

#include <algorithm>

#include "base/key_index.h"
#include "base/name_verdicts.h"

namespace stepscope {
namespace {

constexpr std::uint32_t kNoCall = 0xffffffff;
constexpr auto kUnasked = static_cast<LaunchKind>(0xff);

struct Calls {
  std::vector<LaunchCall> list;
  std::vector<std::uint32_t> at;  // per slice: its call
};

// By name; a call of another name counts as soon as work is linked to it.
Calls list_calls(const Trace& trace) {
  Calls calls;
  calls.at.assign(trace.slices.size(), kNoCall);
  calls.list.reserve(trace.links.launches_with_work + trace.links.launches_dropped);
  NameVerdicts kinds(trace.strings, kUnasked, launch_kind);
  for (std::size_t row = 0; row < trace.slices.size(); row++) {
    const auto id = static_cast<SliceId>(row);
    if (trace.kind(id) != SliceKind::runtime) continue;
    const LaunchKind kind = kinds(trace.slices.name[id]);
    if (kind == LaunchKind::none) continue;
    calls.at[row] = static_cast<std::uint32_t>(calls.list.size());
    calls.list.push_back({.slice = id, .kind = kind});
  }
  return calls;
}

LaunchKind kind_of_work(SliceKind work) {
  if (work == SliceKind::memcpy) return LaunchKind::copy;
  return work == SliceKind::memset ? LaunchKind::set : LaunchKind::kernel;
}

std::uint64_t stream_key(const DeviceRows& rows, std::uint32_t row) {
  return static_cast<std::uint64_t>(static_cast<std::uint32_t>(rows.device[row])) << 40 ^
         static_cast<std::uint64_t>(rows.stream[row]);
}

}  // namespace

std::vector<LaunchCall> launch_calls(const Trace& trace, const std::vector<std::uint32_t>& work) {
  constexpr std::int64_t kNever = std::numeric_limits<std::int64_t>::min();
  Calls calls = list_calls(trace);
  std::vector<std::int64_t> until(calls.list.size(), kNever);  // per call: its work is accounted up to here
  KeyIndex streams;
  std::vector<std::int64_t> stream_end;  // per stream: end of the work so far
  for (const std::uint32_t row : work) {
    const std::int64_t start = trace.slices.start_ns[trace.device.slice[row]];
    const std::int64_t end = trace.slices.end_ns(trace.device.slice[row]);
    const std::uint32_t stream = streams[stream_key(trace.device, row)];
    if (stream == stream_end.size()) stream_end.push_back(kNever);
    const std::int64_t before = stream_end[stream];
    stream_end[stream] = std::max(before, end);
    const SliceId launch = trace.device.launch[row];
    if (launch == SliceId::none) continue;
    std::uint32_t& at = calls.at[static_cast<std::size_t>(launch)];
    if (at == kNoCall) {
      at = static_cast<std::uint32_t>(calls.list.size());
      calls.list.push_back({.slice = launch, .kind = kind_of_work(trace.kind(trace.device.slice[row]))});
      until.push_back(kNever);
    }
    LaunchCall& call = calls.list[at];
    if (call.work++ == 0) {
      const std::int64_t called = trace.slices.end_ns(launch);
      call.first_row = row;
      call.delay_ns = std::max<std::int64_t>(0, start - called);
      call.idle_delay_ns = std::max<std::int64_t>(0, start - std::max(called, before));
    }
    if (end > until[at]) {
      call.device_ns += end - std::max(start, until[at]);
      until[at] = end;
    }
  }
  return std::move(calls.list);
}

}  // namespace stepscope
