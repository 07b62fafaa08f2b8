#include "model/op_calls.h"

#include <algorithm>

#include "base/key_index.h"
#include "model/windows.h"

namespace stepscope {
namespace {

// Lists the calls and fills op_at; parents come before children in by_track, so one pass is enough.
void list_calls(const Trace& trace, OpCalls& out) {
  std::vector<bool> is_op(trace.categories.size() + 1, false);
  std::size_t expected = 0;
  for (std::size_t c = 0; c < trace.categories.size(); c++) is_op[c] = trace.categories[c].kind == SliceKind::cpu_op;
  const auto category = [&](SliceId id) {
    return std::min(static_cast<std::size_t>(trace.slices.category[id]), trace.categories.size());
  };
  for (const SliceId id : trace.by_track) expected += is_op[category(id)];
  out.op_at.assign(trace.slices.size(), OpCalls::none);
  out.slice.reserve(expected);
  out.parent.reserve(expected);
  for (const SliceId id : trace.by_track) {
    const SliceId above = trace.slices.parent[id];
    std::uint32_t op = above == SliceId::none ? OpCalls::none : out.op_at[static_cast<std::size_t>(above)];
    if (is_op[category(id)]) {
      out.parent.push_back(op);
      op = static_cast<std::uint32_t>(out.slice.size());
      out.slice.push_back(id);
    }
    out.op_at[static_cast<std::size_t>(id)] = op;
  }
}

void find_rows(const Trace& trace, OpCalls& out) {
  out.row.assign(out.size(), OpCalls::none);
  for (std::uint32_t row = 0; row < trace.ops.size(); row++) {
    const SliceId slice = trace.ops.slice[row];
    const std::uint32_t op = out.op_at[static_cast<std::size_t>(slice)];
    if (op != OpCalls::none && out.slice[op] == slice) out.row[op] = row;
  }
}

void fill_host_self(const Trace& trace, OpCalls& out) {
  out.host_self_ns.resize(out.size());
  std::vector<std::int64_t> covered(out.size());  // children of the call are accounted up to here
  for (std::size_t op = 0; op < out.size(); op++) {
    out.host_self_ns[op] = trace.slices.dur_ns[out.slice[op]];
    covered[op] = trace.slices.start_ns[out.slice[op]];
  }
  for (const SliceId id : trace.by_track) {
    const SliceId above = trace.slices.parent[id];
    if (above == SliceId::none) continue;
    const std::uint32_t op = out.op_at[static_cast<std::size_t>(above)];
    if (op == OpCalls::none || out.slice[op] != above) continue;
    const std::int64_t end = std::min(trace.slices.end_ns(id), trace.slices.end_ns(above));
    out.host_self_ns[op] -= std::max<std::int64_t>(0, end - std::max(trace.slices.start_ns[id], covered[op]));
    covered[op] = std::max(covered[op], end);
  }
}

// Work comes by start, so the union grows by what lies behind the end reached so far.
void fill_device(const Trace& trace, OpCalls& out) {
  out.device_self_ns.assign(out.size(), 0);
  out.device_total_ns.assign(out.size(), 0);
  constexpr std::int64_t kNever = std::numeric_limits<std::int64_t>::min();
  std::vector<std::int64_t> until(out.size(), kNever);  // in turn for both, because it is as large as a result
  const auto grow = [](std::int64_t start, std::int64_t end, std::int64_t& reached, std::int64_t& sum) {
    if (end > reached) {
      sum += end - std::max(start, reached);
      reached = end;
    }
  };
  const std::vector<std::uint32_t> rows = work_by_start(trace);
  const auto each_launch = [&](const auto& take) {
    for (const std::uint32_t row : rows) {
      const SliceId launcher = trace.device.op[row];
      if (launcher == SliceId::none) continue;
      const std::uint32_t inner = out.op_at[static_cast<std::size_t>(launcher)];
      if (inner == OpCalls::none) continue;
      take(inner, trace.slices.start_ns[trace.device.slice[row]], trace.slices.end_ns(trace.device.slice[row]));
    }
  };
  each_launch([&](std::uint32_t inner, std::int64_t start, std::int64_t end) {
    grow(start, end, until[inner], out.device_self_ns[inner]);
  });
  std::fill(until.begin(), until.end(), kNever);
  each_launch([&](std::uint32_t inner, std::int64_t start, std::int64_t end) {
    for (std::uint32_t op = inner; op != OpCalls::none; op = out.parent[op]) {
      grow(start, end, until[op], out.device_total_ns[op]);
    }
  });
}

// The innermost call on `track` at `time`; `at` is a cursor into the track's slices that only moves forward.
std::uint32_t op_at_time(const Trace& trace, const OpCalls& calls, std::uint32_t end, std::int64_t time,
                         std::uint32_t& at) {
  while (at + 1 < end && trace.slices.start_ns[trace.by_track[at + 1]] <= time) at++;
  SliceId id = trace.by_track[at];
  if (trace.slices.start_ns[id] > time) return OpCalls::none;
  while (id != SliceId::none && trace.slices.end_ns(id) <= time) id = trace.slices.parent[id];
  return id == SliceId::none ? OpCalls::none : calls.op_at[static_cast<std::size_t>(id)];
}

void fill_bytes(const Trace& trace, OpCalls& out) {
  const MemoryEvents& events = trace.memory;
  if (events.size() == 0) return;
  out.self_bytes.assign(out.size(), 0);
  std::vector<std::uint32_t> order(events.size());
  for (std::uint32_t i = 0; i < order.size(); i++) order[i] = i;
  std::stable_sort(order.begin(), order.end(), [&](std::uint32_t a, std::uint32_t b) {
    return std::pair(events.track[a], events.time_ns[a]) < std::pair(events.track[b], events.time_ns[b]);
  });
  TrackId track = TrackId::none;
  std::uint32_t at = 0, end = 0;
  for (const std::uint32_t i : order) {
    const std::int64_t bytes = events.bytes[i];
    if (bytes <= 0) continue;  // a free, or not given (kAbsent is negative)
    if (events.track[i] != track) {
      track = events.track[i];
      const auto t = static_cast<std::size_t>(track);
      const bool known = t + 1 < trace.track_begin.size();
      at = known ? trace.track_begin[t] : 0;
      end = known ? trace.track_begin[t + 1] : 0;
    }
    const std::uint32_t op = at < end ? op_at_time(trace, out, end, events.time_ns[i], at) : OpCalls::none;
    if (op == OpCalls::none) {
      out.bytes_without_op += static_cast<std::uint64_t>(bytes);
    } else {
      out.self_bytes[op] += bytes;
    }
  }
  out.total_bytes = out.self_bytes;
  for (std::size_t op = out.size(); op-- > 0;) {
    if (out.parent[op] != OpCalls::none) out.total_bytes[out.parent[op]] += out.total_bytes[op];
  }
}

}  // namespace

OpCalls op_calls(const Trace& trace) {
  OpCalls out;
  list_calls(trace, out);
  find_rows(trace, out);
  fill_host_self(trace, out);
  fill_device(trace, out);
  fill_bytes(trace, out);
  return out;
}

std::vector<std::uint64_t> keys_by_name(const Trace& trace, const OpCalls& calls) {
  std::vector<std::uint64_t> keys(calls.size());
  for (std::size_t op = 0; op < calls.size(); op++) {
    keys[op] = static_cast<std::uint32_t>(trace.slices.name[calls.slice[op]]);
  }
  return keys;
}

std::vector<OpTotal> op_totals(const Trace& trace, const OpCalls& calls, const std::vector<std::uint64_t>& keys) {
  struct Open {  // the outermost call of the group that was last seen
    TrackId track = TrackId::none;
    std::int64_t end_ns = 0;
  };
  KeyIndex groups;
  std::vector<OpTotal> totals;
  std::vector<Open> open;
  for (std::uint32_t op = 0; op < calls.size(); op++) {
    const std::uint32_t group = groups[keys[op]];
    if (group == totals.size()) {
      totals.push_back({.key = keys[op], .example = op});
      open.push_back({});
    }
    OpTotal& total = totals[group];
    const SliceId slice = calls.slice[op];
    total.calls++;
    total.host_self_ns += calls.host_self_ns[op];
    total.device_self_ns += calls.device_self_ns[op];
    if (!calls.self_bytes.empty()) total.self_bytes += calls.self_bytes[op];
    Open& outer = open[group];
    const std::int64_t end = trace.slices.end_ns(slice);
    if (outer.track == trace.slices.track[slice] && end <= outer.end_ns) continue;
    outer = {trace.slices.track[slice], end};
    total.host_total_ns += trace.slices.dur_ns[slice];
    total.device_total_ns += calls.device_total_ns[op];
    if (!calls.total_bytes.empty()) total.total_bytes += calls.total_bytes[op];
  }
  return totals;
}

void sort_by_self(std::vector<OpTotal>& totals) {
  std::stable_sort(totals.begin(), totals.end(), [](const OpTotal& a, const OpTotal& b) {
    return std::pair(a.device_self_ns, a.host_self_ns) > std::pair(b.device_self_ns, b.host_self_ns);
  });
}

}  // namespace stepscope
