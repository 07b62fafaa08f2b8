// annotations: what the program's own ranges (record_function, NVTX, step marks) cost, as nested paths, on the host and
// on the device; and the ranges that the profiler mirrored onto device streams.
#include <algorithm>
#include <array>
#include <map>

#include "analyze/analysis.h"
#include "model/answer_parts.h"
#include "model/path_tree.h"

namespace stepscope::analyze {
namespace {

constexpr std::array kRangeKinds{SliceKind::user_annotation};

Value per(std::int64_t sum, std::size_t steps) {
  return steps > 0 ? Value(static_cast<double>(sum) / static_cast<double>(steps)) : Value();
}

struct RankPaths {
  const Trace* trace;
  PathTree tree;
  std::size_t whole_steps = 0;
};

Table paths_table(const std::vector<RankPaths>& ranks) {
  Table table{
      .name = "paths",
      .columns = {
          {"rank", ValueType::integer, Unit::none, "Rank"},
          {"path", ValueType::text, Unit::none, "Ranges from the outermost to this one; steps of all numbers are one"},
          {"depth", ValueType::integer, Unit::none, "Ranges around it"},
          {"calls", ValueType::integer, Unit::count, "How often it ran"},
          {"host_total_ns", ValueType::integer, Unit::ns, "Host time of all calls"},
          {"host_self_ns", ValueType::integer, Unit::ns, "The same without the ranges inside"},
          {"device_ns", ValueType::integer, Unit::ns,
           "Time in which device work launched within it ran; unknown without device work"},
          {"device_self_ns", ValueType::integer, Unit::ns, "The same for work launched in none of the ranges inside"},
          {"calls_per_step", ValueType::real, Unit::none,
           "Calls that began in whole steps, over these steps; unknown without steps"},
          {"host_ns_per_step", ValueType::real, Unit::ns, "Host time of these calls over these steps"}}};
  for (const RankPaths& rank : ranks) {
    const auto& nodes = rank.tree.nodes;
    std::vector<std::uint32_t> order(nodes.size());
    for (std::uint32_t i = 0; i < order.size(); i++) order[i] = i;
    std::stable_sort(order.begin(), order.end(),
                     [&](std::uint32_t a, std::uint32_t b) { return nodes[a].total_ns > nodes[b].total_ns; });
    const bool device = rank.trace->device.size() > 0;
    for (const std::uint32_t at : order) {
      const PathNode& node = nodes[at];
      table.rows.push_back(
          {rank.trace->rank.rank, rank.tree.path(*rank.trace, at, "/"), std::int64_t{node.depth}, count(node.calls),
           node.total_ns, node.self_ns, value_if(device, node.device_ns), value_if(device, node.device_self_ns),
           per(static_cast<std::int64_t>(node.step_calls), rank.whole_steps), per(node.step_ns, rank.whole_steps)});
    }
  }
  return table;
}

// Ranges on device streams: from the first to the last work launched within, so they hold idle time as well.
void add_mirrored(Table& table, const Trace& trace) {
  std::map<std::pair<TrackId, std::string>, std::vector<Interval>> found;
  std::map<TrackId, std::vector<Interval>> work;
  for (std::size_t row = 0; row < trace.slices.size(); row++) {
    const auto id = static_cast<SliceId>(row);
    if (trace.kind(id) != SliceKind::gpu_user_annotation) continue;
    found[{trace.slices.track[id], path_name(trace.name(id))}].push_back(
        {trace.slices.start_ns[id], trace.slices.end_ns(id)});
    work[trace.slices.track[id]];
  }
  if (found.empty()) return;
  for (std::size_t row = 0; row < trace.device.size(); row++) {
    const SliceId id = trace.device.slice[row];
    const auto lane = work.find(trace.slices.track[id]);
    if (lane != work.end() && is_device_work(trace.kind(id)))
      lane->second.push_back({trace.slices.start_ns[id], trace.slices.end_ns(id)});
  }
  for (auto& [track, intervals] : work) intervals = make_intervals(std::move(intervals));
  for (auto& [key, intervals] : found) {
    const auto calls = static_cast<std::int64_t>(intervals.size());
    const Intervals ranges = make_intervals(std::move(intervals));
    const Track& track = trace.tracks[static_cast<std::size_t>(key.first)];
    table.rows.push_back({trace.rank.rank, text(trace.strings[track.process]), text(trace.strings[track.thread]),
                          key.second, calls, length(ranges), shared_length(ranges, work[key.first])});
  }
}

Table mirrored_table(const Run& run) {
  Table table{.name = "on_device",
              .columns = {{"rank", ValueType::integer, Unit::none, "Rank"},
                          {"device", ValueType::text, Unit::none, "Device, as the trace spells it"},
                          {"stream", ValueType::text, Unit::none, "Stream, as the trace spells it"},
                          {"name", ValueType::text, Unit::none, "Range"},
                          {"calls", ValueType::integer, Unit::count, "How often it is there"},
                          {"total_ns", ValueType::integer, Unit::ns,
                           "Time covered on the stream, from the first to the last work of each call"},
                          {"busy_ns", ValueType::integer, Unit::ns, "Part of it in which work of this stream ran"}}};
  for (const Trace& trace : run.traces) add_mirrored(table, trace);
  std::stable_sort(table.rows.begin(), table.rows.end(), [](const auto& a, const auto& b) {
    return std::get<std::int64_t>(a[6]) > std::get<std::int64_t>(b[6]);
  });
  return table;
}

constexpr std::string_view kNoRanges =
    "No ranges of the program were recorded. Mark parts of it with torch.profiler.record_function(\"name\") or NVTX.";

Result<Answer> run_annotations(const Run& run, const AnalyzeOptions& options) {
  if (auto derived = require_derived(run); !derived) return fail(derived.error());
  Answer answer;
  std::vector<RankPaths> ranks;
  std::uint64_t calls = 0, outside = 0;
  for (const Trace& trace : run.traces) {
    const auto whole = std::count_if(trace.steps.begin(), trace.steps.end(), [](const Step& s) { return !s.partial; });
    ranks.push_back({&trace, path_tree(trace, kRangeKinds), static_cast<std::size_t>(whole)});
    for (const PathNode& node : ranks.back().tree.nodes) calls += node.calls;
    outside += ranks.back().tree.work_outside;
  }
  answer.tables = {paths_table(ranks), mirrored_table(run)};
  add_scalar(answer, "call_count", value_if(calls > 0, static_cast<std::int64_t>(calls)), Unit::count,
             calls > 0 ? "Ranges on host threads, of all ranks" : kNoRanges);
  add_scalar(answer, "work_outside_count", value_if(calls > 0, static_cast<std::int64_t>(outside)), Unit::count,
             calls > 0 ? "Device work launched outside all ranges, or whose launch is unknown" : kNoRanges);
  limit_rows(answer, answer.tables[0], options.max_rows, "those with less host time");
  limit_rows(answer, answer.tables[1], options.max_rows, "those with less work");
  std::uint64_t too_deep = 0;
  for (const RankPaths& rank : ranks) too_deep += rank.tree.too_deep;
  if (too_deep > 0) answer.notes.push_back(too_deep_note(too_deep));
  if (calls == 0) {
    answer.notes.push_back(std::string(kNoRanges));
  } else {
    answer.notes.push_back(
        "Work that backward operators launch on autograd's own thread counts for the range in which the thread of the "
        "steps stood meanwhile.");
  }
  return answer;
}

}  // namespace

Analysis annotations_analysis() { return {"annotations", "What do the program's own ranges cost?", run_annotations}; }

}  // namespace stepscope::analyze
