#include "derive/align_calls.h"

#include <algorithm>
#include <cmath>
#include <cstdlib>

namespace stepscope::derive {
namespace {

constexpr double kGap = 8;        // what a pair is worth whose ends agree
constexpr double kFarthest = 13;  // spreads between ends at which it is worth nothing
constexpr std::size_t kMostCells = 32'000'000;
constexpr std::size_t kLooseBand = 256;  // without clocks: how far the two sequences may have slipped

struct Collective {
  std::int64_t start_ns, end_ns;  // its mean end: the more ranks, the less each one's noise counts
  std::uint64_t token;
  bool must_overlap;
  std::vector<LaneCall> calls;

  void add(const LaneCall& call) {
    calls.push_back(call);
    end_ns += (call.end_ns - end_ns) / static_cast<std::int64_t>(calls.size());
  }
};

double gain(const Collective& known, const LaneCall& call, const Alignment& how) {
  if (known.token != call.token) return -1;
  if (how.spread_ns == 0) return 1;
  if (call.must_overlap) {
    const auto slack = static_cast<std::int64_t>(how.clock_error_ns);
    if (known.end_ns + slack < call.start_ns || call.end_ns + slack < known.start_ns) return -1;
  }
  const double apart = static_cast<double>(known.end_ns - call.end_ns) / how.spread_ns;
  return kGap - 2 * std::log1p(apart * apart / 3);
}

// For each call the known collectives it may be: [first, last).
struct Band {
  std::vector<std::uint32_t> first, last;
  std::vector<std::size_t> at;  // index of its first cell; one more at the end
};

void close(Band& band) {
  band.at.assign(1, 0);
  for (std::size_t i = 0; i < band.first.size(); i++)
    band.at.push_back(band.at.back() + band.last[i] - band.first[i] + 1);
}

// Around the line from the first of both to the last of both, as wide as fits.
Band band_by_order(std::size_t known, std::size_t calls) {
  Band band;
  const std::size_t slip = (known > calls ? known - calls : calls - known) + kLooseBand;
  const std::size_t reach = std::min(slip, kMostCells / (2 * std::max<std::size_t>(calls, 1)) + 1);
  for (std::size_t i = 0; i < calls; i++) {
    const std::size_t middle = slip == reach ? i : i * known / calls;
    band.first.push_back(static_cast<std::uint32_t>(std::min(known, middle > reach ? middle - reach : 0)));
    band.last.push_back(static_cast<std::uint32_t>(std::min(known, middle + reach)));
  }
  close(band);
  return band;
}

Band band_by_time(const std::vector<Collective>& known, std::span<const LaneCall> calls, double spread_ns) {
  // Ends may go back a little in the order that ranks share: the bands never do.
  std::vector<std::int64_t> latest_before(known.size()), earliest_after(known.size());
  for (std::size_t j = 0; j < known.size(); j++) {
    latest_before[j] = j > 0 ? std::max(latest_before[j - 1], known[j].end_ns) : known[j].end_ns;
  }
  for (std::size_t j = known.size(); j-- > 0;) {
    earliest_after[j] = j + 1 < known.size() ? std::min(earliest_after[j + 1], known[j].end_ns) : known[j].end_ns;
  }
  Band band;
  for (auto window = static_cast<std::int64_t>(kFarthest * spread_ns); window > 0; window /= 2) {
    band = {};
    for (const LaneCall& call : calls) {
      const auto first = std::lower_bound(latest_before.begin(), latest_before.end(), call.end_ns - window);
      const auto last = std::upper_bound(earliest_after.begin(), earliest_after.end(), call.end_ns + window);
      band.first.push_back(static_cast<std::uint32_t>(first - latest_before.begin()));
      band.last.push_back(static_cast<std::uint32_t>(last - earliest_after.begin()));
    }
    for (std::size_t i = calls.size(); i-- > 1;) band.first[i - 1] = std::min(band.first[i - 1], band.first[i]);
    for (std::size_t i = 1; i < calls.size(); i++) band.last[i] = std::max(band.last[i], band.last[i - 1]);
    for (std::size_t i = 0; i < calls.size(); i++) band.last[i] = std::max(band.last[i], band.first[i]);
    close(band);
    if (band.at.back() <= kMostCells) return band;
  }
  return band_by_order(known.size(), calls.size());
}

enum class Move : std::uint8_t { skip_known, skip_call, pair };

// For each call the known collective it is, or none. The best total gain by dynamic programming inside the band: cell
// (i, j) is the best that the first i + 1 calls reach with the known ones before j.
std::vector<std::uint32_t> pair_up(const std::vector<Collective>& known, std::span<const LaneCall> calls,
                                   const Band& band, const Alignment& how) {
  constexpr std::uint32_t kNone = 0xffffffff;
  std::vector<Move> moves(band.at.back());
  std::vector<double> row, before;
  std::uint32_t before_first = 0;
  // Outside its band a row goes on as it ended: nothing can be paired there.
  const auto above = [&](std::uint32_t j) {
    if (before.empty()) return 0.0;
    if (j < before_first) return 0.0;
    return before[std::min<std::size_t>(j - before_first, before.size() - 1)];
  };
  for (std::size_t i = 0; i < calls.size(); i++) {
    const std::uint32_t first = band.first[i], last = band.last[i];
    row.assign(last - first + 1, 0);
    for (std::uint32_t j = first; j <= last; j++) {
      double best = above(j);
      Move move = Move::skip_call;
      if (j > first) {
        if (row[j - first - 1] > best) best = row[j - first - 1], move = Move::skip_known;
        const double gained = gain(known[j - 1], calls[i], how);
        if (gained > 0 && above(j - 1) + gained > best) best = above(j - 1) + gained, move = Move::pair;
      }
      row[j - first] = best;
      moves[band.at[i] + (j - first)] = move;
    }
    before.swap(row);
    before_first = first;
  }
  std::vector<std::uint32_t> found(calls.size(), kNone);
  auto j = static_cast<std::uint32_t>(known.size());
  for (std::size_t i = calls.size(); i-- > 0;) {
    j = std::min(j, band.last[i]);
    while (j > band.first[i] && moves[band.at[i] + (j - band.first[i])] == Move::skip_known) j--;
    if (j <= band.first[i]) continue;
    if (moves[band.at[i] + (j - band.first[i])] == Move::pair) found[i] = --j;
  }
  return found;
}

Collective begin(const LaneCall& call) { return {call.start_ns, call.end_ns, call.token, call.must_overlap, {call}}; }

void join(std::vector<Collective>& known, std::span<const LaneCall> calls, const Alignment& how) {
  constexpr std::uint32_t kNone = 0xffffffff;
  const Band band =
      how.spread_ns > 0 ? band_by_time(known, calls, how.spread_ns) : band_by_order(known.size(), calls.size());
  const auto found = pair_up(known, calls, band, how);
  std::vector<Collective> merged;
  merged.reserve(known.size());
  std::size_t next = 0;  // of `known`
  for (std::size_t i = 0; i < calls.size(); i++) {
    if (found[i] != kNone) {
      while (next < found[i]) merged.push_back(std::move(known[next++]));
      known[next].add(calls[i]);
      continue;
    }
    if (how.spread_ns > 0) {
      // before the next pair, so that order is kept, and otherwise where its time puts it
      std::size_t limit = known.size();
      for (std::size_t k = i + 1; k < calls.size() && k < i + 64; k++) {
        if (found[k] != kNone) {
          limit = found[k];
          break;
        }
      }
      while (next < limit && known[next].end_ns <= calls[i].end_ns) merged.push_back(std::move(known[next++]));
    }
    merged.push_back(begin(calls[i]));
  }
  while (next < known.size()) merged.push_back(std::move(known[next++]));
  known = std::move(merged);
}

}  // namespace

std::vector<std::vector<LaneCall>> align_calls(std::vector<std::span<const LaneCall>> by_trace, Alignment how) {
  std::stable_sort(by_trace.begin(), by_trace.end(), [](const auto& a, const auto& b) { return a.size() > b.size(); });
  std::vector<Collective> known;
  for (const auto& calls : by_trace) {
    if (known.empty()) {
      for (const LaneCall& call : calls) known.push_back(begin(call));
    } else {
      join(known, calls, how);
    }
  }
  std::vector<std::vector<LaneCall>> out;
  for (Collective& collective : known) out.push_back(std::move(collective.calls));
  return out;
}

}  // namespace stepscope::derive
