#include "diff/rows.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <tuple>

namespace stepscope::diff {
namespace {

constexpr double kFalseDiscoveries = 0.05;
constexpr double kLeastShare = 0.01;    // of the step: less is no change worth a word
constexpr double kTestedShare = 0.001;  // of the step: less is not tested

Values added_up(const Side& side, const std::vector<std::uint32_t>& entities, Values Entity::*member) {
  Values sum(side.walls.size());
  for (const std::uint32_t id : entities) {
    const Values& values = side.entities[id].*member;
    for (std::size_t i = 0; i < values.size(); i++) sum[i] += values[i];
  }
  return sum;
}

std::uint64_t seed_of(const Pair& pair) {
  std::uint64_t seed = static_cast<std::uint64_t>(pair.level) + 1;
  for (const std::uint32_t id : pair.a) seed = seed * 0x9e3779b97f4a7c15u + id;
  for (const std::uint32_t id : pair.b) seed = seed * 0x9e3779b97f4a7c15u + id + 0x1000;
  return seed;
}

// Medians of rows over repeats of a run.
class Repeats {
 public:
  explicit Repeats(std::span<const Side> runs) : runs_(runs) {
    for (const Side& run : runs) {
      auto& index = index_.emplace_back();
      for (std::uint32_t i = 0; i < run.entities.size(); i++) index.try_emplace(key_of(run.entities[i]), i);
    }
  }

  // By how much the row differs between `a` and its repeats. A row that a repeat lacks is 0 there.
  double noise(const Side& a, const std::vector<std::uint32_t>& entities, Values Entity::*tested) const {
    double low = median_of(added_up(a, entities, tested)), high = low;
    for (std::size_t run = 0; run < runs_.size(); run++) {
      std::vector<std::uint32_t> same;
      for (const std::uint32_t id : entities) {
        const auto found = index_[run].find(key_of(a.entities[id]));
        if (found != index_[run].end()) same.push_back(found->second);
      }
      const double median = median_of(added_up(runs_[run], same, tested));
      low = std::min(low, median);
      high = std::max(high, median);
    }
    return high - low;
  }

 private:
  using Key = std::tuple<Level, StringId, StringId, StringId>;
  static Key key_of(const Entity& entity) { return {entity.level, entity.name, entity.detail, entity.context}; }

  std::span<const Side> runs_;
  std::vector<std::map<Key, std::uint32_t>> index_;  // per repeat
};

}  // namespace

Sums sums_of(const Side& side, const std::vector<std::uint32_t>& entities) {
  const auto median = [&](Values Entity::*member) { return median_of(added_up(side, entities, member)); };
  return {median(&Entity::count), median(&Entity::time), median(&Entity::self), median(&Entity::device)};
}

std::string names_of(const Side& side, const std::vector<std::uint32_t>& entities, const StringPool& names) {
  std::vector<StringId> seen;
  std::string out;
  for (const std::uint32_t id : entities) {
    const StringId name = side.entities[id].name;
    if (std::find(seen.begin(), seen.end(), name) != seen.end()) continue;
    seen.push_back(name);
    if (!out.empty()) out += " + ";
    out += names[name];
  }
  return out;
}

std::vector<Row> compare_rows(const Side& a, const Side& b, std::vector<Pair> pairs, std::span<const Side> again) {
  const Repeats repeats(again);
  const double step = median_of(a.walls);
  std::vector<Row> rows;
  std::vector<double> p;
  for (Pair& pair : pairs) {
    Row row{.pair = std::move(pair)};
    Values Entity::*tested = row.pair.level == Level::op ? &Entity::self : &Entity::time;
    row.change = compare(added_up(a, row.pair.a, tested), added_up(b, row.pair.b, tested), step * kTestedShare,
                         seed_of(row.pair));
    if (!again.empty()) row.change.noise = repeats.noise(a, row.pair.a, tested);
    if (row.pair.level != Level::step) p.push_back(row.change.p);
    rows.push_back(std::move(row));
  }
  // The step is one question of its own; of many rows some look changed by chance.
  const std::vector<double> adjusted = adjust(p);
  for (std::size_t i = 0; i < rows.size(); i++) {
    rows[i].adjusted_p = i == 0 ? rows[i].change.p : adjusted[i - 1];
    const bool large = std::abs(rows[i].change.delta()) > std::max(step * kLeastShare, rows[i].change.noise);
    rows[i].significant = large && rows[i].adjusted_p <= kFalseDiscoveries;
    rows[i].alone = large && rows[i].change.p <= kFalseDiscoveries;
  }
  return rows;
}

}  // namespace stepscope::diff
