#include "derive/clock_fit.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdlib>
#include <numeric>

#include "base/key_index.h"

namespace stepscope::derive {
namespace {

constexpr std::size_t kFewest = 3;       // pairs that make a fit
constexpr std::size_t kFewestDrift = 8;  // … and a drift
constexpr double kMostDrift = 1e-3;      // clocks of computers drift by up to 1e-4
constexpr std::size_t kChunk = 64;       // ticks that vote
constexpr std::size_t kMostVotes = 400'000;
constexpr std::size_t kMostCandidates = 8;
constexpr std::int64_t kFinest = 1000;  // nothing is known finer than 1 µs
// How closely ends coincide: kernels within the first, busy CPUs within the last.
constexpr std::array<std::int64_t, 3> kWindows{50'000, 500'000, 5'000'000};

// A tick of `other` and how far the reference is ahead of it there.
struct Pair {
  std::int64_t time_ns, ahead_ns;
};

double middle(std::vector<double>& values) {
  const auto at = values.begin() + static_cast<std::ptrdiff_t>(values.size() / 2);
  std::nth_element(values.begin(), at, values.end());
  if (values.size() % 2 == 1) return *at;
  return (*at + *std::max_element(values.begin(), at)) / 2;
}

struct Line {
  std::int64_t base_ns = 0;  // numbers below are relative to it: offsets do not fit a double to the ns
  std::int64_t pivot_ns = 0;
  double ahead = 0, drift = 0, spread = 0;  // spread: standard deviation as the median residual tells it

  std::int64_t at(std::int64_t time_ns) const {
    return base_ns + std::llround(ahead + drift * static_cast<double>(time_ns - pivot_ns));
  }
};

// Median slope between pairs half the set apart; kept only where it is clearly not noise.
double drift_of(const std::vector<Pair>& pairs, double spread) {
  if (pairs.size() < kFewestDrift) return 0;
  const std::size_t half = pairs.size() / 2;
  std::vector<double> slopes;
  for (std::size_t i = 0; i + half < pairs.size(); i++) {
    const std::int64_t apart = pairs[i + half].time_ns - pairs[i].time_ns;
    if (apart <= 0) continue;
    slopes.push_back(static_cast<double>(pairs[i + half].ahead_ns - pairs[i].ahead_ns) / static_cast<double>(apart));
  }
  if (slopes.empty()) return 0;
  const double slope = middle(slopes);
  const auto range = static_cast<double>(pairs.back().time_ns - pairs.front().time_ns);
  const double noise = spread * std::sqrt(12.0 / static_cast<double>(pairs.size())) / range;
  return std::abs(slope) > 4 * noise && std::abs(slope) < kMostDrift ? slope : 0;
}

void settle(Line& line, const std::vector<Pair>& pairs) {
  std::vector<double> values;
  for (const Pair& pair : pairs) {
    values.push_back(static_cast<double>(pair.ahead_ns - line.base_ns) -
                     line.drift * static_cast<double>(pair.time_ns - line.pivot_ns));
  }
  line.ahead = middle(values);
  for (double& value : values) value = std::abs(value - line.ahead);
  line.spread = std::max(1.4826 * middle(values), static_cast<double>(kFinest) / 2);
}

// `pairs` by time and not empty.
Line fit_line(const std::vector<Pair>& pairs) {
  Line line{.base_ns = pairs.front().ahead_ns, .pivot_ns = std::midpoint(pairs.front().time_ns, pairs.back().time_ns)};
  settle(line, pairs);
  // The spread around a level hides in the drift itself, so it is taken around the tilted line.
  Line tilted = line;
  tilted.drift = drift_of(pairs, 0);
  settle(tilted, pairs);
  if (drift_of(pairs, tilted.spread) != 0) return tilted;
  return line;
}

TraceClock to_clock(const std::vector<Pair>& pairs) {
  const Line line = fit_line(pairs);
  std::vector<std::int64_t> off;
  for (const Pair& pair : pairs) off.push_back(std::abs(pair.ahead_ns - line.at(pair.time_ns)));
  const auto nine_in_ten = off.begin() + static_cast<std::ptrdiff_t>((off.size() - 1) * 9 / 10 + (off.size() < 10));
  const auto at = std::min(nine_in_ten, off.end() - 1);
  std::nth_element(off.begin(), at, off.end());
  return {.source = ClockSource::collectives,
          .offset_ns = line.at(line.pivot_ns),
          .pivot_ns = line.pivot_ns,
          .drift = line.drift,
          .bound_ns = std::max(*at, kFinest),
          .pairs = static_cast<std::uint32_t>(pairs.size())};
}

// The times of each key, ascending.
class Times {
 public:
  explicit Times(std::span<const Tick> ticks) {
    for (const Tick& tick : ticks) {
      const std::uint32_t at = keys_[tick.key];
      if (at == times_.size()) times_.emplace_back();
      times_[at].push_back(tick.time_ns);
    }
  }
  const std::vector<std::int64_t>& of(std::uint64_t key) {
    const std::uint32_t at = keys_[key];
    if (at >= times_.size()) times_.resize(at + 1);  // a key that only the other has
    return times_[at];
  }
  // The time nearest to `wanted`, if one is within `window`.
  std::optional<std::int64_t> near(std::uint64_t key, std::int64_t wanted, std::int64_t window) {
    const auto& times = of(key);
    const auto after = std::lower_bound(times.begin(), times.end(), wanted);
    std::optional<std::int64_t> best;
    if (after != times.end() && *after - wanted <= window) best = *after;
    if (after != times.begin() && wanted - *(after - 1) <= window) {
      if (!best || wanted - *(after - 1) < *best - wanted) best = *(after - 1);
    }
    return best;
  }

 private:
  KeyIndex keys_;
  std::vector<std::vector<std::int64_t>> times_;
};

std::vector<Pair> numbered_pairs(Times& times, std::span<const Tick> other) {
  std::vector<Pair> pairs;
  for (const Tick& tick : other) {
    if (!tick.numbered) continue;
    const auto& found = times.of(tick.key);
    if (found.size() == 1) pairs.push_back({tick.time_ns, found.front() - tick.time_ns});
  }
  return pairs;
}

std::vector<Pair> pairs_near(Times& times, std::span<const Tick> ticks, const Line& line, std::int64_t window) {
  std::vector<Pair> pairs;
  for (const Tick& tick : ticks) {
    const auto found = times.near(tick.key, tick.time_ns + line.at(tick.time_ns), window);
    if (found) pairs.push_back({tick.time_ns, *found - tick.time_ns});
  }
  return pairs;
}

struct Vote {
  std::int64_t ahead_ns = 0;
  std::size_t votes = 0;
};

std::vector<std::int64_t> all_differences(Times& times, std::span<const Tick> chunk) {
  std::vector<std::int64_t> out;
  for (const Tick& tick : chunk) {
    const auto& found = times.of(tick.key);
    if (out.size() + found.size() > kMostVotes) break;
    for (const std::int64_t time : found) out.push_back(time - tick.time_ns);
  }
  std::sort(out.begin(), out.end());
  return out;
}

// The windows with most differences, none overlapping; empty when none stands out from chance.
std::vector<Vote> elect(const std::vector<std::int64_t>& sorted, std::int64_t window) {
  std::vector<Vote> candidates;
  if (sorted.size() < kFewest) return candidates;
  std::vector<Vote> all(sorted.size());
  std::size_t most = 0;
  for (std::size_t i = 0, end = 0; i < sorted.size(); i++) {
    while (end < sorted.size() && sorted[end] - sorted[i] <= window) end++;
    all[i] = {sorted[i + (end - i) / 2], end - i};
    most = std::max(most, end - i);
  }
  const auto range = static_cast<double>(std::max(sorted.back() - sorted.front(), window));
  const double chance = static_cast<double>(sorted.size()) * static_cast<double>(window) / range;
  const double needed = std::max(static_cast<double>(kFewest),
                                 sorted.back() - sorted.front() <= 2 * window ? 0.0 : chance + 5 * std::sqrt(chance));
  std::erase_if(all, [&](const Vote& v) { return static_cast<double>(v.votes) < needed || v.votes * 10 < most * 7; });
  std::stable_sort(all.begin(), all.end(), [](const Vote& a, const Vote& b) { return a.votes > b.votes; });
  for (const Vote& vote : all) {
    if (candidates.size() == kMostCandidates) break;
    const bool taken = std::any_of(candidates.begin(), candidates.end(),
                                   [&](const Vote& c) { return std::abs(c.ahead_ns - vote.ahead_ns) <= 2 * window; });
    if (!taken) candidates.push_back(vote);
  }
  return candidates;
}

// Among offsets with nearly as many partners the expected one: a periodic run fits itself one period later as well.
std::optional<Vote> best_of(std::vector<Vote> candidates, Times& times, std::span<const Tick> around,
                            std::int64_t window, std::optional<std::int64_t> expected_ns) {
  std::size_t most = 0;
  for (Vote& vote : candidates) {
    vote.votes = pairs_near(times, around, Line{.base_ns = vote.ahead_ns}, window).size();
    most = std::max(most, vote.votes);
  }
  std::optional<Vote> best;
  for (const Vote& vote : candidates) {
    if (vote.votes * 100 < most * (expected_ns ? 90 : 100)) continue;
    if (!best || (expected_ns && std::abs(vote.ahead_ns - *expected_ns) < std::abs(best->ahead_ns - *expected_ns))) {
      best = vote;
    }
  }
  return best;
}

std::span<const Tick> around(std::span<const Tick> ticks, std::size_t center, std::size_t reach) {
  const std::size_t first = center > reach ? center - reach : 0;
  return ticks.subspan(first, std::min(ticks.size(), center + reach) - first);
}

// From the voters outward, twice as far each time, so that a drift is known before it matters.
std::vector<Pair> grow(Times& times, std::span<const Tick> ticks, std::size_t center, std::int64_t ahead_ns,
                       std::int64_t window) {
  std::vector<Pair> pairs = pairs_near(times, around(ticks, center, kChunk), Line{.base_ns = ahead_ns}, window);
  for (std::size_t reach = kChunk; pairs.size() >= kFewest; reach *= 2) {
    const Line line = fit_line(pairs);
    const auto wide = static_cast<std::int64_t>(6 * line.spread);
    pairs = pairs_near(times, around(ticks, center, reach), line, std::clamp(wide, window / 2, 4 * window));
    if (reach > 2 * ticks.size()) break;
  }
  return pairs;
}

}  // namespace

std::optional<TraceClock> fit_clock(std::span<const Tick> reference, std::span<const Tick> other,
                                    std::optional<std::int64_t> expected_ns) {
  if (reference.size() < kFewest || other.size() < kFewest) return std::nullopt;
  Times times(reference);
  if (const auto pairs = numbered_pairs(times, other); pairs.size() >= kFewest) return to_clock(pairs);
  for (const std::int64_t window : kWindows) {
    for (const std::size_t eighth : {4, 2, 6, 1, 7}) {  // ranks may have recorded different parts of the run
      const std::size_t center = other.size() * eighth / 8;
      const auto differences = all_differences(times, around(other, center, kChunk / 2));
      const auto vote =
          best_of(elect(differences, window), times, around(other, center, 8 * kChunk), window, expected_ns);
      if (!vote) {
        if (other.size() <= kChunk) break;  // the next chunk is the same
        continue;
      }
      const auto pairs = grow(times, other, center, vote->ahead_ns, window);
      if (pairs.size() >= kFewest) return to_clock(pairs);
    }
  }
  return std::nullopt;
}

}  // namespace stepscope::derive
