#include "graph/name_alignment.h"

#include <algorithm>
#include <map>
#include <utility>

#include "model/trace.h"

namespace stepscope::graph {
namespace {

// So many calls may stand on one side alone within one stretch: more means that the two are not the same program.
constexpr std::int32_t kMostDifferences = 2000;
// Before the first and behind the last anchor the timeline is looked at this much further than the part is long.
constexpr std::size_t kSlack = 64;
// Fewer anchors than this share of the calls that could be one: the numbers are of another step or run.
constexpr double kAnchorsOfCandidates = 0.5;

using Stretch = std::span<const Called>;

// Myers' greedy comparison of two sequences, with the furthest points of each round kept to walk back.
class Comparison {
 public:
  Comparison(Stretch a, Stretch b, bool numbered) : a_(a), b_(b), numbered_(numbered) {}

  // Adds the pairs of positions, shifted by the bases; nothing where the two differ too much.
  void run(std::uint32_t a_base, std::uint32_t b_base, std::vector<CalledPair>& out) {
    const auto first = static_cast<std::ptrdiff_t>(out.size());
    std::int32_t differences = 0;
    while (differences <= kMostDifferences && !round(differences)) differences++;
    if (differences > kMostDifferences) return;
    walk_back(differences, a_base, b_base, out);
    std::reverse(out.begin() + first, out.end());
  }

 private:
  std::int32_t size_a() const { return static_cast<std::int32_t>(a_.size()); }
  std::int32_t size_b() const { return static_cast<std::int32_t>(b_.size()); }
  bool same(std::int32_t x, std::int32_t y) const {
    const Called& a = a_[static_cast<std::size_t>(x)];
    const Called& b = b_[static_cast<std::size_t>(y)];
    return a.name == b.name &&
           (!numbered_ || a.sequence == kAbsent || b.sequence == kAbsent || a.sequence == b.sequence);
  }
  // Furthest x on diagonal k after `differences`; -1: not reached.
  std::int32_t furthest(std::int32_t differences, std::int32_t k) const {
    if (differences < 0 || k < -differences || k > differences) return -1;
    return rounds_[static_cast<std::size_t>(differences)][static_cast<std::size_t>((k + differences) / 2)];
  }
  // Where diagonal k is entered in round `differences`: from below (a step in b) or from the left (a step in a).
  std::pair<std::int32_t, bool> entered(std::int32_t differences, std::int32_t k) const {
    const std::int32_t down = furthest(differences - 1, k + 1), right = furthest(differences - 1, k - 1);
    const bool from_below = k == -differences || (k != differences && right < down);
    return {from_below ? down : right + 1, from_below};
  }

  bool round(std::int32_t differences) {
    auto& row = rounds_.emplace_back();
    row.reserve(static_cast<std::size_t>(differences) + 1);
    for (std::int32_t k = -differences; k <= differences; k += 2) {
      std::int32_t x = differences == 0 ? 0 : entered(differences, k).first;
      while (x < size_a() && x - k < size_b() && x - k >= 0 && same(x, x - k)) x++;
      row.push_back(x);
      if (x >= size_a() && x - k >= size_b()) {
        last_k_ = k;
        return true;
      }
    }
    return false;
  }

  void walk_back(std::int32_t differences, std::uint32_t a_base, std::uint32_t b_base,
                 std::vector<CalledPair>& out) const {
    std::int32_t k = last_k_, x = size_a();
    for (; differences >= 0; differences--) {
      const auto [start, from_below] = differences == 0 ? std::pair(0, false) : entered(differences, k);
      for (; x > start; x--) {
        const auto at_a = static_cast<std::size_t>(x - 1), at_b = static_cast<std::size_t>(x - 1 - k);
        const bool numbered = numbered_ && a_[at_a].sequence != kAbsent && a_[at_a].sequence == b_[at_b].sequence;
        out.push_back({a_base + static_cast<std::uint32_t>(at_a), b_base + static_cast<std::uint32_t>(at_b), numbered});
      }
      if (differences == 0) break;
      x = from_below ? start : start - 1;
      k = from_below ? k + 1 : k - 1;
    }
  }

  Stretch a_, b_;
  bool numbered_;
  std::vector<std::vector<std::int32_t>> rounds_;
  std::int32_t last_k_ = 0;
};

using Token = std::pair<std::uint32_t, std::int64_t>;
constexpr std::uint32_t kSeveral = 0xffffffff;

// Where each numbered call stands; kSeveral: more than once.
std::map<Token, std::uint32_t> places(Stretch calls) {
  std::map<Token, std::uint32_t> places;
  for (std::uint32_t at = 0; at < calls.size(); at++) {
    if (calls[at].sequence == kAbsent) continue;
    const auto [found, added] = places.emplace(Token(calls[at].name, calls[at].sequence), at);
    if (!added) found->second = kSeveral;
  }
  return places;
}

// Of pairs that ascend in `part`, the most that ascend in `whole` too.
std::vector<CalledPair> longest_ascending(const std::vector<CalledPair>& pairs) {
  std::vector<std::size_t> ends, before(pairs.size());
  for (std::size_t i = 0; i < pairs.size(); i++) {
    const auto at = std::lower_bound(ends.begin(), ends.end(), pairs[i].whole,
                                     [&](std::size_t end, std::uint32_t whole) { return pairs[end].whole < whole; });
    before[i] = at == ends.begin() ? pairs.size() : *(at - 1);
    if (at == ends.end()) {
      ends.push_back(i);
    } else {
      *at = i;
    }
  }
  std::vector<CalledPair> chosen;
  for (std::size_t i = ends.empty() ? pairs.size() : ends.back(); i < pairs.size(); i = before[i])
    chosen.push_back(pairs[i]);
  std::reverse(chosen.begin(), chosen.end());
  return chosen;
}

std::vector<CalledPair> anchors(Stretch part, Stretch whole) {
  const auto in_part = places(part), in_whole = places(whole);
  std::vector<CalledPair> pairs;
  std::size_t candidates = 0;
  for (const auto& [token, at] : in_part) {
    if (at == kSeveral) continue;
    candidates++;
    const auto found = in_whole.find(token);
    if (found != in_whole.end() && found->second != kSeveral) pairs.push_back({at, found->second, true});
  }
  std::sort(pairs.begin(), pairs.end(), [](const CalledPair& a, const CalledPair& b) { return a.part < b.part; });
  pairs = longest_ascending(pairs);
  if (static_cast<double>(pairs.size()) < kAnchorsOfCandidates * static_cast<double>(candidates)) pairs.clear();
  return pairs;
}

}  // namespace

std::vector<CalledPair> align_names(std::span<const Called> part, std::span<const Called> whole) {
  const std::vector<CalledPair> fixed = anchors(part, whole);
  std::vector<CalledPair> pairs;
  const auto between = [&](std::size_t a, std::size_t a_end, std::size_t b, std::size_t b_end) {
    if (a >= a_end || b >= b_end) return;
    Comparison(part.subspan(a, a_end - a), whole.subspan(b, b_end - b), !fixed.empty())
        .run(static_cast<std::uint32_t>(a), static_cast<std::uint32_t>(b), pairs);
  };
  if (fixed.empty()) {
    // One step of many that look alike: nothing says which.
    if (whole.size() > part.size() * 2 + kSlack) return pairs;
    between(0, part.size(), 0, whole.size());
    return pairs;
  }
  const std::size_t lead = std::size_t{fixed.front().part} * 2 + kSlack;
  std::size_t a = 0, b = fixed.front().whole > lead ? fixed.front().whole - lead : 0;
  for (const CalledPair& anchor : fixed) {
    between(a, anchor.part, b, anchor.whole);
    pairs.push_back(anchor);
    a = std::size_t{anchor.part} + 1;
    b = std::size_t{anchor.whole} + 1;
  }
  between(a, part.size(), b, std::min(whole.size(), b + (part.size() - a) * 2 + kSlack));
  return pairs;
}

}  // namespace stepscope::graph
