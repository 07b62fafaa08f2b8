// compile: what torch.compile did in the recording: compilations and recompilations with their time, graph breaks,
// compiled regions and graphs, and fused kernels with the operators that they came from.
//
// A compilation is one that a host thread waited for. A compiled region inside another one is a graph break: the rest
// of a function, or a function that could not be inlined, runs as a graph of its own.
#include <algorithm>
#include <map>

#include "analyze/analysis.h"
#include "base/name_verdicts.h"
#include "model/answer_parts.h"
#include "model/compile_names.h"
#include "model/lookup.h"

namespace stepscope::analyze {
namespace {

enum class Mark : std::uint8_t { unasked, none, compile, compile_id, stage, region, graph };

Mark mark_of(std::string_view name) {
  if (is_frame_compile(name)) return Mark::compile;
  if (frame_compile_id(name)) return Mark::compile_id;
  if (!compile_stage(name).empty()) return Mark::stage;
  if (name.starts_with("Torch-Compiled Region")) return Mark::region;
  return compiled_graph(name).empty() ? Mark::none : Mark::graph;
}

struct Compilation {
  SliceId slice;
  std::optional<CompileId> id;
};

struct Sum {
  std::int64_t calls = 0, total_ns = 0, breaks = 0, device_ns = 0;
  std::int64_t until = std::numeric_limits<std::int64_t>::min();  // device time is accounted up to here
};

struct Compiled {
  const Trace* trace = nullptr;
  std::vector<Compilation> compilations;
  std::map<std::string_view, Sum> stages, regions, graphs;
  std::vector<Interval> compiling;
  std::int64_t breaks = 0;
};

SliceId above(const Trace& trace, const std::vector<Mark>& marks, SliceId id, Mark wanted) {
  int level = 0;
  for (id = trace.slices.parent[id]; id != SliceId::none && level < kDeepestWalk;
       id = trace.slices.parent[id], level++) {
    if (marks[static_cast<std::size_t>(id)] == wanted) return id;
  }
  return SliceId::none;
}

void add_slice(Compiled& out, const std::vector<Mark>& marks, std::map<SliceId, std::size_t>& at, SliceId id,
               Mark mark) {
  const Trace& trace = *out.trace;
  const std::string_view name = trace.name(id);
  const auto count_once = [&](Sum& sum, bool nested) {
    sum.calls++;
    if (!nested) sum.total_ns += trace.slices.dur_ns[id];
  };
  if (mark == Mark::compile && above(trace, marks, id, Mark::compile) == SliceId::none) {
    at[id] = out.compilations.size();
    out.compilations.push_back({id, std::nullopt});
    out.compiling.push_back({trace.slices.start_ns[id], trace.slices.end_ns(id)});
  } else if (mark == Mark::compile_id) {
    // The outermost compilation around it is the frame's own.
    SliceId frame = above(trace, marks, id, Mark::compile);
    for (SliceId up = frame; up != SliceId::none; up = above(trace, marks, up, Mark::compile)) frame = up;
    if (const auto found = at.find(frame); found != at.end() && !out.compilations[found->second].id)
      out.compilations[found->second].id = frame_compile_id(name);
  } else if (mark == Mark::region) {
    const bool inside = above(trace, marks, id, Mark::region) != SliceId::none;
    Sum& sum = out.regions[name];
    count_once(sum, false);
    sum.breaks += inside;
    out.breaks += inside;
  } else if (mark == Mark::graph) {
    count_once(out.graphs[compiled_graph(name)], false);
  }
  if (const std::string_view stage = compile_stage(name); !stage.empty()) {
    // Backward graphs are compiled when they first run, outside the compilation of their frame.
    if (stage == "compile_fx_inner") out.compiling.push_back({trace.slices.start_ns[id], trace.slices.end_ns(id)});
    SliceId up = trace.slices.parent[id];
    int level = 0;
    while (up != SliceId::none && trace.slices.name[up] != trace.slices.name[id] && level++ < kDeepestWalk)
      up = trace.slices.parent[up];
    count_once(out.stages[stage], up != SliceId::none && level < kDeepestWalk);
  }
}

// Device time of what was launched inside regions and graphs, by the nearest of each kind around the launch.
void add_device_time(Compiled& out, const std::vector<Mark>& marks) {
  const Trace& trace = *out.trace;
  if (out.regions.empty() && out.graphs.empty()) return;
  for (const std::uint32_t row : work_by_start(trace)) {
    const SliceId launch = trace.device.launch[row], work = trace.device.slice[row];
    if (launch == SliceId::none) continue;
    const auto grow = [&](Sum& sum) {
      const std::int64_t end = trace.slices.end_ns(work);
      if (end <= sum.until) return;
      sum.device_ns += end - std::max(trace.slices.start_ns[work], sum.until);
      sum.until = end;
    };
    if (const SliceId region = above(trace, marks, launch, Mark::region); region != SliceId::none)
      grow(out.regions[trace.name(region)]);
    if (const SliceId graph = above(trace, marks, launch, Mark::graph); graph != SliceId::none)
      grow(out.graphs[compiled_graph(trace.name(graph))]);
  }
}

Compiled look(const Trace& trace) {
  Compiled out{.trace = &trace};
  NameVerdicts verdict(trace.strings, Mark::unasked, mark_of);
  std::vector<Mark> marks(trace.slices.size(), Mark::none);
  std::map<SliceId, std::size_t> at;
  for (const SliceId id : trace.by_track) {
    const SliceKind kind = trace.kind(id);
    if (kind != SliceKind::cpu_op && kind != SliceKind::user_annotation) continue;
    const Mark mark = verdict(trace.slices.name[id]);
    if (mark == Mark::none) continue;
    marks[static_cast<std::size_t>(id)] = mark;
    add_slice(out, marks, at, id, mark);
  }
  add_device_time(out, marks);
  return out;
}

Table compilations_table(const std::vector<Compiled>& ranks) {
  Table table{.name = "compilations",
              .columns = {{"rank", ValueType::integer, Unit::none, "Rank"},
                          {"frame", ValueType::integer, Unit::none,
                           "Number of the Python frame; unknown: this version of torch does not record it"},
                          {"attempt", ValueType::integer, Unit::none, "0: first compilation; more: recompilations"},
                          {"start_ns", ValueType::integer, Unit::ns, "When it began, on the clock of the file"},
                          {"time_ns", ValueType::integer, Unit::ns, "How long the thread compiled"},
                          {"step", ValueType::text, Unit::none, "Step in which it began"}}};
  for (const Compiled& rank : ranks) {
    for (const Compilation& one : rank.compilations) {
      const std::int64_t start = rank.trace->slices.start_ns[one.slice];
      const StepId step = rank.trace->step_at(start);
      table.rows.push_back(
          {rank.trace->rank.rank, value_if(one.id.has_value(), one.id ? one.id->frame : 0),
           value_if(one.id.has_value(), one.id ? one.id->attempt : 0), start, rank.trace->slices.dur_ns[one.slice],
           step == StepId::none ? Value() : text(rank.trace->steps[static_cast<std::size_t>(step)].name)});
    }
  }
  return table;
}

void sort_by_time(Table& table, std::size_t column) {
  std::stable_sort(table.rows.begin(), table.rows.end(), [&](const auto& a, const auto& b) {
    return std::get<std::int64_t>(a[column]) > std::get<std::int64_t>(b[column]);
  });
}

Table stages_table(const std::vector<Compiled>& ranks) {
  Table table{.name = "stages",
              .columns = {{"rank", ValueType::integer, Unit::none, "Rank"},
                          {"stage", ValueType::text, Unit::none, "Stage of the compiler, as torch names it"},
                          {"calls", ValueType::integer, Unit::count, "How often it ran"},
                          {"total_ns", ValueType::integer, Unit::ns,
                           "Time with the stages inside it; inside itself it counts once"}}};
  for (const Compiled& rank : ranks) {
    for (const auto& [stage, sum] : rank.stages)
      table.rows.push_back({rank.trace->rank.rank, std::string(stage), sum.calls, sum.total_ns});
  }
  sort_by_time(table, 3);
  return table;
}

Table regions_table(const std::vector<Compiled>& ranks) {
  Table table{.name = "regions",
              .columns = {{"rank", ValueType::integer, Unit::none, "Rank"},
                          {"region", ValueType::text, Unit::none, "Frame and compilation, such as 0/1"},
                          {"calls", ValueType::integer, Unit::count, "How often it ran"},
                          {"host_ns", ValueType::integer, Unit::ns, "Host time, compilations inside it included"},
                          {"device_ns", ValueType::integer, Unit::ns,
                           "Time of device work launched in it and in no region inside; unknown without device work"},
                          {"graph_breaks", ValueType::integer, Unit::count,
                           "Calls of it inside another region: there that one's graph was broken"}}};
  for (const Compiled& rank : ranks) {
    for (const auto& [name, sum] : rank.regions) {
      table.rows.push_back({rank.trace->rank.rank, text(compiled_region(name)), sum.calls, sum.total_ns,
                            value_if(rank.trace->device.size() > 0, sum.device_ns), sum.breaks});
    }
  }
  sort_by_time(table, 3);
  return table;
}

Table graphs_table(const std::vector<Compiled>& ranks) {
  Table table{.name = "graphs",
              .columns = {{"rank", ValueType::integer, Unit::none, "Rank"},
                          {"graph", ValueType::text, Unit::none, "Key of the compiled graph in torch's cache"},
                          {"calls", ValueType::integer, Unit::count, "How often it ran"},
                          {"host_ns", ValueType::integer, Unit::ns, "Host time"},
                          {"device_ns", ValueType::integer, Unit::ns,
                           "Time of the device work that it launched; unknown without device work"}}};
  for (const Compiled& rank : ranks) {
    for (const auto& [key, sum] : rank.graphs) {
      table.rows.push_back({rank.trace->rank.rank, std::string(key), sum.calls, sum.total_ns,
                            value_if(rank.trace->device.size() > 0, sum.device_ns)});
    }
  }
  sort_by_time(table, 3);
  return table;
}

// Kernels that Inductor fused, on devices and (where it records them) on the host.
Table kernels_table(const Run& run) {
  Table table{.name = "fused_kernels",
              .columns = {{"rank", ValueType::integer, Unit::none, "Rank"},
                          {"kernel", ValueType::text, Unit::none, "Name that the compiler gave"},
                          {"kind", ValueType::text, Unit::none, "Shape of the loop"},
                          {"ops", ValueType::text, Unit::none, "Operators fused into it, read from the name"},
                          {"count", ValueType::integer, Unit::count, "How often it ran"},
                          {"total_ns", ValueType::integer, Unit::ns, "Sum of durations"}}};
  for (const Trace& trace : run.traces) {
    std::vector<char> verdict(trace.strings.size(), 0);
    std::map<StringId, std::pair<std::int64_t, std::int64_t>> sums;
    for (std::size_t row = 0; row < trace.slices.size(); row++) {
      const auto id = static_cast<SliceId>(row);
      const SliceKind kind = trace.kind(id);
      const StringId name = trace.slices.name[id];
      if (name == StringId::none || (kind != SliceKind::kernel && kind != SliceKind::cpu_op)) continue;
      char& known = verdict[static_cast<std::size_t>(name)];
      if (known == 0) known = fused_kernel(trace.strings[name]) ? 'y' : 'n';
      // A host range around a launch carries the same name; the kernel itself is what ran.
      if (known == 'n' || (kind == SliceKind::cpu_op && trace.device.size() > 0)) continue;
      sums[name].first++;
      sums[name].second += trace.slices.dur_ns[id];
    }
    for (const auto& [name, sum] : sums) {
      const FusedKernel fused = *fused_kernel(trace.strings[name]);
      table.rows.push_back({trace.rank.rank, text(trace.strings[name]), std::string(fused.kind), text(fused.ops),
                            sum.first, sum.second});
    }
  }
  sort_by_time(table, 5);
  return table;
}

struct CompileTotals {
  std::int64_t compilations = 0, recompilations = 0, known = 0, compile_ns = 0, again_ns = 0, breaks = 0, window_ns = 0;
  bool seen = false;  // any trace of torch.compile
};

CompileTotals totals_of(const std::vector<Compiled>& ranks) {
  CompileTotals totals;
  for (const Compiled& rank : ranks) {
    totals.seen = totals.seen || !rank.compilations.empty() || !rank.regions.empty() || !rank.graphs.empty();
    totals.compile_ns += length(make_intervals(rank.compiling));
    totals.breaks += rank.breaks;
    for (const Compilation& one : rank.compilations) {
      totals.compilations++;
      if (!one.id) continue;
      totals.known++;
      totals.recompilations += one.id->attempt > 0;
      if (one.id->attempt > 0) totals.again_ns += rank.trace->slices.dur_ns[one.slice];
    }
    for (const Step& step : rank.trace->steps) totals.window_ns += step.end_ns - step.start_ns;
  }
  return totals;
}

void add_findings(Answer& answer, const CompileTotals& totals) {
  const auto add = [&](std::string id, std::string sentence, std::vector<Evidence> evidence, std::string next) {
    answer.findings.push_back({.id = std::move(id),
                               .cause = "compile",
                               .sentence = std::move(sentence),
                               .evidence = std::move(evidence),
                               .gain_reason = std::string(kNoGain),
                               .confidence = "high",
                               .next = std::move(next)});
  };
  if (totals.again_ns * 100 > totals.window_ns) {
    add("recompilations", "torch.compile compiles code again that it had compiled already, because its guards failed",
        {{.text = "Recompilations", .value = totals.recompilations, .unit = Unit::count},
         {.text = "Time in them", .value = totals.again_ns, .unit = Unit::ns},
         {.text = "Share of the steps", .value = share(totals.again_ns, totals.window_ns), .unit = Unit::ratio}},
        "Run with TORCH_LOGS=recompiles to see which guard failed; for changing shapes use dynamic=True or "
        "torch._dynamo.mark_dynamic, or pad to a few shapes");
  } else if (totals.compile_ns * 20 > totals.window_ns) {
    add("compile_time", "Part of the recorded time is compilation, which a longer run pays once",
        {{.text = "Time compiling", .value = totals.compile_ns, .unit = Unit::ns},
         {.text = "Share of the steps", .value = share(totals.compile_ns, totals.window_ns), .unit = Unit::ratio}},
        "Record after the first steps (wait and warmup of torch.profiler.schedule), so that steps are comparable");
  }
  if (totals.breaks > 0) {
    add("graph_breaks", "Compiled code is broken into several graphs, with Python in between",
        {{.text = "Calls of a compiled region inside another one", .value = totals.breaks, .unit = Unit::count}},
        "Run with TORCH_LOGS=graph_breaks to see the lines (print, .item(), unsupported calls); "
        "torch.compile(fullgraph=True) makes them errors");
  }
}

constexpr std::string_view kNotSeen =
    "Nothing of torch.compile is in the recording: neither compilations nor compiled regions.";

Result<Answer> run_compile(const Run& run, const AnalyzeOptions& options) {
  if (auto derived = require_derived(run); !derived) return fail(derived.error());
  Answer answer;
  std::vector<Compiled> ranks;
  for (const Trace& trace : run.traces) ranks.push_back(look(trace));
  const CompileTotals totals = totals_of(ranks);
  const auto scalar = [&](std::string_view name, Value value, Unit unit, std::string_view meaning) {
    add_scalar(answer, name, totals.seen ? std::move(value) : Value(), unit, totals.seen ? meaning : kNotSeen);
  };
  scalar("compilation_count", totals.compilations, Unit::count, "Frames compiled in the recording, of all ranks");
  scalar("recompilation_count", value_if(totals.known == totals.compilations, totals.recompilations), Unit::count,
         totals.known == totals.compilations ? "Of these, compilations of a frame that had been compiled before"
                                             : "This version of torch does not record which frame was compiled");
  scalar("compile_ns", totals.compile_ns, Unit::ns, "Time in which a thread compiled, summed over ranks");
  scalar("graph_break_count", totals.breaks, Unit::count, "Calls of a compiled region inside another one");
  answer.tables = {compilations_table(ranks), stages_table(ranks), regions_table(ranks), graphs_table(ranks),
                   kernels_table(run)};
  for (Table& table : answer.tables) limit_rows(answer, table, options.max_rows, "those with less time");
  if (totals.seen) add_findings(answer, totals);
  if (!totals.seen) answer.notes.push_back(std::string(kNotSeen));
  if (!answer.tables[4].rows.empty()) {
    answer.notes.push_back(
        "Operators of a fused kernel are read from its name: it lists them once each and leaves out what does not "
        "compute (views).");
  }
  return answer;
}

}  // namespace

Analysis compile_analysis() {
  return {"compile", "What did torch.compile do: compile times, recompilations, graph breaks?", run_compile};
}

}  // namespace stepscope::analyze
