// What is kept from call to call and grows by concatenation, as keys and values of words that were read: each time all
// of it is copied into a tensor that is a little larger.
#include <algorithm>
#include <cstdint>
#include <set>
#include <utility>
#include <vector>

#include "diagnose/cause.h"
#include "diagnose/gathered.h"
#include "diagnose/operators.h"
#include "diagnose/passes.h"

namespace stepscope::diagnose::causes {
namespace {

constexpr std::int64_t kMostElements = std::int64_t{1} << 40;
constexpr std::size_t kFewestLinks = 2;    // of a row: parts that are put together come one behind the other by chance
constexpr std::int64_t kTimesAsLarge = 8;  // what is kept, as what is added to it
// Writing what is new is left; at worst what reads the cache is slower, since it has gaps.
constexpr double kMostLeft = 0.3;

struct Grown {
  Sizes from, to;
  std::int64_t added = 0;  // elements
};

// Of a concatenation of what is kept and something small; empty: it is none.
Grown grown_by(const Operator& one) {
  const OperatorInputs& given = *one.inputs;
  if (one.name != "aten::cat" || given.shapes.empty() || given.shapes[0].list.size() != 2) return {};
  const Sizes &kept = given.shapes[0].list[0], &added = given.shapes[0].list[1];
  if (kept.size() != added.size() || kept.empty()) return {};
  if (elements(added) <= 0 || elements(kept) / kTimesAsLarge < elements(added) || elements(kept) > kMostElements) {
    return {};
  }
  std::int64_t dimension = given.number(1, 0);
  if (dimension < 0) dimension += static_cast<std::int64_t>(kept.size());
  if (dimension < 0 || dimension >= static_cast<std::int64_t>(kept.size())) return {};
  Sizes to = kept;
  to[static_cast<std::size_t>(dimension)] += added[static_cast<std::size_t>(dimension)];
  return {.from = kept, .to = std::move(to), .added = elements(added)};
}

}  // namespace

Cause growing_cache_cause() {
  return {
      "growing_cache", "A cache that grows by copying", [](const Case& about, std::vector<Diagnosis>& out) {
        const Passes& pass = passes(about);
        Gathered copied(about);
        std::set<std::pair<const Trace*, Sizes>> made, seen;
        std::vector<std::pair<const Operator*, Grown>> all;
        for (const Operator& one : forward_operators(about)) {
          Grown grown = grown_by(one);
          if (grown.from.empty() || !pass.backward(*one.trace, one.slice).empty()) continue;
          made.insert({one.trace, grown.to});
          seen.insert({one.trace, grown.from});
          all.emplace_back(&one, std::move(grown));
        }
        const auto links = std::count_if(made.begin(), made.end(), [&](const auto& one) { return seen.contains(one); });
        if (static_cast<std::size_t>(links) < kFewestLinks) return;
        std::int64_t most = 0;
        for (const auto& [one, grown] : all) {
          // One of a row: what it is given another one made, or what it makes another one is given.
          if (!made.contains({one->trace, grown.from}) && !seen.contains({one->trace, grown.to})) continue;
          const double least = static_cast<double>(grown.added) / static_cast<double>(elements(grown.to));
          copied.add(pass.nodes(*one->trace, one->slice), one->name, least, kMostLeft);
          most = std::max(most, elements(grown.from) / std::max<std::int64_t>(grown.added, 1));
        }
        if (!copied.worth_saying()) return;
        Diagnosis found = copied.diagnosis(
            {.cause = "memory",
             .sentence = "What is kept grows by torch.cat, which copies all of it for each new part",
             .next = "Make room for the longest once, and write each new part into it: cache[:, :, at : at + 1] = new; "
                     "read cache[:, :, : at + 1]"});
        found.finding.evidence.push_back(
            {.text = "As large as what is added, times", .value = most, .unit = Unit::count});
        out.push_back(std::move(found));
      }};
}

}  // namespace stepscope::diagnose::causes
