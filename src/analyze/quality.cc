// quality: can the other answers be trusted, what is missing from the recording, and how to record it.
//
// Missing data is one row per rank with what it costs and the option that records it; nothing that is merely absent is
// reported as zero anywhere else because of it.
#include <algorithm>
#include <utility>

#include "analyze/analysis.h"
#include "model/answer_parts.h"
#include "model/kernel_groups.h"
#include "model/windows.h"

namespace stepscope::analyze {
namespace {

Table issues_table(const Run& run) {
  Table table{
      .name = "issues",
      .columns = {{"rank", ValueType::integer, Unit::none, "Rank; unknown: the run as a whole"},
                  {"code", ValueType::text, Unit::none, "Stable name of the issue"},
                  {"severity", ValueType::text, Unit::none, "info: odd; repaired: nothing lost; lost: data is missing"},
                  {"count", ValueType::integer, Unit::count, "How often it occurred"},
                  {"sentence", ValueType::text, Unit::none, "What is wrong"},
                  {"advice", ValueType::text, Unit::none, "What to do about it"}}};
  const auto add = [&](const Value& rank, const std::vector<Issue>& issues) {
    for (const Issue& issue : issues) {
      table.rows.push_back({rank, issue.code, std::string(to_string(issue.severity)), count(issue.count),
                            issue.sentence, text(issue.advice)});
    }
  };
  add(Value(), run.issues);
  for (const Trace& trace : run.traces) add(trace.rank.rank, trace.issues);
  for (const Trace& trace : run.snapshots) add(trace.rank.rank, trace.issues);
  return table;
}

Table links_table(const Run& run) {
  Table table{
      .name = "links",
      .columns = {
          {"rank", ValueType::integer, Unit::none, "Rank"},
          {"device_linked", ValueType::integer, Unit::count, "Device work whose launch call is known"},
          {"linked_by_flow", ValueType::integer, Unit::count, "Of these, known only from an arrow of the file"},
          {"device_unlinked", ValueType::integer, Unit::count, "Device work whose launch is not in the recording"},
          {"launches_with_work", ValueType::integer, Unit::count, "Launch calls whose device work is known"},
          {"launches_dropped", ValueType::integer, Unit::count, "Launch calls without any device work"},
          {"partial_overlaps", ValueType::integer, Unit::count,
           "Slices that overlap their neighbor without nesting; kept"}}};
  for (const Trace& trace : timelines(run)) {
    const LinkCounts& links = trace.links;
    table.rows.push_back({trace.rank.rank, count(links.device_linked), count(links.device_linked_by_flow),
                          count(links.device_unlinked), count(links.launches_with_work), count(links.launches_dropped),
                          count(links.partial_overlaps)});
  }
  return table;
}

Table unclassified_table(const std::vector<RankTime>& ranks, std::int64_t& unclassified_ns, std::int64_t& work_ns) {
  Table table{
      .name = "unclassified",
      .columns = {{"rank", ValueType::integer, Unit::none, "Rank"},
                  {"device", ValueType::integer, Unit::none, "Device of the rank"},
                  {"name", ValueType::text, Unit::none, "Device work that no rule knows"},
                  {"count", ValueType::integer, Unit::count, "How often it ran"},
                  {"total_ns", ValueType::integer, Unit::ns, "Sum of durations"},
                  {"share", ValueType::real, Unit::ratio, "Share of the summed device work of this rank's device"}}};
  for (const RankTime& rank : ranks) {
    for (const DeviceTime& device : rank.devices) {
      work_ns += device.work_ns;
      for (const KernelGroup& group : kernel_groups(*rank.trace, device.rows, KernelKey::name)) {
        if (rank.trace->device.device_class[group.example] != 0) continue;
        unclassified_ns += group.total_ns;
        table.rows.push_back({device.rank, device.device < 0 ? Value() : Value(std::int64_t{device.device}),
                              std::string(rank.trace->name(rank.trace->device.slice[group.example])),
                              count(group.count), group.total_ns, share(group.total_ns, device.work_ns)});
      }
    }
  }
  std::stable_sort(table.rows.begin(), table.rows.end(), [](const auto& a, const auto& b) {
    return std::get<std::int64_t>(a[4]) > std::get<std::int64_t>(b[4]);
  });
  return table;
}

struct Lack {
  std::string_view what, costs, how;
};

std::size_t slices_of(const std::vector<std::size_t>& by_kind, SliceKind kind) {
  return by_kind[static_cast<std::size_t>(kind)];
}

std::vector<std::size_t> count_kinds(const Trace& trace) {
  std::vector<std::size_t> by_category(trace.categories.size() + 1),
      by_kind(static_cast<std::size_t>(SliceKind::other) + 1);
  for (const CategoryId category : trace.slices.category) {
    by_category[std::min(static_cast<std::size_t>(category), trace.categories.size())]++;
  }
  for (std::size_t i = 0; i < trace.categories.size(); i++) {
    by_kind[static_cast<std::size_t>(trace.categories[i].kind)] += by_category[i];
  }
  by_kind[static_cast<std::size_t>(SliceKind::other)] += by_category.back();
  return by_kind;
}

bool any(const OptionalColumn<StringId>& texts) {
  for (std::size_t row = 0; row < texts.size(); row++) {
    if (texts[row] != StringId::none) return true;
  }
  return false;
}

// What a recording of this kind could have and does not.
std::vector<Lack> lacks_of(const Run& run, const Trace& trace) {
  const auto kinds = count_kinds(trace);
  const bool device_work =
      slices_of(kinds, SliceKind::kernel) + slices_of(kinds, SliceKind::memcpy) + slices_of(kinds, SliceKind::memset) >
      0;
  const bool launches = trace.links.launches_dropped + trace.links.launches_with_work > 0;
  std::vector<Lack> lacks;
  const auto check = [&](bool missing, Lack lack) {
    if (missing) lacks.push_back(lack);
  };
  if (trace.only_graph()) {
    return {{"times",
             "This file says what depends on what, not when it ran: only the answer graph has something to say",
             "Give the profiler's trace (torch.profiler) of the same steps as well"}};
  }
  check(trace.slices.size() == 0, {"events", "There is nothing to analyze",
                                   "Check that the profiler was active while the program ran: call prof.step() after "
                                   "each step, or use no schedule"});
  check(!device_work && !launches,
        {"device work", "Kernels, idle time, utilization and device communication are unknown",
         "Record on a machine with a GPU with activities=[ProfilerActivity.CPU, ProfilerActivity.CUDA]"});
  check(!device_work && launches, {"kernels",
                                   "Launch calls were recorded but no device work: the profiler lost or was not "
                                   "allowed to read the device's activity",
                                   "Run `stepscope doctor`, which checks the right to trace the device; let no second "
                                   "profiler run, and record more warm-up steps"});
  check(
      device_work && !launches && slices_of(kinds, SliceKind::runtime) == 0,
      {"runtime calls", "Launches, and with them the causes of idle time and the device time of operators, are unknown",
       "Record with ProfilerActivity.CPU as well"});
  check(slices_of(kinds, SliceKind::cpu_op) == 0,
        {"operators", "Operators, phases and the host's part in idle time are unknown",
         "Record with ProfilerActivity.CPU as well"});
  check(!any(trace.ops.input_dims),
        {"shapes", "Operators cannot be told apart by shape", "Record with record_shapes=True"});
  check(!any(trace.ops.call_stack) && slices_of(kinds, SliceKind::python_function) == 0 && run.stack_steps.empty(),
        {"stacks", "Operators and idle time cannot be traced to a line of code", "Record with with_stack=True"});
  check(trace.memory.size() == 0,
        {"memory events", "Bytes allocated by operators are unknown", "Record with profile_memory=True"});
  check(trace.modules.empty(),
        {"modules", "Time cannot be given per nn.Module",
         "Record with with_stack=True (which records nn.Module frames), or under `stepscope run`"});
  const bool marked =
      std::any_of(trace.steps.begin(), trace.steps.end(), [](const Step& s) { return s.number != kAbsent; });
  check(!marked, {"step marks", "Steps are inferred or the recording counts as one step",
                  "Call prof.step() after each step, or record under `stepscope run`"});
  check(device_work && trace.devices.empty(),
        {"device properties", "SM efficiency and occupancy may be unknown",
         "Record with a torch version of 1.9 or newer, which writes deviceProperties"});
  check(trace.rank.source == RankSource::order,
        {"rank", "The rank was taken from the order of the files",
         "Initialize torch.distributed before the profiler starts, or put rankN into the file name"});
  return lacks;
}

Table missing_table(const Run& run) {
  Table table{.name = "missing",
              .columns = {{"rank", ValueType::integer, Unit::none, "Rank"},
                          {"what", ValueType::text, Unit::none, "What the recording lacks"},
                          {"costs", ValueType::text, Unit::none, "What cannot be answered without it"},
                          {"how", ValueType::text, Unit::none, "How to record it"}}};
  for (const Trace& trace : timelines(run)) {
    for (const Lack& lack : lacks_of(run, trace)) {
      table.rows.push_back({trace.rank.rank, std::string(lack.what), std::string(lack.costs), std::string(lack.how)});
    }
  }
  return table;
}

struct Counts {
  std::int64_t slices = 0, issues = 0, lost = 0, linked = 0, unlinked = 0, dropped = 0;
};

Counts counts_of(const Run& run) {
  Counts out;
  const auto add_issues = [&](const std::vector<Issue>& issues) {
    for (const Issue& issue : issues) {
      out.issues += static_cast<std::int64_t>(issue.count);
      if (issue.severity == Severity::lost) out.lost += static_cast<std::int64_t>(issue.count);
    }
  };
  add_issues(run.issues);
  for (const Trace& trace : run.traces) {
    add_issues(trace.issues);
    out.slices += static_cast<std::int64_t>(trace.slices.size());
    out.linked += static_cast<std::int64_t>(trace.links.device_linked);
    out.unlinked += static_cast<std::int64_t>(trace.links.device_unlinked);
    out.dropped += static_cast<std::int64_t>(trace.links.launches_dropped);
  }
  for (const Trace& trace : run.snapshots) add_issues(trace.issues);
  return out;
}

void add_findings(Answer& answer, std::int64_t unclassified_ns, std::int64_t work_ns, const Counts& counts) {
  if (work_ns > 0 && unclassified_ns * 20 > work_ns) {
    answer.findings.push_back(
        {.id = "unclassified_work",
         .cause = "measurement",
         .sentence =
             "Part of the device work has names that no rule knows, so compute and communication may be understated",
         .evidence = {{.text = "Share of the device work that is unclassified",
                       .value = share(unclassified_ns, work_ns),
                       .unit = Unit::ratio}},
         .gain_reason = "A better measurement, not a faster program.",
         .confidence = "high",
         .next = "Look at the table quality.unclassified and add a rule for its first names"});
  }
  const std::int64_t launches = counts.dropped + counts.linked;
  if (launches > 0 && counts.dropped * 10 > launches) {  // some calls (empty fills) never have work
    answer.findings.push_back(
        {.id = "launches_without_work",
         .cause = "measurement",
         .sentence = "Launch calls have no device work in the recording, so device time is understated",
         .evidence = {{.text = "Launch calls without device work", .value = counts.dropped, .unit = Unit::count}},
         .gain_reason = "A better measurement, not a faster program.",
         .confidence = "medium",
         .next = "Record fewer steps at a time, call torch.cuda.synchronize() before the profiler stops, and record "
                 "again"});
  }
}

Result<Answer> run_quality(const Run& run, const AnalyzeOptions& options) {
  if (auto derived = require_derived(run); !derived) return fail(derived.error());
  Answer answer;
  const auto ranks = rank_times(run);
  std::int64_t unclassified_ns = 0, work_ns = 0;
  Table unclassified = unclassified_table(ranks, unclassified_ns, work_ns);
  const Counts counts = counts_of(run);
  const bool device_work = work_ns > 0;
  add_scalar(answer, "slice_count", counts.slices, Unit::count, "Slices of all ranks");
  add_scalar(answer, "issue_count", counts.issues, Unit::count, "Occurrences of all issues");
  add_scalar(answer, "lost_count", counts.lost, Unit::count, "Of these, occurrences that cost data");
  add_scalar(
      answer, "linked_ratio", share(counts.linked, counts.linked + counts.unlinked), Unit::ratio,
      counts.linked + counts.unlinked > 0 ? "Share of the device work whose launch call is known" : kNoDeviceWork);
  add_scalar(answer, "launches_dropped_count", counts.dropped, Unit::count, "Launch calls without any device work");
  add_scalar(answer, "unclassified_ratio", share(unclassified_ns, work_ns), Unit::ratio,
             device_work ? "Share of the summed device work that no rule knows" : kNoDeviceWork);
  answer.tables = {missing_table(run), issues_table(run), links_table(run), std::move(unclassified)};
  limit_rows(answer, answer.tables.back(), options.max_rows, "those with less time");
  add_findings(answer, unclassified_ns, work_ns, counts);
  const auto timed = timelines(run);
  if (timed.size() == 1 && !timed.front().step_source.empty()) {
    answer.notes.push_back(steps_note(timed.front().step_source));
  }
  return answer;
}

}  // namespace

Analysis quality_analysis() {
  return {"quality", "Can these answers be trusted, and what is missing from the recording?", run_quality};
}

}  // namespace stepscope::analyze
