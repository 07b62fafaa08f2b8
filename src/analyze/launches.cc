// launches: what launching device work costs on the host, which work is too short for it, and how much is queued.
//
// Every call that starts work counts: kernels (runtime and driver, ExC and Ex forms, cooperative), graphs, copies and
// fills, of CUDA, HIP and the other runtimes that model/host_names.h knows. A graph launch is one call with many
// kernels. A launch is short when all its work together ran for less time than the call took on the host; calls of more
// than 50 µs are slow instead (blocked, or the first of their kernel) and say nothing about the size of the work.
#include <algorithm>

#include "analyze/analysis.h"
#include "base/key_index.h"
#include "model/answer_parts.h"
#include "model/curves.h"
#include "model/launch_calls.h"
#include "model/lookup.h"

namespace stepscope::analyze {
namespace {

constexpr std::int64_t kLateNs = 100'000;  // HTA's limits for delays and calls that are out of the ordinary
constexpr std::int64_t kSlowNs = 50'000;
// CUDA queues 1024 commands a stream before a launch call blocks. Some of them are in no trace (event records), so that
// a full queue shows as 1010 to 1022: a limit of 1024 would never be met.
constexpr double kFullQueue = 1000;

struct RankLaunches {
  const Trace* trace;
  const RankTime* time;
  std::vector<LaunchCall> calls;
};

std::int64_t host_ns(const Trace& trace, const LaunchCall& call) { return trace.slices.dur_ns[call.slice]; }

bool is_short(const Trace& trace, const LaunchCall& call) {
  return (call.kind == LaunchKind::kernel || call.kind == LaunchKind::graph) && call.work > 0 &&
         host_ns(trace, call) <= kSlowNs && call.device_ns < host_ns(trace, call);
}

struct CallSum {
  std::uint32_t example = 0;  // index into the calls
  std::int64_t count = 0, without_work = 0, work = 0, host_ns = 0, device_ns = 0, shorts = 0, slow = 0, late = 0,
               max_delay_ns = 0;
  std::vector<std::int64_t> delays;
};

Table calls_table(const std::vector<RankLaunches>& ranks) {
  Table table{
      .name = "calls",
      .columns = {
          {"rank", ValueType::integer, Unit::none, "Rank"},
          {"call", ValueType::text, Unit::none, "Name of the launch call"},
          {"kind", ValueType::text, Unit::none, "What it starts: kernel, graph, copy or set"},
          {"count", ValueType::integer, Unit::count, "Calls"},
          {"without_work", ValueType::integer, Unit::count, "Of these, calls without device work in the recording"},
          {"work_count", ValueType::integer, Unit::count, "Kernels, copies and fills that they started"},
          {"host_ns", ValueType::integer, Unit::ns, "Host time in these calls"},
          {"device_ns", ValueType::integer, Unit::ns, "Device time of their work: the union of each call, summed"},
          {"delay_median_ns", ValueType::integer, Unit::ns,
           "Median time from the end of the call to the start of its work; 0 where that started earlier"},
          {"delay_max_ns", ValueType::integer, Unit::ns, "Longest such time"},
          {"late_count", ValueType::integer, Unit::count,
           "Calls whose work started more than 100 µs later although nothing before it ran on its stream"},
          {"slow_count", ValueType::integer, Unit::count, "Calls that took more than 50 µs on the host"},
          {"short_count", ValueType::integer, Unit::count,
           "Calls of at most 50 µs whose work ran for less time than the call took"}}};
  for (const RankLaunches& rank : ranks) {
    const Trace& trace = *rank.trace;
    KeyIndex names;
    std::vector<CallSum> sums;
    for (std::uint32_t i = 0; i < rank.calls.size(); i++) {
      const LaunchCall& call = rank.calls[i];
      const std::uint32_t at = names[static_cast<std::uint32_t>(trace.slices.name[call.slice])];
      if (at == sums.size()) sums.push_back({.example = i});
      CallSum& sum = sums[at];
      sum.count++;
      sum.host_ns += host_ns(trace, call);
      sum.slow += host_ns(trace, call) > kSlowNs;
      if (call.work == 0) {
        sum.without_work++;
        continue;
      }
      sum.work += call.work;
      sum.device_ns += call.device_ns;
      sum.shorts += is_short(trace, call);
      sum.late += call.idle_delay_ns > kLateNs;
      sum.max_delay_ns = std::max(sum.max_delay_ns, call.delay_ns);
      sum.delays.push_back(call.delay_ns);
    }
    std::stable_sort(sums.begin(), sums.end(), [](const CallSum& a, const CallSum& b) { return a.count > b.count; });
    for (CallSum& sum : sums) {
      const LaunchCall& example = rank.calls[sum.example];
      const bool known = !sum.delays.empty();
      table.rows.push_back({trace.rank.rank, std::string(trace.name(example.slice)),
                            std::string(to_string(example.kind)), sum.count, sum.without_work, sum.work, sum.host_ns,
                            known ? Value(sum.device_ns) : Value(), to_value(median(std::move(sum.delays))),
                            known ? Value(sum.max_delay_ns) : Value(), sum.late, sum.slow, sum.shorts});
    }
  }
  return table;
}

struct ShortSum {
  std::int64_t launches = 0, shorts = 0, host_ns = 0, device_ns = 0;
};

// Operators by what their short launches cost more on the host than on the device.
Table short_ops_table(const std::vector<RankLaunches>& ranks) {
  Table table{.name = "short_ops",
              .columns = {{"rank", ValueType::integer, Unit::none, "Rank"},
                          {"op", ValueType::text, Unit::none, "Innermost operator or range around the launch"},
                          {"phase", ValueType::text, Unit::none, "Phase of the launch"},
                          {"launches", ValueType::integer, Unit::count, "Launches of kernels and graphs"},
                          {"short_launches", ValueType::integer, Unit::count, "Of these, short ones"},
                          {"host_ns", ValueType::integer, Unit::ns, "Host time of the short launch calls"},
                          {"device_ns", ValueType::integer, Unit::ns, "Device time of their work"},
                          {"excess_ns", ValueType::integer, Unit::ns, "Host time less device time"}}};
  for (const RankLaunches& rank : ranks) {
    const Trace& trace = *rank.trace;
    KeyIndex keys;
    std::vector<ShortSum> sums;
    for (const LaunchCall& call : rank.calls) {
      if (call.work == 0 || (call.kind != LaunchKind::kernel && call.kind != LaunchKind::graph)) continue;
      const StringId name = op_name(trace, trace.device.op[call.first_row]);
      const std::uint32_t at =
          keys[static_cast<std::uint64_t>(trace.device.phase[call.first_row]) << 32 | static_cast<std::uint32_t>(name)];
      if (at == sums.size()) sums.push_back({});
      sums[at].launches++;
      if (!is_short(trace, call)) continue;
      sums[at].shorts++;
      sums[at].host_ns += host_ns(trace, call);
      sums[at].device_ns += call.device_ns;
    }
    for (std::uint32_t at = 0; at < sums.size(); at++) {
      if (sums[at].shorts == 0) continue;
      const auto name = static_cast<StringId>(keys.key(at) & 0xffffffff);
      const auto phase = static_cast<Phase>(std::min<std::uint64_t>(keys.key(at) >> 32, kPhases - 1));
      table.rows.push_back({trace.rank.rank, text(trace.strings[name]), std::string(to_string(phase)),
                            sums[at].launches, sums[at].shorts, sums[at].host_ns, sums[at].device_ns,
                            sums[at].host_ns - sums[at].device_ns});
    }
  }
  std::stable_sort(table.rows.begin(), table.rows.end(), [](const auto& a, const auto& b) {
    return std::get<std::int64_t>(a.back()) > std::get<std::int64_t>(b.back());
  });
  return table;
}

// What waits on one stream: one for each call from its start to the start of its first work.
struct Queue {
  std::int32_t device = -1;
  std::int64_t stream = kAbsent;
  std::vector<std::int64_t> in, out;
  Curve length;
  std::int64_t full_ns = 0;  // with at least kFullQueue waiting
};

std::vector<Queue> queues_of(const Trace& trace, const std::vector<LaunchCall>& calls, std::int64_t& reversed) {
  KeyIndex keys;
  std::vector<Queue> queues;
  for (const LaunchCall& call : calls) {
    if (call.work == 0) continue;
    const std::int64_t start = trace.slices.start_ns[trace.device.slice[call.first_row]];
    if (start < trace.slices.start_ns[call.slice]) {
      reversed++;  // no queue can be shorter than empty: clocks disagree, or ids were used twice
      continue;
    }
    const std::int32_t device = trace.device.device[call.first_row];
    const std::int64_t stream = trace.device.stream[call.first_row];
    const std::uint32_t at =
        keys[static_cast<std::uint64_t>(static_cast<std::uint32_t>(device)) << 40 ^ static_cast<std::uint64_t>(stream)];
    if (at == queues.size()) queues.push_back({.device = device, .stream = stream});
    queues[at].in.push_back(trace.slices.start_ns[call.slice]);
    queues[at].out.push_back(start);
  }
  for (Queue& queue : queues) {
    std::sort(queue.in.begin(), queue.in.end());
    std::sort(queue.out.begin(), queue.out.end());
    std::size_t in = 0;
    for (std::size_t out = 0; out < queue.out.size();) {
      const bool enters = in < queue.in.size() && queue.in[in] <= queue.out[out];
      const std::int64_t now = enters ? queue.in[in++] : queue.out[out++];
      if (queue.length.size() > 0 && queue.length.v.back() >= kFullQueue)
        queue.full_ns += now - queue.length.t_ns.back();
      queue.length.add(now, static_cast<double>(in - out));
    }
  }
  std::sort(queues.begin(), queues.end(), [](const Queue& a, const Queue& b) {
    return std::pair(a.device, a.stream) < std::pair(b.device, b.stream);
  });
  return queues;
}

Table queues_table() {
  return {.name = "queues",
          .columns = {{"rank", ValueType::integer, Unit::none, "Rank"},
                      {"device", ValueType::integer, Unit::none, "Device of the rank"},
                      {"stream", ValueType::integer, Unit::none, "Stream"},
                      {"launches", ValueType::integer, Unit::count, "Calls that put work on it; a graph counts once"},
                      {"mean_length", ValueType::real, Unit::none,
                       "Mean number of launches that wait, weighted by time, from the first call to the last start"},
                      {"max_length", ValueType::integer, Unit::count, "Most that waited at once"},
                      {"full_ns", ValueType::integer, Unit::ns,
                       "Time with 1000 or more waiting: launch calls block at about 1024 commands"},
                      {"full_share", ValueType::real, Unit::ratio, "Share of the time that the mean is over"}}};
}

void add_queues(Answer& answer, Table& table, const RankLaunches& rank, std::int64_t& full_ns, std::int64_t& reversed) {
  for (const Queue& queue : queues_of(*rank.trace, rank.calls, reversed)) {
    const CurveStats stats = stats_of(queue.length, queue.length.t_ns.back());
    table.rows.push_back({rank.trace->rank.rank, device_number(queue.device), present(queue.stream),
                          count(queue.in.size()), stats.mean, static_cast<std::int64_t>(stats.high), queue.full_ns,
                          share(queue.full_ns, queue.length.t_ns.back() - queue.length.t_ns.front())});
    full_ns += queue.full_ns;
    std::string name = "queue_length_rank" + std::to_string(rank.trace->rank.rank);
    if (queue.device >= 0) name += "_device" + std::to_string(queue.device);
    if (queue.stream != kAbsent) name += "_stream" + std::to_string(queue.stream);
    answer.series.push_back(thinned(std::move(name), Unit::count, queue.length));
  }
}

struct LaunchTotals {
  std::int64_t calls = 0, without_work = 0, work = 0, host_ns = 0, launches = 0, shorts = 0, slow = 0, late = 0,
               excess_ns = 0;
  std::int64_t span_ns = 0, idle_ns = 0;
  std::vector<std::int64_t> delays;
};

LaunchTotals totals_of(const std::vector<RankLaunches>& ranks) {
  LaunchTotals totals;
  for (const RankLaunches& rank : ranks) {
    for (const LaunchCall& call : rank.calls) {
      totals.calls++;
      totals.work += call.work;
      totals.host_ns += host_ns(*rank.trace, call);
      totals.late += call.idle_delay_ns > kLateNs;
      totals.slow += host_ns(*rank.trace, call) > kSlowNs;
      if (call.work == 0) {
        totals.without_work++;
        continue;
      }
      totals.delays.push_back(call.delay_ns);
      totals.launches += call.kind == LaunchKind::kernel || call.kind == LaunchKind::graph;
      if (!is_short(*rank.trace, call)) continue;
      totals.shorts++;
      totals.excess_ns += host_ns(*rank.trace, call) - call.device_ns;
    }
    for (const DeviceTime& device : rank.time->devices) {
      totals.span_ns += device.span.end - device.span.start;
      totals.idle_ns += device.span.end - device.span.start - length(device.busy);
    }
  }
  return totals;
}

constexpr std::string_view kNoLaunches =
    "No launch call was recorded: this is a CPU run, or the profiler did not trace the runtime of the device.";

void add_scalars(Answer& answer, LaunchTotals& totals, std::int64_t full_ns) {
  const bool any = totals.calls > 0, linked = !totals.delays.empty();
  const auto scalar = [&](std::string_view name, Value value, Unit unit, std::string_view meaning, bool known) {
    add_scalar(answer, name, known ? std::move(value) : Value(), unit,
               known ? meaning
               : any ? "No launch call has device work in the recording"
                     : kNoLaunches);
  };
  scalar("launch_count", totals.calls, Unit::count, "Calls that launch device work: kernels, graphs, copies, fills",
         any);
  scalar("without_work_count", totals.without_work, Unit::count,
         "Of these, calls without device work in the recording (dropped, or an empty copy)", any);
  scalar("work_count", totals.work, Unit::count, "Kernels, copies and fills that they started", any);
  scalar("host_ns", totals.host_ns, Unit::ns, "Host time in launch calls, summed over threads and ranks", any);
  scalar("delay_median_ns", to_value(median(totals.delays)), Unit::ns,
         "Median time from the end of a call to the start of its work", linked);
  scalar("late_count", totals.late, Unit::count,
         "Launches whose work started more than 100 µs later although nothing before it ran on its stream", linked);
  scalar("slow_count", totals.slow, Unit::count, "Launch calls that took more than 50 µs on the host", any);
  scalar("short_count", totals.shorts, Unit::count,
         "Launches of kernels or graphs of at most 50 µs whose work ran for less time than the call took", linked);
  scalar("short_share", share(totals.shorts, totals.launches), Unit::ratio,
         "Share of the launches of kernels and graphs that are short", linked);
  scalar("queue_full_ns", full_ns, Unit::ns,
         "Time with 1000 or more launches waiting, summed over streams: launch calls block at about 1024 commands",
         linked);
}

// Short kernels cost time only where the device waits meanwhile.
void find_short_launches(Answer& answer, const LaunchTotals& totals, const Table& short_ops) {
  if (totals.idle_ns * 10 <= totals.span_ns || totals.excess_ns * 20 <= totals.span_ns) return;
  Finding finding{
      .id = "short_launches",
      .cause = "host",
      .sentence = "Many kernels run for less time than launching them takes, and the device is idle in between",
      .evidence = {{.text = "Share of launches that are short",
                    .value = share(totals.shorts, totals.launches),
                    .unit = Unit::ratio},
                   {.text = "Launching took longer than their work by", .value = totals.excess_ns, .unit = Unit::ns},
                   {.text = "Share of the span in which the device was idle",
                    .value = share(totals.idle_ns, totals.span_ns),
                    .unit = Unit::ratio}},
      .gain_reason = std::string(kNoGain),
      .confidence = "medium",
      .next =
          "Capture the part named here in a CUDA graph (torch.compile(mode=\"reduce-overhead\")) or fuse it with "
          "torch.compile; launches.short_ops lists the operators"};
  if (!short_ops.rows.empty() && std::holds_alternative<std::string>(short_ops.rows.front()[1])) {
    finding.where.op = std::get<std::string>(short_ops.rows.front()[1]);
    finding.where.phase = std::get<std::string>(short_ops.rows.front()[2]);
    finding.where.rank = std::get<std::int64_t>(short_ops.rows.front()[0]);
  }
  answer.findings.push_back(std::move(finding));
}

Result<Answer> run_launches(const Run& run, const AnalyzeOptions& options) {
  if (auto derived = require_derived(run); !derived) return fail(derived.error());
  Answer answer;
  const auto times = rank_times(run);
  std::vector<RankLaunches> ranks;
  for (const RankTime& time : times)
    ranks.push_back({time.trace, &time, launch_calls(*time.trace, work_by_start(*time.trace))});
  LaunchTotals totals = totals_of(ranks);
  Table queues = queues_table();
  std::int64_t full_ns = 0, reversed = 0;
  for (const RankLaunches& rank : ranks) add_queues(answer, queues, rank, full_ns, reversed);
  add_scalars(answer, totals, full_ns);
  answer.tables = {calls_table(ranks), short_ops_table(ranks), std::move(queues)};
  find_short_launches(answer, totals, answer.tables[1]);
  limit_rows(answer, answer.tables[1], options.max_rows, "those with less excess");
  if (totals.calls == 0) answer.notes.push_back(std::string(kNoLaunches));
  if (reversed > 0) {
    answer.notes.push_back(std::to_string(reversed) +
                           " launches are left out of the queues: their work started before the call, so the clocks of "
                           "host and device disagree or correlation ids were used twice.");
  }
  return answer;
}

}  // namespace

Analysis launches_analysis() {
  return {"launches", "What does launching work cost, and how much is queued?", run_launches};
}

}  // namespace stepscope::analyze
