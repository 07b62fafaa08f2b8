// Session: the single way in for the command line, the C ABI and (later) the server: paths → run → answers.
#pragma once

#include <functional>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "compat/compat.h"
#include "diff/diff.h"
#include "model/answer.h"
#include "model/trace.h"
#include "session/memory_view.h"

namespace stepscope::session {

struct OpenOptions {
  bool use_cache = true;  // --no-cache, STEPSCOPE_CACHE=off
  unsigned threads = 0;   // 0: all cores this process may use
  bool tolerant_only = false;
  std::string rules_path;       // the user's class rules
  std::string peaks_path;       // what devices can do; empty: what STEPSCOPE_PEAKS names
  std::string flop_rules_path;  // FLOP of the user's kernels; empty: what STEPSCOPE_FLOP_RULES names
  // Called now and then with a sentence and the share done (0..1); may be empty. Called from one thread at a time.
  std::function<void(std::string_view what, double share)> progress;
};

// Opens a file, several files, globs or folders as one run: reads all ranks on all cores, derives, checks ranks.
// Fails when nothing at all could be opened; a file that could not be opened beside others is an issue of the run.
Result<Run> open(std::span<const std::string> paths, const OpenOptions& options);

// The tools whose answers can be asked for instead of ours.
std::vector<std::string_view> compat_modes();

// Names of all analyses, in report order: the ordinary ones, or those of a compatible mode (none for an unknown mode).
std::vector<std::string_view> answer_names(std::string_view mode = {});

// Runs the named analyses (all when empty). An unknown name is a usage error that lists all, with "did you mean".
// `compat` asks for the answers of another tool instead of the ordinary ones.
Result<Report> answer(const Run& run, std::span<const std::string> names, const compat::Options& compat = {});

// All ordinary answers, with advice and prices however large the run is, which can take minutes.
Result<Report> advise(const Run& run);

// The answer `name` by itself, or why it could not be made.
Result<Answer> one_answer(const Run& run, const std::string& name);

// What changed from run `a` to run `b`: a report of one answer, and what became of the gates.
struct Comparison {
  Report report;
  std::vector<diff::GateResult> gates;
};
// Without names in the options they are called as their paths end.
Result<Comparison> compare(const Run& a, const Run& b, diff::Options options);

// What memory snapshots hold at a moment of the user's choice, or between two (view.from or view.to is set), as a
// report of one answer; and two runs at such a moment.
Result<Report> memory_report(const Run& run, const MemoryView& view);
Result<Report> memory_report(const Run& a, const Run& b, const MemoryView& view);

// JSON text of the arguments of slices, read again from their file.
Result<std::vector<std::string>> slice_texts(const Trace& trace, std::span<const SliceId> slices);
Result<std::string> slice_text(const Trace& trace, SliceId slice);

}  // namespace stepscope::session
