#include "session/ranks.h"

#include <algorithm>
#include <cctype>
#include <map>
#include <set>
#include <string>
#include <utility>

#include "base/intervals.h"
#include "model/answer.h"
#include "model/unrelated_files.h"

namespace stepscope::session {
namespace {

bool is_digit(char c) { return c >= '0' && c <= '9'; }

std::string listed(const std::set<std::int64_t>& ranks) {
  std::string text;
  std::size_t shown = 0;
  for (const std::int64_t rank : ranks) {
    if (shown++ == 8) return text + ", …";
    text += (text.empty() ? "" : ", ") + std::to_string(rank);
  }
  return text;
}

void give_ranks(Run& run) {
  std::set<std::int64_t> taken;
  std::map<std::string_view, int> traces_of;
  for (const Trace& trace : run.traces) traces_of[trace.source.path]++;
  for (Trace& trace : run.traces) {
    // a name says nothing of ranks that share a file
    if (trace.rank.source == RankSource::order && traces_of[trace.source.path] == 1) {
      if (const auto named = rank_in_name(trace.source.path)) {
        trace.rank.rank = *named;
        trace.rank.source = RankSource::file_name;
      }
    }
    if (trace.rank.source != RankSource::order && !trace.only_graph()) taken.insert(trace.rank.rank);
  }
  // An execution trace stands beside a timeline of its rank, so the two are numbered apart.
  std::set<std::int64_t> taken_by_graphs;
  for (Trace& trace : run.traces) {
    if (trace.rank.source != RankSource::order) continue;
    std::set<std::int64_t>& others = trace.only_graph() ? taken_by_graphs : taken;
    trace.rank.rank = 0;
    while (!others.insert(trace.rank.rank).second) trace.rank.rank++;
  }
}

void note_clashes(Run& run) {
  std::map<std::int64_t, std::vector<const Trace*>> by_rank;
  std::int64_t world_size = 0;
  for (const Trace& trace : run.traces) {
    if (trace.only_graph()) continue;
    by_rank[trace.rank.rank].push_back(&trace);
    world_size = std::max(world_size, trace.rank.world_size);
  }
  for (const auto& [rank, traces] : by_rank) {
    if (traces.size() < 2) continue;
    run.issues.push_back(
        {"rank_clash", Severity::info,
         std::to_string(traces.size()) + " files are of rank " + std::to_string(rank) + "; all are kept",
         "Open one recording at a time if they are not of the same moment", traces.size(), traces.front()->source.path,
         std::nullopt, std::nullopt});
  }
  if (run.traces.size() < 2 || world_size <= 0 || world_size > 1'000'000) return;
  std::set<std::int64_t> missing;
  for (std::int64_t rank = 0; rank < world_size; rank++) {
    if (!by_rank.contains(rank)) missing.insert(rank);
  }
  if (missing.empty()) return;
  run.issues.push_back({"ranks_missing", Severity::info,
                        std::to_string(missing.size()) + " of " + std::to_string(world_size) +
                            " ranks were not given: " + listed(missing),
                        "", missing.size(), run.path, std::nullopt, std::nullopt});
}

}  // namespace

namespace {

constexpr std::int64_t kFarApartNs = 10'000'000'000;  // further than the clocks of two hosts of one job

// In Unix time; nothing where the recording does not tell it, or nothing ran.
std::optional<Interval> unix_window(const Trace& trace) {
  if (trace.slices.size() == 0) return std::nullopt;
  Interval window{INT64_MAX, INT64_MIN};
  for (std::size_t i = 0; i < trace.slices.size(); i++) {
    const auto slice = static_cast<SliceId>(i);
    window = {std::min(window.start, trace.slices.start_ns[slice]), std::max(window.end, trace.slices.end_ns(slice))};
  }
  const std::int64_t base = trace.clock_base_ns == kAbsent ? 0 : trace.clock_base_ns;
  if (base <= kUnixFromNs && window.start <= kUnixFromNs) return std::nullopt;
  return Interval{window.start + base, window.end + base};
}

}  // namespace

void note_unrelated(Run& run) {
  std::map<std::int64_t, std::set<std::string_view>> files_of;  // by rank
  std::set<std::string_view> files;
  std::set<std::int64_t> sizes;
  std::int64_t last_start = INT64_MIN, first_end = INT64_MAX;
  for (const Trace& trace : run.traces) {
    if (trace.only_graph()) continue;
    files.insert(trace.source.path);
    files_of[trace.rank.rank].insert(trace.source.path);
    if (trace.rank.world_size > 0) sizes.insert(trace.rank.world_size);
    const bool met = trace.clock.source == ClockSource::collectives;  // they worked together, whatever their clocks say
    const auto window = met ? std::nullopt : unix_window(trace);
    if (!window) continue;
    last_start = std::max(last_start, window->start);
    first_end = std::min(first_end, window->end);
  }
  std::set<std::int64_t> twice;
  for (const auto& [rank, of] : files_of) {
    if (of.size() > 1) twice.insert(rank);
  }
  std::vector<std::string> reasons;
  if (!twice.empty()) reasons.push_back("several are of rank " + listed(twice));
  if (sizes.size() > 1) reasons.push_back("their jobs have " + listed(sizes) + " ranks");
  if (first_end != INT64_MAX && last_start - kFarApartNs > first_end) {
    reasons.push_back("they were not recorded at the same time");
  }
  if (files.size() < 2 || reasons.empty()) return;
  std::string why;
  for (const std::string& reason : reasons) why += (why.empty() ? "" : "; ") + reason;
  run.issues.push_back({std::string(kUnrelatedFiles), Severity::info,
                        "The " + std::to_string(files.size()) + " files do not look like one job: " + why,
                        "Open each by itself: stepscope view --each FILE…", files.size(), run.path, std::nullopt,
                        std::nullopt});
}

std::optional<std::int64_t> rank_in_name(std::string_view path) {
  for (std::size_t end = path.size(); (end = path.rfind("rank", end)) != path.npos; end--) {
    std::size_t at = end + 4;
    // "rank3", "rank-3", "rank_3", "rank 3", not "ranking" or "frank3"
    if (end > 0 && std::isalpha(static_cast<unsigned char>(path[end - 1]))) {
      if (end == 0) break;
      continue;
    }
    if (at < path.size() && (path[at] == '-' || path[at] == '_' || path[at] == ' ' || path[at] == '=')) at++;
    const std::size_t first = at;
    while (at < path.size() && is_digit(path[at]) && at - first < 9) at++;
    if (at > first) return std::stoll(std::string(path.substr(first, at - first)));
    if (end == 0) break;
  }
  return std::nullopt;
}

void settle_ranks(Run& run) {
  give_ranks(run);
  const auto place = [](const Trace& trace) { return std::pair(trace.only_graph(), trace.rank.rank); };
  std::stable_sort(run.traces.begin(), run.traces.end(),
                   [&](const Trace& a, const Trace& b) { return place(a) < place(b); });
  note_clashes(run);
}

}  // namespace stepscope::session
