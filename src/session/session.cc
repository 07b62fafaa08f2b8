#include "session/session.h"

#include <algorithm>
#include <atomic>
#include <cctype>
#include <cstdlib>
#include <exception>
#include <map>
#include <mutex>
#include <new>

#include "analyze/analysis.h"
#include "base/did_you_mean.h"
#include "base/short_names.h"
#include "base/table_file.h"
#include "base/whole_file.h"
#include "base/workers.h"
#include "costs/cost_tables.h"
#include "derive/derive.h"
#include "derive/derive_run.h"
#include "formats/json_text.h"
#include "session/cache.h"
#include "session/fixes.h"
#include "session/inputs.h"
#include "session/memory_files.h"
#include "session/parts.h"
#include "session/player.h"
#include "session/prices.h"
#include "session/ranks.h"
#include "session/report_inputs.h"
#include "session/run_marks.h"
#include "session/run_memory.h"
#include "session/run_telemetry.h"
#include "session/shared_time.h"

namespace stepscope::session {
namespace {

// A file's outcome: its traces or why there are none.
struct Outcome {
  std::vector<Trace> traces;
  std::optional<Error> error;
};

read::ReadOptions read_options(const OpenOptions& options, unsigned threads) {
  read::ReadOptions read;
  read.threads = threads;
  read.tolerant_only = options.tolerant_only;
  if (const char* limit = std::getenv("STEPSCOPE_MAX_TEXT_MB")) {
    const std::uint64_t megabytes = std::strtoull(limit, nullptr, 10);
    read.max_text_bytes = std::min(megabytes, UINT64_MAX >> 20) << 20;
  }
  return read;
}

// What a defect of ours or too little memory would throw becomes the error of the one file or answer that it hit: it
// must not take the others with it, nor the program that loaded us.
template <class T, class Work, class Failed>
T guarded(const Work& work, const Failed& failed) try {
  return work();
} catch (const std::bad_alloc&) {
  return failed({ErrorKind::too_large, "there is not enough memory for it", "", std::nullopt,
                 "Open fewer files at once, or use a machine with more memory"});
} catch (const std::exception& error) {
  return failed({ErrorKind::internal, std::string("a defect of stepscope: ") + error.what(), "", std::nullopt,
                 "Please report it with the command that you typed"});
}

Outcome open_one(const InputFile& file, const OpenOptions& options, const Cache& cache, unsigned threads) {
  const bool try_cache = cache.enabled() && !options.tolerant_only;
  const std::string key =
      try_cache ? cache.key(file.path, options.rules_path.empty() ? "" : whole_file(options.rules_path)) : "";
  if (std::optional<Trace> kept = cache.load(key)) {
    kept->source.path = file.path;  // as given now; the key holds where it leads
    Outcome outcome;
    outcome.traces.push_back(*std::move(kept));
    return outcome;
  }
  Result<std::vector<Trace>> traces = file.reader->read(file.path, read_options(options, threads));
  if (!traces) return {{}, traces.error()};
  if (traces->front().only_memory()) {
    add_snapshot_history(traces->front());
    return {*std::move(traces), std::nullopt};
  }
  if (is_part(traces->front())) return {*std::move(traces), std::nullopt};  // derived when the others are there
  for (Trace& trace : *traces) {
    if (const auto done = derive::derive(trace, {options.rules_path, {}}); !done) return {{}, done.error()};
  }
  const bool worth_keeping = traces->front().source.text_bytes >= kCacheMinTextBytes;
  if (worth_keeping && traces->size() == 1) cache.store(key, traces->front());
  return {*std::move(traces), std::nullopt};
}

// Files are shared out among the cores; cores that are left over help within a file.
std::vector<Outcome> open_all(const std::vector<InputFile>& files, const OpenOptions& options) {
  std::vector<Outcome> outcomes(files.size());
  const unsigned cores = options.threads > 0 ? options.threads : usable_cores();
  const unsigned at_once = std::min<std::size_t>(cores, files.size());
  const unsigned threads_each = std::max(1u, cores / at_once);
  std::atomic<std::size_t> done{0};
  std::mutex progress_mutex;
  const Cache cache = Cache::from_environment(options.use_cache);
  if (options.progress) options.progress("reading " + files.front().path, 0);
  for_each_index(files.size(), at_once, [&](std::size_t i) {
    outcomes[i] = guarded<Outcome>([&] { return open_one(files[i], options, cache, threads_each); },
                                   [&](Error error) {
                                     error.file = files[i].path;
                                     return Outcome{{}, std::move(error)};
                                   });
    done++;
    if (!options.progress) return;
    const std::lock_guard lock(progress_mutex);
    options.progress("reading " + files[i].path, static_cast<double>(done) / static_cast<double>(files.size()));
  });
  return outcomes;
}

Result<void> take_table(UserTable& table, const std::string& path, const char* variable, std::string_view what,
                        std::string_view document) {
  const char* named = std::getenv(variable);
  table.file = !path.empty() ? path : named != nullptr ? named : "";
  if (table.file.empty()) return {};
  Result<std::string> text = read_table(table.file, what, document);
  if (!text) return fail(text.error());
  table.text = *std::move(text);
  return {};
}

// The user's tables of costs; a mistake in them is told before a large file is read.
Result<void> take_cost_tables(Run& run, const OpenOptions& options) {
  Result<void> done = take_table(run.peaks, options.peaks_path, "STEPSCOPE_PEAKS", "peaks", "docs/flops.md");
  if (!done) return done;
  done =
      take_table(run.flop_rules, options.flop_rules_path, "STEPSCOPE_FLOP_RULES", "FLOP rules", "docs/flop-rules.md");
  if (!done) return done;
  const Result<costs::CostTables> tables = costs::cost_tables(run);
  return tables ? Result<void>() : fail(tables.error());
}

// Parts become whole recordings, and what was put together is derived.
Result<void> settle_recordings(Run& run, const OpenOptions& options) {
  join_parts(run.traces, run);
  std::vector<Trace*> fresh;
  for (Trace& trace : run.traces) {
    if (is_part(trace)) fresh.push_back(&trace);
  }
  for (Trace& trace : run.stack_steps) fresh.push_back(&trace);
  std::vector<std::optional<Error>> errors(fresh.size());
  for_each_index(fresh.size(), options.threads > 0 ? options.threads : usable_cores(), [&](std::size_t i) {
    if (const auto done = derive::derive(*fresh[i], {options.rules_path, cut_steps(*fresh[i])}); !done)
      errors[i] = done.error();
  });
  for (const std::optional<Error>& error : errors) {
    if (error) return fail(*error);
  }
  return {};
}

}  // namespace

Result<Run> open(std::span<const std::string> paths, const OpenOptions& options) {
  Run run;
  if (!paths.empty()) run.path = paths.front();
  if (const auto given = take_cost_tables(run, options); !given) return fail(given.error());
  const auto files = find_inputs(paths, run.issues);
  if (!files) return fail(files.error());
  std::optional<Error> first_error;
  std::vector<Outcome> outcomes = open_all(*files, options);
  for (std::size_t i = 0; i < outcomes.size(); i++) {
    Outcome& outcome = outcomes[i];
    std::move(outcome.traces.begin(), outcome.traces.end(), std::back_inserter(run.traces));
    if (!outcome.error) continue;
    const Error& error = *outcome.error;
    if (error.kind == ErrorKind::usage) return fail(error);
    if (!first_error) first_error = error;
    // Such as the database of another program in the folder: its reader saw only at second sight that it is no trace.
    if ((*files)[i].found && error.kind == ErrorKind::unrecognized) continue;
    run.issues.push_back(
        {"file_left_out", Severity::lost, to_text(error), error.hint, 1, error.file, error.offset, std::nullopt});
  }
  settle_snapshots(run);
  if (run.traces.empty() && run.snapshots.empty()) return fail(*first_error);
  if (const auto settled = settle_recordings(run, options); !settled) return fail(settled.error());
  settle_ranks(run);
  const std::string folder = files->front().found ? run_folder_of(files->front().path) : "";
  if (!folder.empty()) {
    add_mark_issues(folder, run);
    run.history = read_history(folder);
    read_telemetry(folder, run);
  }
  read_memory_states(folder, run);
  derive::derive_run(run, options.threads > 0 ? options.threads : usable_cores());
  const bool one_folder = std::all_of(files->begin(), files->end(), [&](const InputFile& file) {
    return file.found && run_folder_of(file.path) == folder;
  });
  // A run folder holds one job, however often it was recorded; of two of them each may be another job's.
  if (folder.empty() || !one_folder) note_unrelated(run);
  return run;
}

std::vector<std::string_view> compat_modes() { return compat::mode_names(); }

std::vector<std::string_view> answer_names(std::string_view mode) {
  std::vector<std::string_view> names;
  if (mode.empty()) {
    names.push_back(kAdvice);
    for (const auto& analysis : analyze::analyses()) names.push_back(analysis.name);
  } else if (const auto analyses = compat::analyses(mode)) {
    for (const auto& analysis : *analyses) names.push_back(analysis.name);
  }
  return names;
}

namespace {

// One answer to make, whichever room makes it.
struct Question {
  std::string_view name;
  std::function<Result<Answer>()> run;
};

Result<std::vector<Question>> choose(std::vector<Question> all, std::span<const std::string> names,
                                     std::string_view mode) {
  if (names.empty()) return all;
  std::vector<Question> chosen;
  for (const std::string& name : names) {
    const auto match = std::find_if(all.begin(), all.end(), [&](const Question& q) { return q.name == name; });
    if (match == all.end()) return fail(unknown_name("answer", name, answer_names(mode)));
    chosen.push_back(*match);
  }
  return chosen;
}

std::vector<Question> ordinary_questions(const Run& run, Player& player) {
  std::vector<Question> all{{kAdvice, [&run, &player] { return titled_advice(run, player); }}};
  for (const auto& analysis : analyze::analyses())
    all.push_back({analysis.name, [&run, &analysis] { return analysis.run(run, {}); }});
  return all;
}

Result<std::vector<compat::EventArguments>> slice_arguments(const Trace& trace, std::span<const SliceId> slices) {
  const auto texts = slice_texts(trace, slices);
  if (!texts) return fail(texts.error());
  std::vector<compat::EventArguments> all;
  for (const std::string& text : *texts) {
    compat::EventArguments& arguments = all.emplace_back();
    for (const auto& member : formats::members(text)) {
      if (member.key != "args") continue;
      for (const auto& argument : formats::members(member.value))
        arguments.emplace_back(argument.key, formats::value_text(argument.value));
    }
  }
  return all;
}

Result<std::vector<Question>> compatible_questions(const Run& run, const compat::Options& options) {
  const auto analyses = compat::analyses(options.mode);
  if (!analyses) return fail(analyses.error());
  Result<compat::Input> made = compat::prepare(run, options, slice_arguments);
  if (!made) return fail(made.error());
  const auto input = std::make_shared<const compat::Input>(*std::move(made));
  std::vector<Question> all;
  for (const auto& analysis : *analyses)
    all.push_back({analysis.name, [input, &analysis] { return analysis.run(*input); }});
  return all;
}

}  // namespace

namespace {

// What is left of a damaged recording can point the other way than the whole.
void lower_confidence(Report& report) {
  const bool lost = std::any_of(report.issues.begin(), report.issues.end(),
                                [](const Issue& issue) { return issue.severity == Severity::lost; });
  if (!lost) return;
  for (Answer& answer : report.answers) {
    for (Finding& finding : answer.findings) {
      finding.confidence = "low";
      finding.confidence_reason = "part of the recording was lost" +
                                  (finding.confidence_reason.empty() ? "" : "; " + finding.confidence_reason);
    }
  }
}

}  // namespace

namespace {

Result<Report> answer_with(Player& player, std::span<const std::string> names, const compat::Options& compat) {
  const Run& run = player.run();
  Result<std::vector<Question>> all =
      compat.mode.empty() ? ordinary_questions(run, player) : compatible_questions(run, compat);
  if (!all) return fail(all.error());
  const auto questions = choose(*std::move(all), names, compat.mode);
  if (!questions) return fail(questions.error());
  Report report{.path = run.path};
  add_inputs(report, run);
  // Analyses only read the run: one thread each, answers in the order asked.
  std::vector<std::optional<Result<Answer>>> answers(questions->size());
  for_each_index(questions->size(), usable_cores(), [&](std::size_t i) {
    answers[i] = guarded<Result<Answer>>((*questions)[i].run, [](Error error) { return fail(std::move(error)); });
  });
  for (std::size_t i = 0; i < answers.size(); i++) {
    if (*answers[i]) {
      report.answers.push_back(**std::move(answers[i]));
    } else {
      report.failed.emplace_back((*questions)[i].name, to_text(answers[i]->error()));
    }
  }
  if (compat.mode.empty()) {
    price_findings(player, report);
    say_what_advice_explains(report);
  }
  lower_confidence(report);
  put_by_worth(report);
  return report;
}

}  // namespace

Result<Report> answer(const Run& run, std::span<const std::string> names, const compat::Options& compat) {
  Player player(run, Player::Patience::of_a_report);
  return answer_with(player, names, compat);
}

Result<Report> advise(const Run& run) {
  Player player(run, Player::Patience::endless);
  return answer_with(player, {}, {});
}

Result<Answer> one_answer(const Run& run, const std::string& name) {
  auto report = answer(run, std::span(&name, 1));
  if (!report) return fail(report.error());
  if (report->answers.empty()) {
    const std::string why = report->failed.empty() ? "no reason was given" : report->failed.front().second;
    return fail({ErrorKind::unsupported, "the answer " + name + " could not be made: " + why, "", std::nullopt, ""});
  }
  return std::move(report->answers.front());
}

Result<Comparison> compare(const Run& a, const Run& b, diff::Options options) {
  if (options.name_a.empty() && options.name_b.empty()) {
    const std::vector<std::string> names = short_names({a.path, b.path});
    options.name_a = names[0];
    options.name_b = names[1];
  }
  Result<diff::Difference> found = diff::diff(a, b, options);
  if (!found) return fail(found.error());
  add_fixes(a, b, found->answer);
  Comparison out{.report = {.path = a.path + " → " + b.path}, .gates = std::move(found->gates)};
  for (const Run* run : {&a, &b}) add_inputs(out.report, *run);
  out.report.answers.push_back(std::move(found->answer));
  return out;
}

Result<Report> memory_report(const Run& run, const MemoryView& view) {
  const bool grows = !view.from.empty() || !view.to.empty();
  Result<Answer> answer = grows ? memory_between(run, view) : memory_at(run, view);
  if (!answer) return fail(answer.error());
  Report report{.path = run.path};
  add_inputs(report, run);
  report.answers.push_back(*std::move(answer));
  return report;
}

Result<Report> memory_report(const Run& a, const Run& b, const MemoryView& view) {
  Result<Answer> answer = memory_against(a, b, view);
  if (!answer) return fail(answer.error());
  Report report{.path = a.path + " → " + b.path};
  for (const Run* run : {&a, &b}) add_inputs(report, *run);
  report.answers.push_back(*std::move(answer));
  return report;
}

Result<std::vector<std::string>> slice_texts(const Trace& trace, std::span<const SliceId> slices) {
  const read::Reader* reader = read::reader_named(trace.source.format);
  if (reader == nullptr) {
    return fail(
        {ErrorKind::internal, "no reader for format " + trace.source.format, trace.source.path, std::nullopt, ""});
  }
  std::map<std::uint32_t, std::vector<std::size_t>> by_part;  // which of `slices` lie in which file
  std::vector<std::uint64_t> offsets;
  for (std::size_t i = 0; i < slices.size(); i++) {
    const auto row = static_cast<std::uint32_t>(slices[i]);
    const auto& blocks = trace.source.blocks;
    const auto block = std::upper_bound(blocks.begin(), blocks.end(), row,
                                        [](std::uint32_t r, const PlaceBlock& b) { return r < b.first_slice; });
    if (block == blocks.begin() || row >= trace.slices.size()) {
      return fail({ErrorKind::not_found, "no such slice", trace.source.path, std::nullopt, ""});
    }
    offsets.push_back(std::prev(block)->offset + trace.slices.place[slices[i]]);
    by_part[std::prev(block)->part].push_back(i);
  }
  if (trace.source.parts.empty()) return reader->event_text(trace, offsets);
  std::vector<std::string> all(slices.size());
  for (const auto& [part, rows] : by_part) {
    Trace file;  // event_text asks for the source only
    file.source = trace.source;
    file.source.path = trace.source.parts.at(part);
    std::vector<std::uint64_t> places;
    for (const std::size_t row : rows) places.push_back(offsets[row]);
    Result<std::vector<std::string>> texts = reader->event_text(file, places);
    if (!texts) return fail(texts.error());
    for (std::size_t i = 0; i < rows.size(); i++) all[rows[i]] = std::move((*texts)[i]);
  }
  return all;
}

Result<std::string> slice_text(const Trace& trace, SliceId slice) {
  Result<std::vector<std::string>> texts = slice_texts(trace, std::span(&slice, 1));
  if (!texts) return fail(texts.error());
  return std::move(texts->front());
}

}  // namespace stepscope::session
