#include "cli/open_paths.h"

#include <algorithm>
#include <filesystem>

#include <fmt/format.h>

#include "cli/command.h"
#include "cli/help.h"
#include "session/session.h"

namespace stepscope::cli {

void OpenPaths::add_options(CLI::App& app) {
  app.add_flag("--no-cache", no_cache, "Read the input again even if it is in the cache, and do not fill the cache");
  app.add_option("--rules", rules, "Your own rules for classes of device work")->type_name("FILE");
  app.add_option("--peaks", peaks, "What your devices can do at most: FLOP/s and memory bandwidth")->type_name("FILE");
  app.add_option("--flop-rules", flop_rules, "FLOP of your own kernels, by formulas")->type_name("FILE");
  app.add_option("--threads", threads, "Threads to read with (default: all cores)")
      ->type_name("N")
      ->check(whole_number(1, 4096));
}

session::OpenOptions OpenPaths::options() const {
  session::OpenOptions options;
  options.use_cache = !no_cache;
  options.threads = threads;
  options.rules_path = rules;
  options.peaks_path = peaks;
  options.flop_rules_path = flop_rules;
  return options;
}

Result<Run> OpenPaths::open(ProgressLine& progress) const {
  session::OpenOptions how = options();
  how.progress = [&](std::string_view what, double share) { progress.show(what, share); };
  return session::open(paths, how);
}

Result<void> has_events(const Run& run, const std::string& format, bool has_counters) {
  if (run.traces.empty()) {
    return fail({ErrorKind::unsupported, "holds the device's memory and no trace, and " + format + " cannot show that",
                 run.path, std::nullopt, "See it with stepscope memory " + run.path});
  }
  const auto sampled = [](const Trace& trace) { return trace.source.format == kSampleFiles; };
  if (!has_counters && std::all_of(run.traces.begin(), run.traces.end(), sampled)) {
    return fail(
        {ErrorKind::unsupported, "holds telemetry and no trace, and " + format + " cannot show that", run.path,
         std::nullopt,
         "See it with stepscope report --only system " + run.path + ", or convert --to perfetto, chrome or csv"});
  }
  const auto graph = [](const Trace& trace) { return trace.only_graph(); };
  if (!std::all_of(run.traces.begin(), run.traces.end(), graph)) return {};
  return fail(
      {ErrorKind::unsupported, "holds an execution graph alone, which " + format + " cannot show", run.path,
       std::nullopt,
       "Draw it with stepscope graph, convert the timeline beside it, or write the table nodes with convert --to csv"});
}

void keep_timelines(Run& run) {
  std::erase_if(run.traces, [](const Trace& trace) { return trace.only_graph(); });
}

int loss_outcome(const Run& run) {
  const auto lost = [](const std::vector<Issue>& issues) {
    return std::count_if(issues.begin(), issues.end(),
                         [](const Issue& issue) { return issue.severity == Severity::lost; });
  };
  auto count = lost(run.issues);
  for (const Trace& trace : run.traces) count += lost(trace.issues);
  if (count == 0) return kOk;
  print_notice(
      fmt::format("data was lost in the input ({} {}), so this is of a part of it; stepscope report says which", count,
                  count == 1 ? "issue" : "issues"));
  return kPartial;
}

Result<void> keep_inputs(const Run& run, const std::string& target) {
  for (const std::vector<Trace>* part : {&run.traces, &run.snapshots}) {
    for (const Trace& trace : *part) {
      std::error_code none;
      if (!std::filesystem::equivalent(trace.source.path, target, none)) continue;
      return fail(
          {ErrorKind::usage, "is the trace itself; the output would replace it", target, {}, "Name another file"});
    }
  }
  return {};
}

}  // namespace stepscope::cli
