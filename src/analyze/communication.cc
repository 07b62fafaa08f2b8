// communication: how much there is, how much of it is hidden behind compute, and how fast each collective is.
//
// hidden = length(union of communication ∩ union of compute), exposed = the rest. Bytes come from the recorded metadata
// (record_param_comms or the kernel's own); where there is none they are unknown, never guessed. On one rank the time
// of a collective contains the wait for the other ranks, so bandwidth from it is a lower bound.
#include <algorithm>
#include <map>

#include "analyze/analysis.h"
#include "base/key_index.h"
#include "model/answer_parts.h"
#include "model/collective_work.h"
#include "model/kernel_groups.h"

namespace stepscope::analyze {
namespace {

std::int64_t communication_in(const DeviceTime& device, const Intervals& window) {
  return shared_length(device.of(DeviceClass::communication), window);
}
std::int64_t hidden_in(const DeviceTime& device, const Intervals& window) {
  return shared_length(intersect(device.of(DeviceClass::communication), device.of(DeviceClass::compute)), window);
}
std::int64_t exposed_in(const DeviceTime& device, const Intervals& window) {
  return communication_in(device, window) - hidden_in(device, window);
}

Table devices_table(const std::vector<RankTime>& ranks) {
  Table table{
      .name = "devices",
      .columns = {{"rank", ValueType::integer, Unit::none, "Rank"},
                  {"device", ValueType::integer, Unit::none, "Device of the rank"},
                  {"communication_span_ns", ValueType::integer, Unit::ns, "Union of communication in the span"},
                  {"hidden_span_ns", ValueType::integer, Unit::ns, "Of this, while compute ran"},
                  {"exposed_span_ns", ValueType::integer, Unit::ns, "Of this, while no compute ran"},
                  {"hidden_ratio_span", ValueType::real, Unit::ratio, "Hidden over all; unknown without communication"},
                  {"communication_steps_ns", ValueType::integer, Unit::ns, "The same inside the whole steps"},
                  {"hidden_steps_ns", ValueType::integer, Unit::ns, "The same inside the whole steps"},
                  {"exposed_steps_ns", ValueType::integer, Unit::ns, "The same inside the whole steps"},
                  {"hidden_ratio_steps", ValueType::real, Unit::ratio, "The same inside the whole steps"}}};
  for (const RankTime& rank : ranks) {
    for (const DeviceTime& device : rank.devices) {
      std::vector<Value> row{device.rank, device_number(device)};
      for (const Intervals& window : {make_intervals({device.span}), device.steps}) {
        if (window.empty()) {
          row.insert(row.end(), 4, Value());
          continue;
        }
        const std::int64_t all = communication_in(device, window), hidden = hidden_in(device, window);
        row.insert(row.end(), {all, hidden, all - hidden, share(hidden, all)});
      }
      table.rows.push_back(std::move(row));
    }
  }
  return table;
}

// Communication kernels of one collective kind, group and type; or, without metadata, of one rule or name.
struct CommunicationLine {
  std::uint32_t collective = kNoCollective;  // example
  std::uint32_t row = 0;                     // example
  std::int64_t count = 0, time_ns = 0, bytes = 0, bytes_unknown = 0;
  std::vector<Interval> when;
};

std::uint64_t line_key(const Trace& trace, std::uint32_t row, std::uint32_t collective, KeyIndex& kinds) {
  if (collective == kNoCollective) {
    return std::uint64_t{1} << 63 |
           static_cast<std::uint64_t>(static_cast<std::uint32_t>(trace.slices.name[trace.device.slice[row]]));
  }
  const Collectives& all = trace.collectives;
  const auto id = [](StringId string) { return static_cast<std::uint64_t>(static_cast<std::uint32_t>(string)); };
  const std::uint32_t kind_and_group = kinds[id(all.kind[collective]) << 32 | id(all.group_name[collective])];
  const std::uint32_t size_and_type =
      kinds[id(all.dtype[collective]) << 32 | static_cast<std::uint32_t>(all.group_size[collective])];
  return (static_cast<std::uint64_t>(kind_and_group) << 31 | size_and_type) & ~(std::uint64_t{1} << 63);
}

std::vector<CommunicationLine> lines_of(const Trace& trace, const DeviceTime& device) {
  KeyIndex kinds, keys;
  std::vector<CommunicationLine> lines;
  for (const std::uint32_t row : device.rows) {
    if (trace.device.device_class[row] != static_cast<std::uint8_t>(DeviceClass::communication)) continue;
    const std::uint32_t collective = collective_of(trace, row);
    const std::uint32_t at = keys[line_key(trace, row, collective, kinds)];
    if (at == lines.size()) lines.push_back({.collective = collective, .row = row});
    CommunicationLine& line = lines[at];
    const SliceId slice = trace.device.slice[row];
    line.count++;
    line.time_ns += trace.slices.dur_ns[slice];
    line.when.push_back({trace.slices.start_ns[slice], trace.slices.end_ns(slice)});
    const auto bytes = collective == kNoCollective ? std::nullopt : collective_bytes(trace, collective);
    bytes ? line.bytes += *bytes : line.bytes_unknown++;
  }
  return lines;
}

std::string kind_of(const Trace& trace, const CommunicationLine& line) {
  const std::string_view recorded = line.collective != kNoCollective
                                        ? trace.strings[trace.collectives.kind[line.collective]]
                                        : trace.name(trace.device.slice[line.row]);
  const CollectiveKind kind = collective_kind(recorded);
  if (kind != CollectiveKind::other) return std::string(to_string(kind));
  const ClassRule* rule = rule_of(trace, line.row);
  return std::string(rule != nullptr && !rule->family.empty() ? std::string_view(rule->family) : to_string(kind));
}

std::vector<Value> row_of(const Trace& trace, const DeviceTime& device, const CommunicationLine& line) {
  const bool metadata = line.collective != kNoCollective;
  const Collectives& all = trace.collectives;
  const std::int64_t size = metadata ? all.group_size[line.collective] : kAbsent;
  const bool bytes_known = line.bytes_unknown == 0;
  const Intervals when = make_intervals(line.when);
  const Value algorithm = bytes_known ? share(line.bytes, line.time_ns) : Value();  // bytes per ns = GB/s
  Value bus;
  if (const double* speed = std::get_if<double>(&algorithm); speed != nullptr && size != kAbsent) {
    const auto factor = bus_factor(collective_kind(trace.strings[all.kind[line.collective]]), size);
    if (factor) bus = *speed * *factor;
  }
  return {device.rank,
          device_number(device),
          kind_of(trace, line),
          std::string(trace.name(trace.device.slice[line.row])),
          metadata ? text(trace.strings[all.group_name[line.collective]]) : Value(),
          size == kAbsent ? Value() : Value(size),
          metadata ? text(trace.strings[all.dtype[line.collective]]) : Value(),
          line.count,
          bytes_known ? Value(line.bytes) : Value(),
          line.time_ns,
          length(when),
          length(subtract(when, device.of(DeviceClass::compute))),
          algorithm,
          bus};
}

Table collectives_table(const std::vector<RankTime>& ranks, bool& bytes_missing) {
  Table table{.name = "collectives",
              .columns = {{"rank", ValueType::integer, Unit::none, "Rank"},
                          {"device", ValueType::integer, Unit::none, "Device of the rank"},
                          {"kind", ValueType::text, Unit::none,
                           "Collective; from metadata, else from the kernel's name or its rule"},
                          {"kernel", ValueType::text, Unit::none, "Name of the first kernel of this row"},
                          {"group", ValueType::text, Unit::none, "Process group; unknown: not recorded"},
                          {"group_size", ValueType::integer, Unit::count, "Ranks in the group; unknown: not recorded"},
                          {"dtype", ValueType::text, Unit::none, "Element type; unknown: not recorded"},
                          {"count", ValueType::integer, Unit::count, "Kernels"},
                          {"bytes", ValueType::integer, Unit::bytes,
                           "Sum of the full buffer of each call; unknown where metadata is missing for any of them"},
                          {"time_ns", ValueType::integer, Unit::ns, "Sum of durations, waits for other ranks included"},
                          {"union_ns", ValueType::integer, Unit::ns, "Time in which at least one of them ran"},
                          {"exposed_ns", ValueType::integer, Unit::ns, "Of this, while no compute ran"},
                          {"algorithm_gb_per_s", ValueType::real, Unit::gb_per_s,
                           "Bytes over time; a lower bound, since the time contains the wait for other ranks"},
                          {"bus_gb_per_s", ValueType::real, Unit::gb_per_s,
                           "Algorithm bandwidth × the collective's bus factor; unknown without group size"}}};
  std::vector<std::pair<std::int64_t, std::vector<Value>>> found;
  for (const RankTime& rank : ranks) {
    for (const DeviceTime& device : rank.devices) {
      for (const CommunicationLine& line : lines_of(*rank.trace, device)) {
        bytes_missing = bytes_missing || line.bytes_unknown > 0;
        found.emplace_back(line.time_ns, row_of(*rank.trace, device, line));
      }
    }
  }
  std::stable_sort(found.begin(), found.end(), [](const auto& a, const auto& b) { return a.first > b.first; });
  for (auto& one : found) table.rows.push_back(std::move(one.second));
  return table;
}

// The calls on the host, as recorded; the only table that a run without a device (gloo) has.
Table calls_table(const Run& run) {
  Table table{.name = "calls",
              .columns = {{"rank", ValueType::integer, Unit::none, "Rank"},
                          {"kind", ValueType::text, Unit::none, "Collective as recorded"},
                          {"group", ValueType::text, Unit::none, "Process group; unknown: not recorded"},
                          {"group_size", ValueType::integer, Unit::count, "Ranks in the group; unknown: not recorded"},
                          {"dtype", ValueType::text, Unit::none, "Element type; unknown: not recorded"},
                          {"calls", ValueType::integer, Unit::count, "Calls on the host"},
                          {"bytes", ValueType::integer, Unit::bytes,
                           "Sum of the full buffer of each call; unknown where any lacks metadata"},
                          {"host_ns", ValueType::integer, Unit::ns, "Sum of the time inside the calls on the host"}}};
  for (const Trace& trace : run.traces) {
    struct Sum {
      std::int64_t calls = 0, bytes = 0, unknown = 0, host_ns = 0;
    };
    using Key = std::tuple<std::string_view, std::string_view, std::int64_t, std::string_view>;
    std::map<Key, Sum> sums;  // a handful of kinds and groups
    const Collectives& all = trace.collectives;
    for (std::uint32_t row = 0; row < all.size(); row++) {
      if (is_device_work(trace.kind(all.slice[row]))) continue;
      Sum& sum = sums[{trace.strings[all.kind[row]], trace.strings[all.group_name[row]], all.group_size[row],
                       trace.strings[all.dtype[row]]}];
      const auto bytes = collective_bytes(trace, row);
      sum.calls++;
      sum.host_ns += trace.slices.dur_ns[all.slice[row]];
      bytes ? sum.bytes += *bytes : sum.unknown++;
    }
    for (const auto& [key, sum] : sums) {
      const auto& [kind, group, size, dtype] = key;
      table.rows.push_back({trace.rank.rank, text(kind), text(group), size == kAbsent ? Value() : Value(size),
                            text(dtype), sum.calls, sum.unknown == 0 ? Value(sum.bytes) : Value(), sum.host_ns});
    }
  }
  return table;
}

void find_exposed(Answer& answer, const std::vector<RankTime>& ranks) {
  const bool steps = headline_is_steps(ranks);
  std::int64_t exposed = 0, whole = 0, worst = -1, worst_rank = 0;
  for (const RankTime& rank : ranks) {
    for (const DeviceTime& device : rank.devices) {
      const Intervals window = steps ? device.steps : make_intervals({device.span});
      const std::int64_t here = exposed_in(device, window);
      exposed += here;
      whole += length(window);
      if (here > worst) worst = here, worst_rank = rank.rank;
    }
  }
  if (exposed * 20 <= whole) return;  // below 5 % of the time
  Finding finding{.id = "exposed_communication",
                  .cause = "communication",
                  .sentence = "Communication runs while no compute does, so the step waits for it",
                  .where = {.phase = "communication"},
                  .evidence = {{.text = steps ? "Share of the whole steps" : "Share of the span",
                                .value = share(exposed, whole),
                                .unit = Unit::ratio},
                               {.text = "Exposed communication", .value = exposed, .unit = Unit::ns}},
                  .gain_reason = std::string(kNoGain),
                  .confidence = "high",
                  .next =
                      "Look at communication.collectives for the rows with most exposed_ns, and start them earlier, in "
                      "larger buckets, or on their own stream",
                  .changes = {{.kind = ChangeKind::overlap}}};
  if (ranks.size() > 1) finding.where.rank = worst_rank;
  answer.findings.push_back(std::move(finding));
}

Result<Answer> run_communication(const Run& run, const AnalyzeOptions& options) {
  if (auto derived = require_derived(run); !derived) return fail(derived.error());
  Answer answer;
  const auto ranks = rank_times(run);
  add_window_lengths(answer, ranks);
  add_window_scalars(answer, ranks, "communication", "Union of communication on the device", communication_in);
  add_window_scalars(answer, ranks, "communication_hidden", "Communication while compute ran", hidden_in);
  add_window_scalars(answer, ranks, "communication_exposed", "Communication while no compute ran", exposed_in);
  add_window_ratios(answer, ranks, "communication_hidden_ratio", "communication_hidden_ratio_steps",
                    "Share of communication that compute hides; unknown without communication", hidden_in,
                    communication_in);
  bool bytes_missing = false;
  Table collectives = collectives_table(ranks, bytes_missing), calls = calls_table(run);
  const bool any = !collectives.rows.empty();
  limit_rows(answer, collectives, options.max_rows, "those with less time");
  answer.tables = {devices_table(ranks), std::move(collectives)};
  if (!calls.rows.empty()) answer.tables.push_back(std::move(calls));
  find_exposed(answer, ranks);
  if (!has_device_work(ranks)) {
    answer.notes.push_back(std::string(kNoDeviceWork));
  } else if (!any) {
    answer.notes.push_back(
        "No device work is of class communication. If the run communicates by kernels of its own, name them in a rule; "
        "quality.unclassified lists what no rule knows.");
  }
  if (bytes_missing) {
    answer.notes.push_back(
        "Bytes and bandwidth are unknown where the recording has no metadata of the collective: torch 2.1 or newer "
        "writes it (record_param_comms) for process groups of torch.distributed.");
  }
  return answer;
}

}  // namespace

Analysis communication_analysis() {
  return {"communication", "How much communication is there, how much of it is hidden, and how fast is it?",
          run_communication};
}

}  // namespace stepscope::analyze
