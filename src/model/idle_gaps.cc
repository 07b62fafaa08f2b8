#include "model/idle_gaps.h"

#include <algorithm>
#include <array>
#include <unordered_map>

#include "model/dependencies.h"
#include "model/host_gap.h"

namespace stepscope {
namespace {

constexpr std::array<std::pair<std::string_view, std::string_view>, kIdleCauses> kCauseTexts{{
    {"host-bound",
     "the host launched the next work only after the device had run dry, because it was busy with something else"},
    {"launch-bound", "the next work was launched just before: the kernels are shorter than the time between launches"},
    {"dependency", "the next work was queued and waited for an event, another stream or the work before it"},
    {"communication wait", "the next work was queued and waited for communication"},
    {"data wait", "the host waited for the data loader"},
    {"synchronization", "the host waited for the device to finish and launched only after that"},
    {"unknown", "nothing in the recording shows why"},
}};

// A device needs a few µs between two kernels of one stream; a longer wait of queued work has another reason.
constexpr std::int64_t kHandOverNs = 5'000;

struct Finder {
  const Trace& trace;
  const DeviceTime& device;
  HostTimeline host;
  std::vector<std::uint32_t> waits;                                // sync rows that name the stream waited for, by end
  std::unordered_map<std::int64_t, std::uint32_t> last_on_stream;  // latest work that ended on each stream
  std::int64_t latency_ns = 0;

  std::int64_t start(std::uint32_t row) const { return trace.slices.start_ns[trace.device.slice[row]]; }
  std::int64_t end(std::uint32_t row) const { return trace.slices.end_ns(trace.device.slice[row]); }
  bool is_communication(std::uint32_t row) const {
    return trace.device.device_class[row] == static_cast<std::uint8_t>(DeviceClass::communication);
  }
};

std::vector<std::uint32_t> wait_rows(const Trace& trace) {
  std::vector<std::uint32_t> waits;
  for (std::uint32_t row = 0; row < trace.device.size(); row++) {
    if (trace.kind(trace.device.slice[row]) == SliceKind::sync && trace.device.wait_stream.has(row))
      waits.push_back(row);
  }
  std::stable_sort(waits.begin(), waits.end(), [&](std::uint32_t a, std::uint32_t b) {
    return trace.slices.end_ns(trace.device.slice[a]) < trace.slices.end_ns(trace.device.slice[b]);
  });
  return waits;
}

// Gaps of the busy union with the rows at their edges.
std::vector<IdleGap> find_gaps(const Finder& find) {
  std::vector<IdleGap> gaps;
  std::uint32_t latest = find.device.rows.front();
  for (const std::uint32_t row : find.device.rows) {
    if (find.start(row) > find.end(latest)) {
      gaps.push_back({.when = {find.end(latest), find.start(row)}, .before = latest, .after = row});
    }
    if (find.end(row) >= find.end(latest)) latest = row;
  }
  return gaps;
}

void blame(IdleGap& gap, IdleCause cause, std::string_view why) {
  gap.cause = cause;
  gap.why = why;
}

// The launch call began inside the gap: the host is what it waited for.
void judge_host(Finder& find, IdleGap& gap, SliceId launch) {
  // Skewed clocks can put the call after its kernel; the gap bounds what is looked at, so all look-ups stay linear.
  const Interval before_call{gap.when.start, std::min(find.trace.slices.start_ns[launch], gap.when.end)};
  const std::int64_t waited = before_call.end - before_call.start;
  const HostActivity did = find.host.during(find.trace.slices.track[launch], before_call);
  gap.function = did.function;
  gap.phase = static_cast<Phase>(find.trace.slices.phase[launch]);
  if (did.op_ns * 4 >= waited) gap.host_op = did.op;
  if (did.dataloader_ns * 2 > waited) {
    gap.phase = Phase::dataloader;
    blame(gap, IdleCause::data_wait, "the launching thread spent most of the gap in the data loader");
  } else if (did.in_sync_at_start) {
    gap.host_op = did.sync_call;
    blame(gap, IdleCause::synchronization,
          "the launching thread was inside a synchronizing call when the device ran dry");
  } else if (did.sync_ns * 2 > waited) {
    gap.host_op = did.sync_call;
    blame(gap, IdleCause::synchronization, "the launching thread spent most of the gap in a synchronizing call");
  } else if (did.anything) {
    if (gap.host_op != SliceId::none) gap.phase = static_cast<Phase>(find.trace.slices.phase[gap.host_op]);
    blame(gap, IdleCause::host_bound,
          gap.host_op != SliceId::none ? "the launching thread was running this operator"
                                       : "the launching thread was between operators");
  } else {
    blame(gap, IdleCause::unknown, "the launch came late, and nothing was recorded on its thread in the gap");
  }
}

// A recorded wait of the work's own stream that ended inside the gap.
const std::uint32_t* wait_in(const Finder& find, const IdleGap& gap) {
  auto at = std::lower_bound(find.waits.begin(), find.waits.end(), gap.when.start,
                             [&](std::uint32_t row, std::int64_t time) { return find.end(row) < time; });
  for (; at != find.waits.end() && find.end(*at) <= gap.when.end; ++at) {
    if (find.trace.device.stream[*at] == find.trace.device.stream[gap.after]) return &*at;
  }
  return nullptr;
}

void depend(IdleGap& gap, std::int64_t stream, bool communication, std::string_view why) {
  gap.waited_stream = stream;
  blame(gap, communication ? IdleCause::communication_wait : IdleCause::dependency, why);
}

// The work was already queued when the gap began.
void judge_queued(const Finder& find, IdleGap& gap, SliceId launch) {
  const DeviceRows& rows = find.trace.device;
  if (const std::uint32_t* wait = wait_in(find, gap)) {
    const std::int64_t stream = rows.wait_stream[*wait];
    const auto last = find.last_on_stream.find(stream);
    const bool communication = last != find.last_on_stream.end() && find.is_communication(last->second);
    depend(gap, stream, communication, "its stream waited for an event of another stream");
  } else if (rows.launch[gap.before] == launch) {
    depend(gap, rows.stream[gap.before], false, "it follows the work before it in the same graph launch");
  } else if (gap.when.end - find.trace.slices.start_ns[launch] <= find.latency_ns) {
    gap.phase = static_cast<Phase>(find.trace.slices.phase[launch]);
    blame(gap, IdleCause::launch_bound, "it was launched no longer ago than a launch takes");
  } else if (rows.stream[gap.before] != rows.stream[gap.after] && gap.when.end - gap.when.start <= find.latency_ns) {
    depend(gap, rows.stream[gap.before], find.is_communication(gap.before),
           "it was queued and started right after the work of another stream ended");
  } else if (rows.stream[gap.before] == rows.stream[gap.after] && gap.when.end - gap.when.start <= kHandOverNs) {
    depend(gap, rows.stream[gap.before], find.is_communication(gap.before),
           "it was queued behind the work before it on its stream");
  } else {
    blame(gap, IdleCause::unknown, "it was queued, and the recording does not show what it waited for");
  }
}

void judge(Finder& find, IdleGap& gap) {
  const SliceId launch = find.trace.device.launch[gap.after];
  gap.phase = static_cast<Phase>(find.trace.device.phase[gap.after]);
  if (launch == SliceId::none) {
    blame(gap, IdleCause::unknown, "the launch of the work that follows is not in the recording");
  } else if (find.trace.slices.start_ns[launch] >= gap.when.start) {
    judge_host(find, gap, launch);
  } else {
    judge_queued(find, gap, launch);
  }
}

// Where the steps window is wider than the span, the time before the first and after the last work is idle as well.
void add_edges(Finder& find, std::vector<IdleGap>& gaps) {
  const DeviceTime& device = find.device;
  if (device.steps.empty()) return;
  if (device.steps.front().start < device.span.start) {
    IdleGap gap{.when = {device.steps.front().start, device.span.start}, .after = device.rows.front()};
    const SliceId launch = find.trace.device.launch[gap.after];
    if (launch != SliceId::none && find.trace.slices.start_ns[launch] >= gap.when.start) {
      judge_host(find, gap, launch);
    } else {
      blame(gap, IdleCause::unknown, "before the first device work of the recording");
    }
    gaps.push_back(gap);
  }
  if (device.steps.back().end > device.span.end) {
    IdleGap gap{.when = {device.span.end, device.steps.back().end}};
    blame(gap, IdleCause::unknown, "after the last device work of the recording");
    gaps.push_back(gap);
  }
}

}  // namespace

std::string_view to_string(IdleCause cause) { return kCauseTexts[static_cast<std::size_t>(cause)].first; }
std::string_view meaning_of(IdleCause cause) { return kCauseTexts[static_cast<std::size_t>(cause)].second; }

std::vector<IdleGap> idle_gaps(const Trace& trace, const DeviceTime& device) {
  if (device.rows.empty()) return {};
  Finder find{.trace = trace, .device = device, .host = HostTimeline(trace), .waits = wait_rows(trace)};
  std::vector<IdleGap> gaps = find_gaps(find);
  find.latency_ns = usual_launch_latency(trace, device.rows);
  std::size_t next = 0;  // work that ended before the gap, by start: what each stream did last
  for (IdleGap& gap : gaps) {
    for (; next < device.rows.size() && find.start(device.rows[next]) < gap.when.end; next++) {
      find.last_on_stream[trace.device.stream[device.rows[next]]] = device.rows[next];
    }
    judge(find, gap);
  }
  add_edges(find, gaps);
  return gaps;
}

}  // namespace stepscope
