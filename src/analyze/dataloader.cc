// dataloader: how long the training thread waits for its data loader, step by step, and where the loading itself runs.
//
// A wait is the outermost range of phase data loader on the thread of the steps (what enumerate(DataLoader) and its
// like record). With workers it is waiting for a batch; without them the loading itself.
#include <algorithm>
#include <map>
#include <optional>

#include "analyze/analysis.h"
#include "model/answer_parts.h"
#include "model/settings.h"
#include "model/telemetry.h"

namespace stepscope::analyze {
namespace {

constexpr std::string_view kNoLoader =
    "No data loader was seen in the recording: torch's DataLoader marks itself, other loaders need "
    "record_function(\"dataloader\") around the next batch.";

struct Source {
  std::int64_t calls = 0, total_ns = 0, longest_ns = 0;
  bool main = false;
};

struct Loading {
  const Trace* trace = nullptr;
  Intervals waits;  // on the thread of the steps
  Intervals busy;   // device work of the rank
  std::map<std::pair<TrackId, StringId>, Source> sources;
};

bool loads(const Trace& trace, SliceId id) {
  return trace.slices.phase[id] == static_cast<std::uint8_t>(Phase::dataloader);
}

std::vector<bool> step_threads(const Trace& trace) {
  std::vector<bool> out(trace.tracks.size(), false);
  for (const Step& step : trace.steps) {
    if (step.track != TrackId::none) out[static_cast<std::size_t>(step.track)] = true;
  }
  return out;
}

Loading look(const Trace& trace) {
  Loading out{.trace = &trace};
  const std::vector<bool> threads = step_threads(trace);
  const bool known = std::find(threads.begin(), threads.end(), true) != threads.end();
  std::vector<Interval> waits;
  for (std::size_t row = 0; row < trace.slices.size(); row++) {
    const auto id = static_cast<SliceId>(row);
    if (!loads(trace, id)) continue;
    const TrackId track = trace.slices.track[id];
    if (trace.tracks[static_cast<std::size_t>(track)].device) continue;  // copies have a phase as well
    const SliceId parent = trace.slices.parent[id];
    if (parent != SliceId::none && loads(trace, parent)) continue;
    const bool main = !known || threads[static_cast<std::size_t>(track)];
    Source& source = out.sources[{track, trace.slices.name[id]}];
    source.calls++;
    source.total_ns += trace.slices.dur_ns[id];
    source.longest_ns = std::max<std::int64_t>(source.longest_ns, trace.slices.dur_ns[id]);
    source.main = main;
    if (main) waits.push_back({trace.slices.start_ns[id], trace.slices.end_ns(id)});
  }
  out.waits = make_intervals(std::move(waits));
  for (const DeviceTime& device : rank_time(trace).devices) out.busy = unite(out.busy, device.busy);
  return out;
}

struct LoaderTotals {
  std::int64_t steps = 0, wall_ns = 0, wait_ns = 0, exposed_ns = 0;
  bool any = false, workers = false, single = false, device = false;
  bool keeps_up = false;        // the workers of every rank are known to
  std::optional<double> ready;  // share of the batches that were there when asked for; of the rank with the least
};

void add_steps(Table& table, LoaderTotals& totals, const Loading& rank) {
  const auto walls = step_walls(*rank.trace);
  const Intervals exposed = subtract(rank.waits, rank.busy);
  const auto waits = lengths_in(rank.waits, walls), alone = lengths_in(exposed, walls);
  for (std::size_t i = 0; i < walls.size(); i++) {
    const Step& step = rank.trace->steps[i];
    const std::int64_t wall = walls[i].end - walls[i].start;
    table.rows.push_back({rank.trace->rank.rank, text(step.name), step.partial, wall, waits[i], share(waits[i], wall),
                          alone[i], share(alone[i], wall)});
    if (step.partial) continue;
    totals.steps++;
    totals.wall_ns += wall;
    totals.wait_ns += waits[i];
    totals.exposed_ns += alone[i];
  }
}

Table steps_table() {
  return {.name = "steps",
          .columns = {{"rank", ValueType::integer, Unit::none, "Rank"},
                      {"step", ValueType::text, Unit::none, "Step"},
                      {"partial", ValueType::boolean, Unit::none, "Is it cut by the edge of the recording?"},
                      {"wall_ns", ValueType::integer, Unit::ns, "Step up to the end of its device work"},
                      {"wait_ns", ValueType::integer, Unit::ns, "Time of the step's thread in the data loader"},
                      {"wait_share", ValueType::real, Unit::ratio, "Share of the step"},
                      {"exposed_ns", ValueType::integer, Unit::ns, "Of this, time in which no device work ran"},
                      {"exposed_share", ValueType::real, Unit::ratio, "Share of the step"}}};
}

// Who loads: the process and thread, and how the range is called.
std::string where_of(std::string_view name, bool main) {
  if (name.find("MultiProcessing") != std::string_view::npos) return "worker processes";
  if (name.find("SingleProcess") != std::string_view::npos) return "the thread of the steps";
  return main ? "the thread of the steps, as far as the recording shows" : "another thread";
}

Table sources_table(const std::vector<Loading>& ranks, LoaderTotals& totals) {
  Table table{.name = "sources",
              .columns = {{"rank", ValueType::integer, Unit::none, "Rank"},
                          {"name", ValueType::text, Unit::none, "Range of the data loader"},
                          {"thread", ValueType::text, Unit::none, "Thread that it ran on, as the trace spells it"},
                          {"step_thread", ValueType::boolean, Unit::none, "Is it the thread of the steps?"},
                          {"loads_in", ValueType::text, Unit::none, "Where batches are loaded, by the name"},
                          {"calls", ValueType::integer, Unit::count, "Batches asked for"},
                          {"total_ns", ValueType::integer, Unit::ns, "Time in them"},
                          {"mean_ns", ValueType::integer, Unit::ns, "Mean"},
                          {"longest_ns", ValueType::integer, Unit::ns, "Longest"}}};
  for (const Loading& rank : ranks) {
    for (const auto& [key, source] : rank.sources) {
      const std::string_view name = rank.trace->strings[key.second];
      totals.any = true;
      totals.workers = totals.workers || name.find("MultiProcessing") != std::string_view::npos;
      totals.single = totals.single || name.find("SingleProcess") != std::string_view::npos;
      const Track& track = rank.trace->tracks[static_cast<std::size_t>(key.first)];
      table.rows.push_back({rank.trace->rank.rank, text(name), text(rank.trace->strings[track.thread]), source.main,
                            where_of(name, source.main), source.calls, source.total_ns, source.total_ns / source.calls,
                            source.longest_ns});
    }
  }
  std::stable_sort(table.rows.begin(), table.rows.end(), [](const auto& a, const auto& b) {
    return std::get<std::int64_t>(a[6]) > std::get<std::int64_t>(b[6]);
  });
  return table;
}

std::string next_of(const LoaderTotals& totals, std::optional<double> idle) {
  if (totals.keeps_up) {
    return "The workers keep up, so more of them would not help: let them return fewer and larger tensors, or smaller "
           "types (uint8 pictures), and record again";
  }
  if (idle && *idle < kIdleCore) {
    return "More workers would not help, since no core of the machine is idle: make __getitem__ and collate cheaper, "
           "prepare the data before, or use fewer threads elsewhere; then record again";
  }
  if (totals.workers) {
    return "The workers do not keep up: raise num_workers or prefetch_factor, or make __getitem__ and collate cheaper, "
           "then record again";
  }
  if (totals.single) {
    return "Batches are loaded in the training process itself (num_workers=0): set num_workers to 4 or more, "
           "pin_memory=True and persistent_workers=True, then record again";
  }
  return "Raise num_workers of the DataLoader, set pin_memory=True and persistent_workers=True, then record again";
}

void find_wait(Answer& answer, const LoaderTotals& totals, std::optional<double> idle) {
  if (totals.steps < 2 || totals.exposed_ns * 20 <= totals.wall_ns) return;  // below 5 % it is not worth a change
  answer.findings.push_back(
      {.id = "dataloader_wait",
       .cause = "input",
       .sentence = std::string(totals.keeps_up ? "Part of every step is spent bringing batches over from the workers"
                                               : "Part of every step is spent waiting for the data loader") +
                   (totals.device ? " while the device has nothing to do" : ""),
       .where = {.phase = "dataloader"},
       .evidence = {{.text =
                         totals.device ? "Share of the steps waited while no device work ran" : "Share of the steps",
                     .value = share(totals.exposed_ns, totals.wall_ns),
                     .unit = Unit::ratio},
                    {.text = "Mean per step", .value = totals.exposed_ns / totals.steps, .unit = Unit::ns},
                    {.text = "Wait per step in all", .value = totals.wait_ns / totals.steps, .unit = Unit::ns}},
       .gain_reason =
           totals.keeps_up ? "Not predicted: how large their way over has to be is not known." : std::string(kNoGain),
       .confidence = "high",
       .next = next_of(totals, idle)});
  Finding& found = answer.findings.back();
  if (!totals.keeps_up) found.changes = {{.kind = ChangeKind::data_loader, .value = 0}};
  if (totals.ready)
    found.evidence.push_back(
        {.text = "Batches that were there when asked for", .value = *totals.ready, .unit = Unit::ratio});
  if (idle) found.evidence.push_back({.text = "Idle cores of the machine", .value = *idle, .unit = Unit::none});
}

Result<Answer> run_dataloader(const Run& run, const AnalyzeOptions& options) {
  if (auto derived = require_derived(run); !derived) return fail(derived.error());
  Answer answer;
  std::vector<Loading> ranks;
  for (const Trace& trace : run.traces) ranks.push_back(look(trace));
  LoaderTotals totals;
  Table sources = sources_table(ranks, totals), steps = steps_table();
  totals.keeps_up = std::all_of(ranks.begin(), ranks.end(),
                                [](const Loading& rank) { return workers_keep_up(*rank.trace).value_or(false); });
  for (const Loading& rank : ranks) {
    if (!rank.sources.empty()) add_steps(steps, totals, rank);
    totals.device = totals.device || !rank.busy.empty();
    if (const auto ready = batches_ready(*rank.trace)) totals.ready = std::min(totals.ready.value_or(1), *ready);
  }
  const bool known = totals.any && totals.steps > 0;
  const std::string_view why = totals.any ? kNoSteps : kNoLoader;
  const auto scalar = [&](std::string_view name, Value value, Unit unit, std::string_view meaning) {
    add_scalar(answer, name, known ? std::move(value) : Value(), unit, known ? meaning : why);
  };
  const std::int64_t steps_or_1 = std::max<std::int64_t>(1, totals.steps);
  scalar("wait_per_step_ns", totals.wait_ns / steps_or_1, Unit::ns,
         "Mean time of a whole step in which its thread was in the data loader");
  scalar("wait_share", share(totals.wait_ns, totals.wall_ns), Unit::ratio, "Share of the wall time of these steps");
  scalar("exposed_share", share(totals.exposed_ns, totals.wall_ns), Unit::ratio,
         "Share of the wall time in which the thread waited and no device work ran");
  find_wait(answer, totals, idle_cores(run));
  answer.tables = {std::move(steps), std::move(sources)};
  limit_rows(answer, answer.tables[0], options.max_rows, "later steps");
  limit_rows(answer, answer.tables[1], options.max_rows, "those with less time");
  if (!totals.any) answer.notes.push_back(std::string(kNoLoader));
  if (totals.workers)
    answer.notes.push_back("Worker processes are not in this recording: a profiler sees its own process only.");
  return answer;
}

}  // namespace

Analysis dataloader_analysis() { return {"dataloader", "Does the training wait for its data?", run_dataloader}; }

}  // namespace stepscope::analyze
