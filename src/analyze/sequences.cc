// sequences: which kernels follow each other again and again on a stream, and which runs of short kernels could be one.
//
// What fusing would win is not computed: the memory traffic that it saves is not in the recording. The gaps between the
// kernels of a run, and the host time of launching all but its first, are what it wins at least.
#include <algorithm>

#include "analyze/analysis.h"
#include "model/answer_parts.h"
#include "model/kernel_sequences.h"
#include "model/lookup.h"

namespace stepscope::analyze {
namespace {

constexpr std::size_t kMostNames = 32;

struct StreamFound {
  const Trace* trace;
  const DeviceTime* device;
  std::int64_t stream;
  StreamSequences sequences;
};

std::string names_of(const Trace& trace, const Sequence& sequence) {
  std::string out;
  for (std::size_t i = 0; i < std::min(sequence.example.size(), kMostNames); i++) {
    if (i > 0) out += " | ";
    out += trace.name(trace.device.slice[sequence.example[i]]);
  }
  return out;
}

// The innermost operator, range or frame that holds all launches of the example; none: on several threads, or nothing.
SliceId around(const Trace& trace, const Sequence& sequence) {
  const SliceId first = trace.device.launch[sequence.example.front()];
  const SliceId last = trace.device.launch[sequence.example.back()];
  if (first == SliceId::none || last == SliceId::none) return SliceId::none;
  SliceId holds = trace.slices.parent[first];
  for (int level = 0; holds != SliceId::none && level < kDeepestWalk; level++) {
    if (trace.slices.track[holds] != trace.slices.track[last]) return SliceId::none;
    if (trace.slices.end_ns(holds) >= trace.slices.end_ns(last)) return holds;
    holds = trace.slices.parent[holds];
  }
  return SliceId::none;
}

StringId module_around(const Trace& trace, SliceId id) {
  for (int level = 0; id != SliceId::none && level < kDeepestWalk; level++) {
    const auto found = std::lower_bound(trace.modules.begin(), trace.modules.end(), id,
                                        [](const ModuleCall& m, SliceId wanted) { return m.slice < wanted; });
    if (found != trace.modules.end() && found->slice == id) return found->name;
    id = trace.slices.parent[id];
  }
  return StringId::none;
}

// Host time of the calls of the example that fusing would save; a graph has no call for each kernel.
std::int64_t launch_ns(const Trace& trace, const Sequence& sequence) {
  std::int64_t sum = 0;
  for (std::size_t i = 1; i < sequence.example.size(); i++) {
    const SliceId launch = trace.device.launch[sequence.example[i]];
    if (launch != SliceId::none && launch != trace.device.launch[sequence.example[i - 1]])
      sum += trace.slices.dur_ns[launch];
  }
  return sum * sequence.count;
}

std::vector<TableColumn> columns(std::string_view gap_meaning) {
  return {{"rank", ValueType::integer, Unit::none, "Rank"},
          {"device", ValueType::integer, Unit::none, "Device of the rank"},
          {"stream", ValueType::integer, Unit::none, "Stream"},
          {"length", ValueType::integer, Unit::count, "Pieces of work in a row"},
          {"count", ValueType::integer, Unit::count, "How often the run occurs, without overlaps"},
          {"device_ns", ValueType::integer, Unit::ns, "Sum of durations of all occurrences"},
          {"share", ValueType::real, Unit::ratio, "Share of the summed device work of this rank's device"},
          {"gap_ns", ValueType::integer, Unit::ns, std::string(gap_meaning)},
          {"launch_ns", ValueType::integer, Unit::ns,
           "Host time of launching all but the first piece, from the first occurrence times the count"},
          {"around", ValueType::text, Unit::none,
           "Innermost operator, range or frame that holds the launches of the first occurrence"},
          {"module", ValueType::text, Unit::none, "Module around it; unknown: none is recorded"},
          {"phase", ValueType::text, Unit::none, "Phase of the first piece"},
          {"kernels", ValueType::text, Unit::none, "Names in order, separated by |"}};
}

std::vector<Value> row_of(const StreamFound& found, const Sequence& sequence) {
  const Trace& trace = *found.trace;
  const SliceId holds = around(trace, sequence);
  const StringId name = op_name(trace, holds);
  const auto phase = std::min<std::size_t>(trace.device.phase[sequence.example.front()], kPhases - 1);
  return {found.device->rank,
          device_number(*found.device),
          present(found.stream),
          count(sequence.example.size()),
          sequence.count,
          sequence.device_ns,
          share(sequence.device_ns, found.device->work_ns),
          sequence.gap_ns,
          launch_ns(trace, sequence),
          text(trace.strings[name]),
          text(trace.strings[module_around(trace, holds)]),
          std::string(to_string(static_cast<Phase>(phase))),
          names_of(trace, sequence)};
}

void sort_by(Table& table, std::size_t column) {
  std::stable_sort(table.rows.begin(), table.rows.end(), [&](const auto& a, const auto& b) {
    return std::get<std::int64_t>(a[column]) > std::get<std::int64_t>(b[column]);
  });
}

struct Totals {
  std::int64_t span_ns = 0, work_ns = 0, repeated_ns = 0, kernels = 0, fusible_ns = 0, gap_ns = 0, runs = 0;
};

// Only where the device loses time between the kernels of such runs.
void find_fusible(Answer& answer, const Totals& totals, const Table& table) {
  if (totals.gap_ns * 50 <= totals.span_ns || table.rows.empty()) return;
  Finding finding{
      .id = "fusible_kernels",
      .cause = "kernel",
      .sentence = "Runs of short kernels that only read and write memory leave the device idle in between",
      .evidence = {{.text = "Gaps within such runs", .value = totals.gap_ns, .unit = Unit::ns},
                   {.text = "Share of the span", .value = share(totals.gap_ns, totals.span_ns), .unit = Unit::ratio},
                   {.text = "Kernels in such runs", .value = totals.kernels, .unit = Unit::count}},
      .gain_reason = "At least the gaps; the memory traffic that fusing saves is not in the recording.",
      .confidence = "medium",
      .next = "torch.compile fuses such runs; sequences.fusible shows them with the place"};
  const auto& first = table.rows.front();
  finding.where.rank = std::get<std::int64_t>(first[0]);
  if (const auto* op = std::get_if<std::string>(&first[9])) finding.where.op = *op;
  if (const auto* module = std::get_if<std::string>(&first[10])) finding.where.module = *module;
  finding.where.phase = std::get<std::string>(first[11]);
  answer.findings.push_back(std::move(finding));
}

Result<Answer> run_sequences(const Run& run, const AnalyzeOptions& options) {
  if (auto derived = require_derived(run); !derived) return fail(derived.error());
  Answer answer;
  const auto ranks = rank_times(run);
  Totals totals;
  Table repeated{.name = "repeated",
                 .columns = columns("Time between its pieces in which the stream ran nothing, over all occurrences")};
  Table fusible{.name = "fusible",
                .columns = columns(
                    "The same: what fusing wins on the device at least, where the device then waits for nothing else")};
  for (const RankTime& rank : ranks) {
    for (const DeviceTime& device : rank.devices) {
      totals.span_ns += device.span.end - device.span.start;
      totals.work_ns += device.work_ns;
      for (const auto& stream : rows_by_stream(*rank.trace, device.rows)) {
        const StreamFound found{rank.trace, &device, rank.trace->device.stream[stream.front()],
                                stream_sequences(*rank.trace, stream)};
        for (const Sequence& sequence : found.sequences.repeated) {
          repeated.rows.push_back(row_of(found, sequence));
          totals.repeated_ns += sequence.device_ns;
        }
        for (const Sequence& sequence : found.sequences.fusible) {
          fusible.rows.push_back(row_of(found, sequence));
          totals.fusible_ns += sequence.device_ns;
          totals.gap_ns += sequence.gap_ns;
          totals.runs += sequence.count;
          totals.kernels += sequence.count * static_cast<std::int64_t>(sequence.example.size());
        }
      }
    }
  }
  sort_by(repeated, 5);
  sort_by(fusible, 7);
  const bool known = has_device_work(ranks);
  const auto scalar = [&](std::string_view name, Value value, Unit unit, std::string_view meaning) {
    add_scalar(answer, name, known ? std::move(value) : Value(), unit, known ? meaning : kNoDeviceWork);
  };
  scalar("repeated_share", share(totals.repeated_ns, totals.work_ns), Unit::ratio,
         "Share of the summed device work that lies in the repeated sequences shown");
  scalar("fusible_run_count", totals.runs, Unit::count, "Runs of two and more short kernels that only move memory");
  scalar("fusible_kernel_count", totals.kernels, Unit::count, "Kernels in them");
  scalar("fusible_ns", totals.fusible_ns, Unit::ns, "Device time of these kernels");
  scalar("fusible_gap_ns", totals.gap_ns, Unit::ns, "Gaps between them: what fusing wins on the device at least");
  find_fusible(answer, totals, fusible);
  limit_rows(answer, repeated, options.max_rows, "those with less device time");
  limit_rows(answer, fusible, options.max_rows, "those with shorter gaps");
  answer.tables = {std::move(repeated), std::move(fusible)};
  answer.notes.push_back(known ? "A sequence lies within one step and has 2 to 32 pieces; each piece counts for one "
                                 "sequence of its stream, the one with most device time first."
                               : std::string(kNoDeviceWork));
  return answer;
}

}  // namespace

Analysis sequences_analysis() {
  return {"sequences", "Which kernels follow each other again and again, and which could be fused?", run_sequences};
}

}  // namespace stepscope::analyze
