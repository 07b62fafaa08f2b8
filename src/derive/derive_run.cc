#include "derive/derive_run.h"

#include <algorithm>
#include <map>
#include <tuple>

#include "base/workers.h"
#include "derive/align_calls.h"
#include "derive/comm_calls.h"
#include "derive/run_clocks.h"
#include "model/match_times.h"

namespace stepscope::derive {
namespace {

constexpr double kFinestSpread = 5'000;
constexpr double kThreadSpread = 5'000'000;  // a thread of the host ends when the scheduler lets it
constexpr double kSpreadsInBound = 2.3;      // of a heavy-tailed spread nine in ten lie within as many

// Gives the lanes of all traces one numbering.
std::vector<CommLane> join_lanes(std::vector<CommCalls>& all) {
  using Key = std::tuple<std::string, std::string, std::int64_t, std::int64_t, std::int64_t>;
  std::map<Key, std::uint32_t> numbers;
  std::vector<CommLane> lanes;
  for (CommCalls& calls : all) {
    std::vector<std::uint32_t> renumbered;
    for (const CommLane& lane : calls.lanes) {
      const auto [at, added] = numbers.emplace(Key{lane.name, lane.ranks_text, lane.size, lane.source, lane.target},
                                               static_cast<std::uint32_t>(lanes.size()));
      if (added) lanes.push_back(lane);
      renumbered.push_back(at->second);
    }
    for (CommCall& call : calls.calls) call.lane = renumbered[call.lane];
  }
  return lanes;
}

struct Found {
  MatchedBy by;
  std::vector<std::pair<std::uint32_t, std::uint32_t>> calls;  // trace, index into its calls
};

class Matcher {
 public:
  Matcher(const Run& run, const std::vector<CommCalls>& all, std::vector<CommLane> lanes)
      : run_(run), all_(all), lanes_(std::move(lanes)) {}

  Matches take() {
    std::vector<std::vector<std::pair<std::uint32_t, std::uint32_t>>> by_lane(lanes_.size());
    for (std::uint32_t trace = 0; trace < all_.size(); trace++) {
      for (std::uint32_t i = 0; i < all_[trace].calls.size(); i++) by_lane[call(trace, i).lane].push_back({trace, i});
    }
    for (std::uint32_t lane = 0; lane < lanes_.size(); lane++) match_lane(lane, by_lane[lane]);
    return table();
  }

 private:
  using Calls = std::vector<std::pair<std::uint32_t, std::uint32_t>>;

  const CommCall& call(std::uint32_t trace, std::uint32_t index) const { return all_[trace].calls[index]; }

  void match_lane(std::uint32_t lane, const Calls& calls) {
    Calls numbered, others;
    for (const auto& one : calls) {
      const CommCall& found = call(one.first, one.second);
      if (found.sequence != kAbsent) {
        numbered.push_back(one);
      } else if (found.timed && can_meet(lanes_[lane])) {
        others.push_back(one);
      } else {
        found_.push_back({MatchedBy::alone, {one}});
      }
    }
    by_number(numbered);
    std::map<std::uint64_t, Calls> alike;
    Calls in_order;
    for (const auto& one : others) {
      const CommCall& found = call(one.first, one.second);
      (found.concurrent ? alike[found.token] : in_order).push_back(one);
    }
    by_alignment(in_order);
    for (auto& [token, same] : alike) {
      // Threads take them from one queue: the order of their starts is that of the program.
      std::stable_sort(same.begin(), same.end(), [&](const auto& a, const auto& b) {
        return std::pair(a.first, call(a.first, a.second).member.start_ns) <
               std::pair(b.first, call(b.first, b.second).member.start_ns);
      });
      by_alignment(same);
    }
  }

  // A pipe whose ends are not recorded is known only where there are no others.
  bool can_meet(const CommLane& lane) const {
    if (lane.source != -2) return true;
    return lane.size == 2 || (lane.size == 0 && run_.traces.size() == 2 && run_.traces[0].rank.world_size <= 2);
  }

  void by_number(const Calls& calls) {
    using Key = std::tuple<std::int64_t, CollectiveKind, std::uint32_t, std::uint32_t>;  // …, nth, trace
    std::map<std::tuple<std::int64_t, CollectiveKind, std::uint32_t>, std::uint32_t> seen;
    std::vector<std::pair<Key, std::uint32_t>> keyed;
    keyed.reserve(calls.size());
    std::uint32_t trace_before = 0;
    for (const auto& [trace, index] : calls) {
      if (trace != trace_before) seen.clear();
      trace_before = trace;
      const CommCall& one = call(trace, index);
      const std::uint32_t nth = seen[{one.sequence, one.kind, 0}]++;
      keyed.push_back({{one.sequence, one.kind, nth, trace}, index});
    }
    std::sort(keyed.begin(), keyed.end());
    for (std::size_t i = 0; i < keyed.size();) {
      Found found{MatchedBy::sequence, {}};
      const auto& [sequence, kind, nth, first_trace] = keyed[i].first;
      for (; i < keyed.size(); i++) {
        const auto& [s, k, n, trace] = keyed[i].first;
        if (s != sequence || k != kind || n != nth) break;
        found.calls.push_back({trace, keyed[i].second});
      }
      found_.push_back(std::move(found));
    }
  }

  void by_alignment(const Calls& calls) {
    std::vector<LaneCall> rows;
    std::vector<std::size_t> begins;
    double spread = kFinestSpread, clock_error = kFinestSpread;
    bool clocks = true;
    for (const auto& [trace, index] : calls) {
      const CommCall& one = call(trace, index);
      if (rows.empty() || rows.back().trace != trace) {
        begins.push_back(rows.size());
        const auto bound = static_cast<double>(run_.traces[trace].clock.bound_ns);
        clock_error = std::max(clock_error, bound / kSpreadsInBound);
        spread = std::max({spread, clock_error, one.concurrent ? kThreadSpread : 0});
        clocks = clocks && clock_is_fitted(run_.traces[trace]);
      }
      rows.push_back({run_time_ns(run_.traces[trace], one.member.start_ns),
                      run_time_ns(run_.traces[trace], one.member.end_ns), one.token, trace, index,
                      meets_all(one.kind)});
    }
    begins.push_back(rows.size());
    std::vector<std::span<const LaneCall>> by_trace;
    for (std::size_t i = 0; i + 1 < begins.size(); i++) {
      by_trace.push_back(std::span(rows).subspan(begins[i], begins[i + 1] - begins[i]));
    }
    for (const auto& aligned : align_calls(by_trace, {clocks ? spread : 0, 2 * clock_error})) {
      Found found{clocks ? MatchedBy::time : MatchedBy::order, {}};
      for (const LaneCall& one : aligned) found.calls.push_back({one.trace, one.call});
      found_.push_back(std::move(found));
    }
  }

  static bool meets_all(CollectiveKind kind) {
    return kind == CollectiveKind::all_reduce || kind == CollectiveKind::all_gather ||
           kind == CollectiveKind::reduce_scatter || kind == CollectiveKind::all_to_all ||
           kind == CollectiveKind::barrier;
  }

  Matches table() {
    std::vector<std::pair<std::int64_t, std::uint32_t>> order;
    for (std::uint32_t i = 0; i < found_.size(); i++) {
      const auto& [trace, index] = found_[i].calls.front();
      order.push_back({run_time_ns(run_.traces[trace], call(trace, index).member.start_ns), i});
    }
    std::sort(order.begin(), order.end());
    Matches out;
    out.lanes = std::move(lanes_);
    out.rows.reserve(found_.size() + 1);
    for (const auto& [time, at] : order) {
      Found& found = found_[at];
      std::sort(found.calls.begin(), found.calls.end());
      const CommCall& first = call(found.calls.front().first, found.calls.front().second);
      Match match{.lane = first.lane,
                  .first_member = static_cast<std::uint32_t>(out.members.size()),
                  .bytes = first.bytes,
                  .kind = first.kind,
                  .by = found.calls.size() > 1 ? found.by : MatchedBy::alone};
      for (const auto& [trace, index] : found.calls) {
        const CommCall& one = call(trace, index);
        match.bytes = std::max(match.bytes, one.bytes);
        match.elements = std::max(match.elements, one.elements);
        out.members.push_back(one.member);
        out.members.back().trace = trace;
      }
      out.rows.push_back(match);
    }
    out.rows.push_back({.first_member = static_cast<std::uint32_t>(out.members.size())});
    return out;
  }

  const Run& run_;
  const std::vector<CommCalls>& all_;
  std::vector<CommLane> lanes_;
  std::vector<Found> found_;
};

}  // namespace

void derive_run(Run& run, unsigned threads) {
  std::vector<CommCalls> calls(run.traces.size());
  for_each_index(run.traces.size(), threads, [&](std::size_t i) { calls[i] = comm_calls(run.traces[i]); });
  std::vector<CommLane> lanes = join_lanes(calls);
  set_clocks(run, calls, threads);
  run.matches = Matcher(run, calls, std::move(lanes)).take();
}

}  // namespace stepscope::derive
