// critical_path: what bounds the run, instant by instant (see model/critical_path.h).
//
// Two windows: the whole recording, and each step in its wall time. Names, segments and findings speak of the steps
// where there are whole ones, else of the recording; a note says which.
#include <algorithm>
#include <array>
#include <map>
#include <numeric>

#include "analyze/analysis.h"
#include "base/key_index.h"
#include "model/answer_parts.h"
#include "model/critical_path.h"
#include "model/normal_name.h"
#include "model/python_frames.h"
#include "model/telemetry.h"
#include "model/windows.h"

namespace stepscope::analyze {
namespace {

constexpr std::size_t kMostSegments = 200;

struct NameTotal {
  std::size_t rank = 0;
  PathClass what = PathClass::unknown;
  std::string name;
  std::int64_t time_ns = 0, segments = 0;
};

struct StepPath {
  std::size_t step = 0;
  std::int64_t wall_ns = 0;
  PathTimes times{};
};

std::int64_t length_of(const CriticalPath& path) { return path.window.end - path.window.start; }
std::int64_t length_of(const PathSegment& segment) { return segment.when.end - segment.when.start; }

std::string name_of(const Trace& trace, SliceId slice) {
  return slice == SliceId::none ? "(nothing recorded)" : std::string(trace.name(slice));
}

bool longer(const PathSegment& a, const PathSegment& b) {
  return length_of(a) != length_of(b) ? length_of(a) > length_of(b) : a.when.start < b.when.start;
}

// What is kept of a rank's paths, which themselves can have as many segments as the trace has slices.
class RankPaths {
 public:
  RankPaths(const Trace& of, std::size_t rank) : trace(&of), number_(rank) {
    PathFinder find(of);
    whole_times = find.whole_times();
    whole_ns = std::accumulate(whole_times.begin(), whole_times.end(), std::int64_t{0});
    find.each_step([&](std::size_t step, const CriticalPath& path) {
      steps.push_back({step, length_of(path), path.times()});
      if (of.steps[step].partial || path.segments.empty()) return;
      shown_steps.push_back(steps.size() - 1);
      take(path);
    });
    if (shown_steps.empty()) take(find.whole());
    std::sort(longest.begin(), longest.end(), longer);
    longest.resize(std::min(longest.size(), kMostSegments));
  }

  const Trace* trace;
  PathTimes whole_times{};  // of the whole recording
  std::int64_t whole_ns = 0;
  std::vector<StepPath> steps;

  // Of what is shown: the whole steps, without any the whole recording.
  std::vector<std::size_t> shown_steps;  // indices into steps
  std::int64_t shown_ns = 0;
  std::vector<NameTotal> names;  // names that differ only in a step's number are one: ProfilerStep#3 and ProfilerStep#4
  std::array<std::int64_t, kPathEvidences> evidence{};
  std::vector<PathSegment> longest;

 private:
  void take(const CriticalPath& path) {
    shown_ns += length_of(path);
    for (const PathSegment& segment : path.segments) {
      NameTotal& total = names[total_of(segment)];
      total.time_ns += length_of(segment);
      total.segments++;
      evidence[static_cast<std::size_t>(segment.why)]++;
      longest.push_back(segment);
      if (longest.size() < 64 * kMostSegments) continue;
      const auto kept = longest.begin() + static_cast<std::ptrdiff_t>(kMostSegments);
      std::nth_element(longest.begin(), kept, longest.end(), longer);
      longest.erase(kept, longest.end());
    }
  }

  std::size_t total_of(const PathSegment& segment) {
    const StringId name = segment.slice == SliceId::none ? StringId::none : trace->slices.name[segment.slice];
    const std::uint64_t key = (static_cast<std::uint64_t>(segment.what) << 32) | static_cast<std::uint32_t>(name);
    const std::size_t spelling = spellings_[key];
    if (spelling < total_of_spelling_.size()) return total_of_spelling_[spelling];
    std::string normal = normal_name(name_of(*trace, segment.slice));
    const auto [found, is_new] = totals_.try_emplace({segment.what, normal}, names.size());
    if (is_new) names.push_back({.rank = number_, .what = segment.what, .name = std::move(normal)});
    total_of_spelling_.push_back(found->second);
    return found->second;
  }

  std::size_t number_;
  KeyIndex spellings_;  // by class and name as recorded
  std::vector<std::size_t> total_of_spelling_;
  std::map<std::pair<PathClass, std::string>, std::size_t> totals_;
};

struct PathTotals {
  PathTimes whole{}, steps{};
  std::int64_t whole_ns = 0, steps_ns = 0, step_count = 0;

  // Of the steps where there are whole ones.
  std::int64_t shown(PathClass path_class) const {
    return (step_count > 0 ? steps : whole)[static_cast<std::size_t>(path_class)];
  }
  std::int64_t shown_ns() const { return step_count > 0 ? steps_ns : whole_ns; }
};

PathTotals totals_of(const std::vector<RankPaths>& ranks) {
  PathTotals totals;
  const auto add = [](PathTimes& to, const PathTimes& times) {
    for (std::size_t i = 0; i < kPathClasses; i++) to[i] += times[i];
  };
  for (const RankPaths& rank : ranks) {
    add(totals.whole, rank.whole_times);
    totals.whole_ns += rank.whole_ns;
    for (const std::size_t step : rank.shown_steps) {
      add(totals.steps, rank.steps[step].times);
      totals.steps_ns += rank.steps[step].wall_ns;
      totals.step_count++;
    }
  }
  return totals;
}

Table classes_table(const PathTotals& totals) {
  Table table{.name = "classes",
              .columns = {{"class", ValueType::text, Unit::none, "What the path was with"},
                          {"step_ns", ValueType::integer, Unit::ns, "Mean over the whole steps of all ranks"},
                          {"step_share", ValueType::real, Unit::ratio, "Share of the wall time of these steps"},
                          {"trace_ns", ValueType::integer, Unit::ns, "On the path of the whole recording, all ranks"},
                          {"trace_share", ValueType::real, Unit::ratio, "Share of the length of the recording"},
                          {"meaning", ValueType::text, Unit::none, "When an instant belongs to this class"}}};
  for (std::size_t i = 0; i < kPathClasses && totals.whole_ns > 0; i++) {
    const auto path_class = static_cast<PathClass>(i);
    table.rows.push_back({std::string(to_string(path_class)),
                          totals.step_count > 0 ? Value(totals.steps[i] / totals.step_count) : Value(),
                          share(totals.steps[i], totals.steps_ns), totals.whole[i],
                          share(totals.whole[i], totals.whole_ns), std::string(meaning_of(path_class))});
  }
  return table;
}

Table steps_table(const std::vector<RankPaths>& ranks) {
  Table table{.name = "steps",
              .columns = {{"rank", ValueType::integer, Unit::none, "Rank"},
                          {"step", ValueType::text, Unit::none, "Name of the step as recorded"},
                          {"partial", ValueType::boolean, Unit::none, "Cut by the edge of the recording"},
                          {"wall_ns", ValueType::integer, Unit::ns, "Wall time of the step: the classes add up to it"},
                          {"bound", ValueType::text, Unit::none, "The class with the largest part of the path"}}};
  for (std::size_t i = 0; i < kPathClasses; i++) {
    const auto path_class = static_cast<PathClass>(i);
    table.columns.push_back({std::string(to_string(path_class)) + "_ns", ValueType::integer, Unit::ns,
                             "Time on the path in which " + std::string(meaning_of(path_class))});
  }
  for (const RankPaths& rank : ranks) {
    for (const auto& [number, wall_ns, times] : rank.steps) {
      const Step& step = rank.trace->steps[number];
      const auto most = std::max_element(times.begin(), times.end());
      std::vector<Value> row{rank.trace->rank.rank, step.name.empty() ? "step " + std::to_string(number) : step.name,
                             step.partial, wall_ns,
                             *most > 0 ? text(to_string(static_cast<PathClass>(most - times.begin()))) : Value()};
      row.insert(row.end(), times.begin(), times.end());
      table.rows.push_back(std::move(row));
    }
  }
  return table;
}

std::vector<NameTotal> name_totals(const std::vector<RankPaths>& ranks) {
  std::vector<NameTotal> out;
  for (const RankPaths& rank : ranks) out.insert(out.end(), rank.names.begin(), rank.names.end());
  std::stable_sort(out.begin(), out.end(),
                   [](const NameTotal& a, const NameTotal& b) { return a.time_ns > b.time_ns; });
  return out;
}

// The same names over all ranks together; most time first.
std::vector<NameTotal> of_all_ranks(const std::vector<NameTotal>& names) {
  std::vector<NameTotal> out;
  std::map<std::pair<PathClass, std::string_view>, std::size_t> known;
  for (const NameTotal& name : names) {
    const auto [at, is_new] = known.try_emplace({name.what, name.name}, out.size());
    if (is_new) {
      out.push_back(name);
    } else {
      out[at->second].time_ns += name.time_ns;
    }
  }
  std::stable_sort(out.begin(), out.end(),
                   [](const NameTotal& a, const NameTotal& b) { return a.time_ns > b.time_ns; });
  return out;
}

Table names_table(const std::vector<RankPaths>& ranks, const std::vector<NameTotal>& names) {
  Table table{.name = "names",
              .columns = {{"rank", ValueType::integer, Unit::none, "Rank"},
                          {"class", ValueType::text, Unit::none, "What the path was with"},
                          {"name", ValueType::text, Unit::none,
                           "Operator, call, Python function or kernel; of a gap the work after it"},
                          {"time_ns", ValueType::integer, Unit::ns, "Time on the path"},
                          {"share", ValueType::real, Unit::ratio, "Share of the path"},
                          {"segments", ValueType::integer, Unit::count, "How often it was on the path"}}};
  for (const NameTotal& total : names) {
    const RankPaths& rank = ranks[total.rank];
    table.rows.push_back({rank.trace->rank.rank, std::string(to_string(total.what)), total.name, total.time_ns,
                          share(total.time_ns, rank.shown_ns), total.segments});
  }
  return table;
}

struct Long {
  const RankPaths* rank;
  const PathSegment* segment;
};

std::string track_name(const Trace& trace, TrackId id) {
  if (id == TrackId::none) return "";
  const Track& track = trace.tracks[static_cast<std::size_t>(id)];
  const auto word = [&](StringId text_id) {
    return text_id == StringId::none ? std::string("?") : std::string(trace.strings[text_id]);
  };
  return track.device ? "device " + word(track.process) + " stream " + word(track.thread)
                      : "process " + word(track.process) + " thread " + word(track.thread);
}

Table segments_table(const std::vector<RankPaths>& ranks) {
  std::vector<Long> longest;
  for (const RankPaths& rank : ranks) {
    for (const PathSegment& segment : rank.longest) longest.push_back({&rank, &segment});
  }
  std::stable_sort(longest.begin(), longest.end(), [](const Long& a, const Long& b) {
    return length_of(*a.segment) > length_of(*b.segment);  // equal ones by rank and start, as they come
  });
  longest.resize(std::min(longest.size(), kMostSegments));
  Table table{.name = "segments",
              .columns = {{"rank", ValueType::integer, Unit::none, "Rank"},
                          {"start_ns", ValueType::integer, Unit::ns, "Start, on the clock of the file"},
                          {"duration_ns", ValueType::integer, Unit::ns, "Length on the path"},
                          {"class", ValueType::text, Unit::none, "What the path was with"},
                          {"name", ValueType::text, Unit::none, "What ran; of a gap the work after it"},
                          {"track", ValueType::text, Unit::none, "Thread or stream"},
                          {"waited_for", ValueType::text, Unit::none,
                           "How the recording shows that it waited for what is before it on the path"}}};
  for (const Long& one : longest) {
    const Trace& trace = *one.rank->trace;
    const PathSegment& segment = *one.segment;
    table.rows.push_back({trace.rank.rank, segment.when.start, length_of(segment), std::string(to_string(segment.what)),
                          name_of(trace, segment.slice), text(track_name(trace, segment.track)),
                          std::string(to_string(segment.why))});
  }
  return table;
}

Table evidence_table(const std::vector<RankPaths>& ranks) {
  Table table{.name = "evidence",
              .columns = {{"evidence", ValueType::text, Unit::none, "How one segment of the path leads to the next"},
                          {"segments", ValueType::integer, Unit::count, "Segments that begin where this shows a wait"},
                          {"meaning", ValueType::text, Unit::none, "What it means"}}};
  std::array<std::int64_t, kPathEvidences> counts{};
  for (const RankPaths& rank : ranks) {
    for (std::size_t i = 0; i < kPathEvidences; i++) counts[i] += rank.evidence[i];
  }
  for (std::size_t i = 0; i < kPathEvidences; i++) {
    const auto evidence = static_cast<WaitEvidence>(i);
    table.rows.push_back({std::string(to_string(evidence)), counts[i], std::string(meaning_of(evidence))});
  }
  return table;
}

// What a path can be bound by, in the words of a finding.
struct Bound {
  std::string_view id, cause, sentence, next;
  std::array<PathClass, 5> classes;  // repeats fill up
};

constexpr std::array<Bound, 5> kBounds{{
    {"critical_host",
     "host",
     "The host bounds the run: most of the critical path is operators, Python and launches on the host",
     "Make fewer and larger launches: torch.compile, CUDA graphs, fused optimizers; move Python work out of the step",
     {PathClass::host_op, PathClass::python, PathClass::runtime, PathClass::launch, PathClass::sync_wait}},
    {"critical_compute",
     "compute",
     "Compute on the device bounds the run: only faster or fewer kernels make it shorter",
     "Look at the names of class compute: they are the kernels whose time counts",
     {PathClass::compute, PathClass::device_gap, PathClass::compute, PathClass::compute, PathClass::compute}},
    {"critical_communication",
     "communication",
     "Communication bounds the run: most of the critical path waits for it",
     "See the communication answer: start it earlier, make it smaller, or hide it behind compute",
     {PathClass::communication, PathClass::communication, PathClass::communication, PathClass::communication,
      PathClass::communication}},
    {"critical_data_loading",
     "input",
     "The data loader bounds the run: most of the critical path waits for the next batch",
     "See who loads the batches, and what would help: --only dataloader",
     {PathClass::data_loading, PathClass::data_loading, PathClass::data_loading, PathClass::data_loading,
      PathClass::data_loading}},
    {"critical_copies",
     "copy",
     "Memory copies bound the run: most of the critical path waits for them",
     "See the copies answer for their direction, speed and memory; keep .item() and .cpu() out of the step",
     {PathClass::copy, PathClass::set, PathClass::copy, PathClass::copy, PathClass::copy}},
}};
// Below this share nothing can be said to bound the run.
constexpr double kLeastShare = 0.4;

bool covers(const Bound& bound, PathClass what) {
  return std::find(bound.classes.begin(), bound.classes.end(), what) != bound.classes.end();
}

std::int64_t time_of(const Bound& bound, const PathTotals& totals) {
  std::int64_t time = 0;
  for (std::size_t i = 0; i < kPathClasses; i++) {
    if (covers(bound, static_cast<PathClass>(i))) time += totals.shown(static_cast<PathClass>(i));
  }
  return time;
}

// The host binds in three ways that want different advice.
void say_how_the_host_binds(Finding& finding, const Run& run, const PathTotals& totals) {
  const auto any = [&](const auto& test) { return std::any_of(run.traces.begin(), run.traces.end(), test); };
  if (totals.shown(PathClass::python) * 2 > totals.shown_ns()) {
    finding.sentence =
        "Most of the critical path is outside operators: Python code, or waiting that nothing in the recording "
        "explains";
    finding.confidence = "medium";
    const bool one_step = std::any_of(run.stack_steps.begin(), run.stack_steps.end(), has_python_frames);
    finding.next = any(has_python_frames) ? "See the names of class python: the functions whose time counts"
                   : one_step ? "See which functions: --only stacks (of one step that was recorded with them)"
                              : "Record Python frames (stepscope run --stack, or with_stack=True) to see which "
                                "functions";
  } else if (!any([](const Trace& trace) { return !work_by_start(trace).empty(); })) {
    finding.sentence = "The run is on the CPU: its operators are the critical path";
    const bool has_idle = idle_cores(run).value_or(kIdleCore) >= kIdleCore;
    finding.next = std::string("Look at the operators answer for those that cost most; try ") +
                   (has_idle ? "more threads (torch.set_num_threads), " : "") +
                   "bfloat16, larger batches or torch.compile";
  }
}

void find_bound(Answer& answer, const Run& run, const PathTotals& totals, const std::vector<NameTotal>& names) {
  const Bound& bound = *std::max_element(kBounds.begin(), kBounds.end(), [&](const Bound& a, const Bound& b) {
    return time_of(a, totals) < time_of(b, totals);
  });
  const std::int64_t time = time_of(bound, totals);
  if (time == 0 || static_cast<double>(time) < kLeastShare * static_cast<double>(totals.shown_ns())) return;
  Finding finding{.id = std::string(bound.id),
                  .cause = std::string(bound.cause),
                  .sentence = std::string(bound.sentence),
                  .evidence = {{.text = "Share of the critical path",
                                .value = share(time, totals.shown_ns()),
                                .unit = Unit::ratio}},
                  .gain_reason = std::string(kNoGain),
                  .confidence = "high",
                  .next = std::string(bound.next)};
  if (bound.cause == "host") say_how_the_host_binds(finding, run, totals);
  for (const NameTotal& name : of_all_ranks(names)) {
    if (!covers(bound, name.what) || finding.evidence.size() == 4) continue;
    if (name.what == PathClass::host_op && !finding.where.op) finding.where.op = name.name;
    finding.evidence.push_back({.text = std::string(words_of(name.what)) + ": " + name.name,
                                .value = share(name.time_ns, totals.shown_ns()),
                                .unit = Unit::ratio});
  }
  answer.findings.push_back(std::move(finding));
}

void add_scalars(Answer& answer, const PathTotals& totals) {
  const auto sum = [&](std::initializer_list<PathClass> classes) {
    std::int64_t time = 0;
    for (const PathClass path_class : classes) time += totals.shown(path_class);
    return share(time, totals.shown_ns());
  };
  add_scalar(answer, "path_trace_ns", totals.whole_ns, Unit::ns, "Length of the recording, all ranks together");
  add_scalar(answer, "path_steps_ns", totals.step_count > 0 ? Value(totals.steps_ns) : Value(), Unit::ns,
             totals.step_count > 0 ? "Wall time of the whole steps of all ranks" : kNoSteps);
  add_scalar(answer, "host_share",
             sum({PathClass::host_op, PathClass::python, PathClass::runtime, PathClass::launch, PathClass::sync_wait}),
             Unit::ratio, "Share of the path with operators, Python, runtime calls, launches and their way");
  add_scalar(answer, "device_share", sum({PathClass::compute, PathClass::copy, PathClass::set, PathClass::device_gap}),
             Unit::ratio, "Share of the path with kernels, copies and fills, and going from one to the next");
  add_scalar(answer, "communication_share", sum({PathClass::communication}), Unit::ratio,
             "Share of the path with communication");
  add_scalar(answer, "data_loading_share", sum({PathClass::data_loading}), Unit::ratio,
             "Share of the path with the data loader");
  add_scalar(answer, "unknown_share", sum({PathClass::unknown}), Unit::ratio,
             "Share of the path that nothing in the recording explains");
}

Result<Answer> run_critical_path(const Run& run, const AnalyzeOptions& options) {
  if (auto derived = require_derived(run); !derived) return fail(derived.error());
  Answer answer;
  std::vector<RankPaths> ranks;
  for (const Trace& trace : run.traces) ranks.emplace_back(trace, ranks.size());
  const PathTotals totals = totals_of(ranks);
  const std::vector<NameTotal> names = name_totals(ranks);
  add_scalars(answer, totals);
  answer.tables = {classes_table(totals), names_table(ranks, names), segments_table(ranks), steps_table(ranks),
                   evidence_table(ranks)};
  limit_rows(answer, answer.tables[1], options.max_rows, "all with less time on the path");
  limit_rows(answer, answer.tables[2], options.max_rows, "all of them shorter");
  limit_rows(answer, answer.tables[3], options.max_rows, "later steps");
  find_bound(answer, run, totals, names);
  answer.notes.push_back(totals.step_count > 0
                             ? "Names, segments and shares are of the whole steps; table classes has the whole "
                               "recording beside them."
                             : "No whole step was found: names, segments and shares are of the whole recording.");
  answer.notes.push_back(
      "Time in communication includes waiting for other ranks. Waits between streams that no event shows are inferred "
      "from work that ended just before (evidence: end to start).");
  return answer;
}

}  // namespace

Analysis critical_path_analysis() {
  return {"critical_path", "What bounds the run: which work does every instant wait for?", run_critical_path};
}

}  // namespace stepscope::analyze
