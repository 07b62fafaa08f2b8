// idle: when is the device idle, and why. Every gap in which no stream of a device has work gets one cause; see
// model/idle_gaps.h for how causes are judged and on which evidence.
#include <algorithm>
#include <map>
#include <tuple>

#include "analyze/analysis.h"
#include "base/key_index.h"
#include "model/answer_parts.h"
#include "model/idle_gaps.h"

namespace stepscope::analyze {
namespace {

constexpr std::size_t kGapsShown = 100;  // of the biggest gaps, where no other limit is asked for

struct DeviceGaps {
  const Trace* trace;
  const DeviceTime* device;
  std::vector<IdleGap> gaps;
  std::vector<std::int64_t> in_span, in_steps;  // per gap: how much of it lies in each window
};

DeviceGaps measure(const Trace& trace, const DeviceTime& device) {
  DeviceGaps out{.trace = &trace, .device = &device, .gaps = idle_gaps(trace, device)};
  for (const IdleGap& gap : out.gaps) {
    const Interval& when = gap.when;
    const bool inside = when.start >= device.span.start && when.end <= device.span.end;
    out.in_span.push_back(inside ? when.end - when.start : 0);
    out.in_steps.push_back(shared_length(std::span(&when, 1), device.steps));
  }
  return out;
}

Value name_of(const Trace& trace, SliceId id) { return id == SliceId::none ? Value() : text(trace.name(id)); }

Value work_name(const Trace& trace, std::uint32_t row) {
  return row == IdleGap::none ? Value() : text(trace.name(trace.device.slice[row]));
}

Table causes_table(const std::vector<DeviceGaps>& devices) {
  Table table{
      .name = "causes",
      .columns = {{"rank", ValueType::integer, Unit::none, "Rank"},
                  {"device", ValueType::integer, Unit::none, "Device of the rank"},
                  {"cause", ValueType::text, Unit::none, "Why the device was idle"},
                  {"gaps", ValueType::integer, Unit::count, "Gaps of this cause"},
                  {"idle_span_ns", ValueType::integer, Unit::ns, "Idle time of this cause in the window span"},
                  {"idle_steps_ns", ValueType::integer, Unit::ns,
                   "Idle time of this cause inside the whole steps; unknown without steps"},
                  {"share_of_idle", ValueType::real, Unit::ratio, "Share of the device's idle time in the span"},
                  {"share_of_span", ValueType::real, Unit::ratio, "Share of the span"},
                  {"longest_ns", ValueType::integer, Unit::ns, "Longest gap of this cause"},
                  {"meaning", ValueType::text, Unit::none, "What the cause says"}}};
  for (const DeviceGaps& found : devices) {
    struct Sum {
      std::int64_t gaps = 0, span_ns = 0, steps_ns = 0, longest_ns = 0;
    };
    std::array<Sum, kIdleCauses> sums{};
    std::int64_t idle_ns = 0;
    for (std::size_t i = 0; i < found.gaps.size(); i++) {
      Sum& sum = sums[static_cast<std::size_t>(found.gaps[i].cause)];
      sum.gaps++;
      sum.span_ns += found.in_span[i];
      sum.steps_ns += found.in_steps[i];
      sum.longest_ns = std::max(sum.longest_ns, found.gaps[i].when.end - found.gaps[i].when.start);
      idle_ns += found.in_span[i];
    }
    for (std::size_t cause = 0; cause < kIdleCauses; cause++) {
      const Sum& sum = sums[cause];
      if (sum.gaps == 0) continue;
      table.rows.push_back({found.device->rank, device_number(*found.device),
                            std::string(to_string(static_cast<IdleCause>(cause))), sum.gaps, sum.span_ns,
                            found.device->steps.empty() ? Value() : Value(sum.steps_ns), share(sum.span_ns, idle_ns),
                            share(sum.span_ns, found.device->span.end - found.device->span.start), sum.longest_ns,
                            std::string(meaning_of(static_cast<IdleCause>(cause)))});
    }
  }
  return table;
}

// What the host did while devices were idle: the gaps of all devices by cause, phase and operator.
Table by_op_table(const std::vector<DeviceGaps>& devices) {
  struct Sum {
    std::int64_t gaps = 0, ns = 0, devices = 0;
  };
  std::map<std::tuple<std::uint64_t, std::uint64_t, std::string_view>, Sum> sums;
  for (const DeviceGaps& found : devices) {
    KeyIndex keys;  // names as numbers first: there can be a million gaps
    std::vector<Sum> own;
    for (const IdleGap& gap : found.gaps) {
      const auto name = gap.host_op == SliceId::none ? StringId::none : found.trace->slices.name[gap.host_op];
      const std::uint32_t at = keys[static_cast<std::uint64_t>(gap.cause) << 40 |
                                    static_cast<std::uint64_t>(gap.phase) << 32 | static_cast<std::uint32_t>(name)];
      if (at == own.size()) own.push_back({});
      own[at].gaps++;
      own[at].ns += gap.when.end - gap.when.start;
    }
    for (std::uint32_t at = 0; at < own.size(); at++) {
      const std::uint64_t key = keys.key(at);
      const std::string_view op = found.trace->strings[static_cast<StringId>(key & 0xffffffff)];
      Sum& sum = sums[{key >> 40, std::min<std::uint64_t>(key >> 32 & 0xff, kPhases - 1), op}];
      sum.gaps += own[at].gaps;
      sum.ns += own[at].ns;
      sum.devices++;
    }
  }
  Table table{.name = "by_op",
              .columns = {{"cause", ValueType::text, Unit::none, "Why the device was idle"},
                          {"phase", ValueType::text, Unit::none, "Phase of the host, or of the work that follows"},
                          {"op", ValueType::text, Unit::none,
                           "Operator or call that took most of the gap on the launching thread; unknown: none did"},
                          {"devices", ValueType::integer, Unit::count, "Devices with such gaps, of all ranks"},
                          {"gaps", ValueType::integer, Unit::count, "Gaps"},
                          {"idle_ns", ValueType::integer, Unit::ns, "Their length, all devices together"}}};
  for (const auto& [key, sum] : sums) {
    const auto& [cause, phase, op] = key;
    table.rows.push_back({std::string(to_string(static_cast<IdleCause>(cause))),
                          std::string(to_string(static_cast<Phase>(phase))), text(op), sum.devices, sum.gaps, sum.ns});
  }
  std::stable_sort(table.rows.begin(), table.rows.end(), [](const auto& a, const auto& b) {
    return std::get<std::int64_t>(a.back()) > std::get<std::int64_t>(b.back());
  });
  return table;
}

struct BigGap {
  const DeviceGaps* device;
  std::size_t gap;
  std::int64_t length_ns;
};

std::vector<BigGap> biggest(const std::vector<DeviceGaps>& devices, std::size_t wanted, std::size_t& all) {
  std::vector<BigGap> gaps;
  for (const DeviceGaps& device : devices) {
    for (std::size_t i = 0; i < device.gaps.size(); i++) {
      gaps.push_back({&device, i, device.gaps[i].when.end - device.gaps[i].when.start});
    }
  }
  all = gaps.size();
  const std::size_t kept = std::min(wanted, gaps.size());
  std::partial_sort(
      gaps.begin(), gaps.begin() + static_cast<std::ptrdiff_t>(kept), gaps.end(), [](const BigGap& a, const BigGap& b) {
        return a.length_ns != b.length_ns ? a.length_ns > b.length_ns
                                          : a.device->gaps[a.gap].when.start < b.device->gaps[b.gap].when.start;
      });
  gaps.resize(kept);
  return gaps;
}

Table gaps_table(const std::vector<DeviceGaps>& devices, std::size_t max_rows, Answer& answer) {
  Table table{
      .name = "gaps",
      .columns = {
          {"rank", ValueType::integer, Unit::none, "Rank"},
          {"device", ValueType::integer, Unit::none, "Device of the rank"},
          {"start_ns", ValueType::integer, Unit::ns, "When the device ran dry, on the clock of the file"},
          {"idle_ns", ValueType::integer, Unit::ns, "Length of the gap"},
          {"cause", ValueType::text, Unit::none, "Why the device was idle"},
          {"why", ValueType::text, Unit::none, "Which evidence decided"},
          {"phase", ValueType::text, Unit::none, "Phase of the host, or of the work that follows"},
          {"op", ValueType::text, Unit::none, "Operator or call that took most of the gap on the launching thread"},
          {"function", ValueType::text, Unit::none, "Python function around it, where recorded"},
          {"before", ValueType::text, Unit::none, "Device work that ended before the gap"},
          {"after", ValueType::text, Unit::none, "Device work that ended the gap"},
          {"waited_stream", ValueType::integer, Unit::none, "Stream that was waited for, where known"}}};
  std::size_t all = 0;
  const std::size_t wanted = max_rows > 0 ? max_rows : kGapsShown;
  for (const BigGap& big : biggest(devices, wanted, all)) {
    const Trace& trace = *big.device->trace;
    const IdleGap& gap = big.device->gaps[big.gap];
    table.rows.push_back({big.device->device->rank, device_number(*big.device->device), gap.when.start, big.length_ns,
                          std::string(to_string(gap.cause)), std::string(gap.why), std::string(to_string(gap.phase)),
                          name_of(trace, gap.host_op), name_of(trace, gap.function), work_name(trace, gap.before),
                          work_name(trace, gap.after),
                          gap.waited_stream == kAbsent ? Value() : Value(gap.waited_stream)});
  }
  if (all > wanted) {
    answer.notes.push_back("Table gaps shows the " + std::to_string(wanted) + " longest of " + std::to_string(all) +
                           " gaps; the tables causes and by_op count all of them.");
  }
  return table;
}

// The longest of its gaps, as the moment to look at.
template <class IsCause>
void show_longest(Finding& finding, const std::vector<DeviceGaps>& devices, const IsCause& is_cause) {
  std::int64_t longest = 0;
  for (const DeviceGaps& found : devices) {
    for (std::size_t i = 0; i < found.gaps.size(); i++) {
      if (!is_cause(found.gaps[i].cause) || found.in_span[i] <= longest) continue;
      longest = found.in_span[i];
      finding.where.rank = found.device->rank;
      finding.where.t_ns = found.gaps[i].when.start;
    }
  }
}

void find_host_bound(Answer& answer, const std::vector<DeviceGaps>& devices, const Table& by_op) {
  std::int64_t host_ns = 0, window_ns = 0;
  const auto by_host = [](IdleCause cause) {
    return cause == IdleCause::host_bound || cause == IdleCause::launch_bound;
  };
  for (const DeviceGaps& found : devices) {
    window_ns += found.device->span.end - found.device->span.start;
    for (std::size_t i = 0; i < found.gaps.size(); i++) {
      if (by_host(found.gaps[i].cause)) host_ns += found.in_span[i];
    }
  }
  if (host_ns * 10 <= window_ns) return;  // below a tenth of the window there is little to win
  Finding finding{.id = "host_bound_idle",
                  .cause = "host",
                  .sentence = "The device waits for the host: work is launched later than the device could take it",
                  .evidence = {{.text = "Share of the span in which the device was idle because of the host",
                                .value = share(host_ns, window_ns),
                                .unit = Unit::ratio},
                               {.text = "Idle time because of the host", .value = host_ns, .unit = Unit::ns}},
                  .gain_reason = std::string(kNoGain),
                  .confidence = "high",
                  .next =
                      "Look at the table idle.by_op, then try torch.compile or CUDA graphs on the part that it names, "
                      "or larger batches",
                  .changes = {{.kind = ChangeKind::scale, .target = "host:*", .value = 0.5}}};
  for (const auto& row : by_op.rows) {
    const auto& [cause, phase, op] = std::tie(row[0], row[1], row[2]);
    if (cause != Value(std::string(to_string(IdleCause::host_bound))) || op == Value()) continue;
    finding.where.op = std::get<std::string>(op);
    finding.where.phase = std::get<std::string>(phase);
    break;
  }
  show_longest(finding, devices, by_host);
  answer.findings.push_back(std::move(finding));
}

void find_synchronization(Answer& answer, const std::vector<DeviceGaps>& devices) {
  std::int64_t late_ns = 0, window_ns = 0, gaps = 0;
  for (const DeviceGaps& found : devices) {
    window_ns += found.device->span.end - found.device->span.start;
    for (std::size_t i = 0; i < found.gaps.size(); i++) {
      if (found.gaps[i].cause != IdleCause::synchronization) continue;
      late_ns += found.in_span[i];
      gaps++;
    }
  }
  if (late_ns * 20 <= window_ns) return;
  answer.findings.push_back(
      {.id = "synchronization_idle",
       .cause = "host",
       .sentence =
           "The host waits for the device to finish and only then prepares the next work, which leaves the device idle",
       .evidence = {{.text = "Share of the span", .value = share(late_ns, window_ns), .unit = Unit::ratio},
                    {.text = "Gaps", .value = gaps, .unit = Unit::count}},
       .gain_reason = std::string(kNoGain),
       .confidence = "high",
       .next = "Look for .item(), .cpu(), print(loss) or torch.cuda.synchronize() in the step, and move them out of it "
               "or make them rare",
       .changes = {{.kind = ChangeKind::no_waits}}});
  show_longest(answer.findings.back(), devices, [](IdleCause cause) { return cause == IdleCause::synchronization; });
}

Result<Answer> run_idle(const Run& run, const AnalyzeOptions& options) {
  if (auto derived = require_derived(run); !derived) return fail(derived.error());
  Answer answer;
  const auto ranks = rank_times(run);
  std::vector<DeviceGaps> devices;
  std::int64_t gaps = 0;
  for (const RankTime& rank : ranks) {
    for (const DeviceTime& device : rank.devices) {
      devices.push_back(measure(*rank.trace, device));
      gaps += static_cast<std::int64_t>(devices.back().gaps.size());
    }
  }
  add_window_lengths(answer, ranks);
  add_window_scalars(answer, ranks, "busy", "Time in which some stream of the device had work", busy_in);
  add_window_scalars(
      answer, ranks, "idle", "Time in which no stream of the device had work",
      [](const DeviceTime& device, const Intervals& window) { return length(window) - busy_in(device, window); });
  add_window_ratios(
      answer, ranks, "idle_ratio_span", "idle_ratio_steps", "Share of the window in which the device was idle",
      [](const DeviceTime& device, const Intervals& window) { return length(window) - busy_in(device, window); },
      window_length);
  add_scalar(answer, "gap_count", devices.empty() ? Value() : Value(gaps), Unit::count,
             devices.empty() ? kNoDeviceWork : "Gaps between device work, of all devices");
  Table by_op = by_op_table(devices);
  find_host_bound(answer, devices, by_op);
  find_synchronization(answer, devices);
  limit_rows(answer, by_op, options.max_rows, "those with less idle time");
  answer.tables = {causes_table(devices), std::move(by_op), gaps_table(devices, options.max_rows, answer)};
  if (devices.empty()) {
    answer.notes.push_back(std::string(kNoDeviceWork));
  } else {
    answer.notes.push_back(
        "Waits on the device (Stream Wait Event, Context Sync) are not work, so the device counts as idle in them.");
  }
  return answer;
}

}  // namespace

Analysis idle_analysis() { return {"idle", "When is the device idle, and why?", run_idle}; }

}  // namespace stepscope::analyze
