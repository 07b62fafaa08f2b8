#include "model/settings.h"

#include <simdjson.h>

#include <algorithm>
#include <charconv>
#include <limits>

namespace stepscope {
namespace {

// Calls `visit(row)` for each row of the lists that are noted by that key: one of each part of a recording.
template <class Visit>
void for_each_row(const Trace& trace, std::string_view key, const Visit& visit) {
  simdjson::dom::parser parser;
  for (const Metadata& one : trace.metadata) {
    simdjson::dom::array rows;
    if (one.key != key || parser.parse(one.json).get(rows) != simdjson::SUCCESS) continue;
    for (const simdjson::dom::element row : rows) visit(row);
  }
}

}  // namespace

std::string_view setting(const Trace& trace, std::string_view name) {
  constexpr std::string_view kOurs = "stepscope_";
  for (const Metadata& one : trace.metadata) {
    const std::string_view key = one.key;
    if (key.starts_with(kOurs) && key.substr(kOurs.size()) == name) return one.json;
  }
  return {};
}

std::optional<std::int64_t> number_set(const Trace& trace, std::string_view name) {
  const std::string_view json = setting(trace, name);
  std::int64_t number = 0;
  const auto [end, error] = std::from_chars(json.data(), json.data() + json.size(), number);
  if (error != std::errc() || end != json.data() + json.size()) return std::nullopt;
  return number;
}

std::optional<double> ratio_set(const Trace& trace, std::string_view name) {
  const auto permille = number_set(trace, name);
  if (!permille) return std::nullopt;
  return static_cast<double>(*permille) / 1000;
}

std::string text_set(const Trace& trace, std::string_view name) {
  const std::string json(setting(trace, name));
  simdjson::dom::parser parser;
  std::string_view text;
  if (json.empty() || parser.parse(json).get(text) != simdjson::SUCCESS) return {};
  return std::string(text);
}

std::vector<CoreWait> core_waits(const Trace& trace) {
  std::vector<CoreWait> out;
  for_each_row(trace, kCoreWaits, [&](const simdjson::dom::element& row) {
    CoreWait wait;
    if (row.at_pointer("/0").get(wait.step) != simdjson::SUCCESS) return;
    if (row.at_pointer("/1").get(wait.ns) == simdjson::SUCCESS && wait.ns > 0) out.push_back(wait);
  });
  return out;
}

namespace {

constexpr std::int64_t kMostNs = std::int64_t{1} << 52;  // seven weeks; no part of a recording is longer

std::optional<ThreadBeside> thread_beside(const simdjson::dom::element& row) {
  ThreadBeside out;
  std::string_view name, file, function;
  const bool whole = row.at_pointer("/0").get(name) == simdjson::SUCCESS &&
                     row.at_pointer("/1").get(out.ran_ns) == simdjson::SUCCESS &&
                     row.at_pointer("/2").get(file) == simdjson::SUCCESS &&
                     row.at_pointer("/3").get(out.function_line) == simdjson::SUCCESS &&
                     row.at_pointer("/4").get(function) == simdjson::SUCCESS &&
                     row.at_pointer("/5").get(out.line) == simdjson::SUCCESS;
  if (!whole || out.ran_ns <= 0 || out.ran_ns > kMostNs) return std::nullopt;
  out.name = name, out.file = file, out.function = function;
  return out;
}

}  // namespace

ThreadsBeside threads_beside(const Trace& trace) {
  ThreadsBeside out;
  simdjson::dom::parser parser;
  for (const Metadata& one : trace.metadata) {
    simdjson::dom::element note;
    if (one.key != kThreadsBeside || parser.parse(one.json).get(note) != simdjson::SUCCESS) continue;
    std::int64_t recorded_ns = 0, stood_ns = 0;
    simdjson::dom::array rows;
    if (note.at_pointer("/recorded_ns").get(recorded_ns) != simdjson::SUCCESS || recorded_ns <= 0) continue;
    if (note.at_pointer("/stood_ns").get(stood_ns) != simdjson::SUCCESS || stood_ns < 0) continue;
    if (recorded_ns > kMostNs || stood_ns > recorded_ns) continue;
    if (note.at_pointer("/threads").get(rows) != simdjson::SUCCESS) continue;
    out.recorded_ns += recorded_ns, out.stood_ns += stood_ns;
    for (const simdjson::dom::element row : rows) {
      auto thread = thread_beside(row);
      if (!thread) continue;
      const auto same = std::find_if(out.threads.begin(), out.threads.end(), [&](const ThreadBeside& known) {
        return known.name == thread->name && known.file == thread->file && known.function == thread->function;
      });
      if (same != out.threads.end()) {  // of another part
        same->ran_ns += thread->ran_ns;
      } else {
        out.threads.push_back(*std::move(thread));
      }
    }
  }
  return out;
}

std::vector<Compilation> compilations(const Trace& history) {
  constexpr std::size_t kMostRows = 1024;  // 64 of each process of a rank
  constexpr std::int64_t kNsPerUs = 1000, kMostUs = std::numeric_limits<std::int64_t>::max() / (2 * kNsPerUs);
  std::vector<Compilation> out;
  for_each_row(history, kCompilations, [&](const simdjson::dom::element& row) {
    Compilation made;
    std::int64_t start_us = 0, dur_us = 0;
    std::string_view frame, guard, file, function;
    const bool whole =
        row.at_pointer("/0").get(start_us) == simdjson::SUCCESS &&
        row.at_pointer("/1").get(dur_us) == simdjson::SUCCESS && row.at_pointer("/2").get(frame) == simdjson::SUCCESS &&
        row.at_pointer("/3").get(made.attempt) == simdjson::SUCCESS &&
        row.at_pointer("/4").get(guard) == simdjson::SUCCESS && row.at_pointer("/5").get(file) == simdjson::SUCCESS &&
        row.at_pointer("/6").get(made.line) == simdjson::SUCCESS &&
        row.at_pointer("/7").get(function) == simdjson::SUCCESS;
    if (!whole || made.attempt < 0 || start_us < 0 || dur_us < 0) return;
    if (start_us > kMostUs || dur_us > kMostNs / kNsPerUs || out.size() >= kMostRows) return;
    made.start_ns = start_us * kNsPerUs, made.dur_ns = dur_us * kNsPerUs;
    made.frame = frame, made.guard = guard, made.file = file, made.function = function;
    out.push_back(std::move(made));
  });
  return out;
}

std::set<std::pair<std::string, std::int64_t>> given_the_same(const Trace& history) {
  std::set<std::pair<std::string, std::int64_t>> out;
  for_each_row(history, kGivenTheSame, [&](const simdjson::dom::element& row) {
    std::string_view file;
    std::int64_t line = 0;
    if (row.at_pointer("/0").get(file) != simdjson::SUCCESS) return;
    if (row.at_pointer("/1").get(line) == simdjson::SUCCESS) out.emplace(file, line);
  });
  return out;
}

namespace {

struct PageFaults {
  double steps = 0, all = 0;
  double each() const {
    constexpr double kMost = 1e15;  // notes of a file, which may hold anything
    return steps > 0 ? std::min(all / steps, kMost) : 0;
  }
};

void add_page_faults(simdjson::dom::element note, PageFaults& to) {
  std::uint64_t steps = 0, count = 0;
  if (note.at_pointer("/0").get(steps) != simdjson::SUCCESS || note.at_pointer("/1").get(count) != simdjson::SUCCESS)
    return;
  to.steps += static_cast<double>(steps), to.all += static_cast<double>(steps) * static_cast<double>(count);
}

}  // namespace

std::optional<double> page_faults_per_step(const Trace& trace) {
  PageFaults all;  // of several parts, each by its steps
  simdjson::dom::parser parser;
  for (const Metadata& one : trace.metadata) {
    simdjson::dom::element note;
    if (one.key == kPageFaults && parser.parse(one.json).get(note) == simdjson::SUCCESS) add_page_faults(note, all);
  }
  return all.steps > 0 ? std::optional(all.each()) : std::nullopt;
}

bool FaultsAround::kept_memory() const { return before - after >= kManyPageFaults; }

namespace {

// How many more pages a step waited for in the recording that a job began with than it does since: as many as the
// kernel counted, and no more than the shortest of these steps is longer by. A recording makes steps longer, and the
// job wait for other pages as well.
std::optional<double> more_while_recorded(const Trace& history, const Trace& recorded, std::int64_t steps,
                                          const PageFaults& first, const FaultsAround& around) {
  constexpr double kMostOfOperatorNs = 2'000;  // to record it
  const auto one_page_ns = page_ns(recorded);
  std::vector<std::int64_t> while_ns, since_ns;
  for (const Step& step : history.steps) {
    if (step.start_ns < around.recording_ns) continue;
    (static_cast<double>(while_ns.size()) < first.steps ? while_ns : since_ns).push_back(step.end_ns - step.start_ns);
  }
  if (!one_page_ns || since_ns.empty()) return std::nullopt;
  const auto middle = since_ns.begin() + static_cast<std::ptrdiff_t>(since_ns.size() / 2);
  std::nth_element(since_ns.begin(), middle, since_ns.end());
  const double operators =
      static_cast<double>(recorded.ops.size()) / static_cast<double>(std::max<std::int64_t>(steps, 1));
  const double longer_ns = static_cast<double>(*std::min_element(while_ns.begin(), while_ns.end()) - *middle) -
                           kMostOfOperatorNs * operators;
  return std::max(0.0, std::min(first.each() - around.after, longer_ns / static_cast<double>(*one_page_ns)));
}

}  // namespace

std::optional<FaultsAround> faults_around_recording(const Trace& history, const Trace& recorded, std::int64_t steps) {
  constexpr double kFewestSteps = 8, kFewestMore = 3, kFewestRecorded = 3;  // the first ones make what later ones have
  constexpr std::int64_t kLatestNs = std::int64_t{1} << 62;
  simdjson::dom::parser parser;
  for (const Metadata& one : history.metadata) {
    simdjson::dom::element note, part;
    if (one.key != kPageFaultsAround || parser.parse(one.json).get(note) != simdjson::SUCCESS) continue;
    const auto counted = [&](std::string_view when) {
      PageFaults out;
      if (note[when].get(part) == simdjson::SUCCESS) add_page_faults(part, out);
      return out;
    };
    const PageFaults before = counted("before"), first = counted("recorded"), after = counted("after");
    FaultsAround out;
    if (note["recording_ns"].get(out.recording_ns) != simdjson::SUCCESS || out.recording_ns > kLatestNs) continue;
    if (after.steps <= 0) continue;
    out.before = before.each(), out.after = after.each();
    if (before.steps >= std::max(kFewestSteps, static_cast<double>(steps) + kFewestMore)) return out;
    bool kept = true;  // as older recordings did
    if (note["kept"].get(kept) == simdjson::SUCCESS && !kept) {
      out.before = out.after;
      return out;
    }
    // Ranks wait for one another, and hosts for their devices: there steps are longer for more than pages.
    const bool alone = recorded.rank.world_size <= 1 && recorded.device.size() == 0;
    if (first.steps < kFewestRecorded || out.recording_ns < 0 || !alone) continue;
    const auto more = more_while_recorded(history, recorded, steps, first, out);
    if (!more) continue;
    out.before = out.after + *more;
    out.is_recorded = true;
    return out;
  }
  return std::nullopt;
}

std::optional<double> usual_page_faults(const Trace& history, const Trace& recorded, std::int64_t steps) {
  const auto around = faults_around_recording(history, recorded, steps);
  return around && around->kept_memory() ? std::optional(around->before) : page_faults_per_step(history);
}

std::optional<std::int64_t> page_ns(const Trace& trace) {
  constexpr std::int64_t kMost = 50'000;  // settings of a file, which may hold anything
  const std::int64_t measured = number_set(trace, "page_ns").value_or(0);
  return measured > 0 && measured <= kMost ? std::optional(measured) : std::nullopt;
}

double page_bytes(const Trace& trace) {
  constexpr std::int64_t kUsual = 4096, kMost = 1 << 30;
  return static_cast<double>(std::clamp<std::int64_t>(number_set(trace, "page_bytes").value_or(kUsual), 1, kMost));
}

std::optional<double> loader_busy(const Trace& trace) { return ratio_set(trace, "loader_busy_permille"); }

std::optional<bool> workers_keep_up(const Trace& trace) {
  constexpr double kNearlyAll = 0.9, kRest = 0.5;
  const auto ready = batches_ready(trace), busy = loader_busy(trace);
  if (!ready || !busy) return std::nullopt;
  return *ready >= kNearlyAll && *busy < kRest;
}

std::optional<double> batches_ready(const Trace& trace) { return ratio_set(trace, "batches_ready_permille"); }

}  // namespace stepscope
