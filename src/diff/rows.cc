#include "diff/rows.h"

#include <algorithm>
#include <cmath>

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

std::vector<Row> compare_rows(const Side& a, const Side& b, std::vector<Pair> pairs) {
  const double step = median_of(a.walls);
  std::vector<Row> rows;
  std::vector<double> p;
  for (Pair& pair : pairs) {
    Row row{.pair = std::move(pair)};
    Values Entity::*tested = row.pair.level == Level::op ? &Entity::self : &Entity::time;
    row.change = compare(added_up(a, row.pair.a, tested), added_up(b, row.pair.b, tested), step * kTestedShare,
                         seed_of(row.pair));
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
