#include "diff/explain.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <numeric>
#include <set>
#include <unordered_map>
#include <unordered_set>

namespace stepscope::diff {
namespace {

constexpr double kEnough = 0.9;
constexpr std::size_t kMostParts = 60;

// The samples of the middle half by length; all where there are few.
std::vector<std::size_t> middle_half(const Values& walls) {
  std::vector<std::size_t> order(walls.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::stable_sort(order.begin(), order.end(), [&](std::size_t x, std::size_t y) { return walls[x] < walls[y]; });
  const std::size_t cut = order.size() < 4 ? 0 : order.size() / 4;
  return {order.begin() + static_cast<std::ptrdiff_t>(cut), order.end() - static_cast<std::ptrdiff_t>(cut)};
}

double mean_over(const Values& values, const std::vector<std::size_t>& samples) {
  double sum = 0;
  for (const std::size_t sample : samples) sum += values[sample];
  return samples.empty() ? 0 : sum / static_cast<double>(samples.size());
}

// Names that stand for each other, as pairing found: each leads to the one that stands for all.
class Synonyms {
 public:
  Synonyms(const Side& a, const Side& b, const std::vector<Row>& rows) {
    std::unordered_set<std::uint32_t> in_a, in_b;
    for (const Entity& entity : a.entities) in_a.insert(static_cast<std::uint32_t>(entity.name));
    for (const Entity& entity : b.entities) in_b.insert(static_cast<std::uint32_t>(entity.name));
    for (const Row& row : rows) {
      const Match match = row.pair.match;
      if (match != Match::renamed && match != Match::replaced && match != Match::fused) continue;
      const StringId chief = a.entities[row.pair.a.front()].name;
      for (const std::uint32_t id : row.pair.a) lead(a.entities[id].name, chief, in_b);
      for (const std::uint32_t id : row.pair.b) lead(b.entities[id].name, chief, in_a);
    }
  }
  StringId operator()(StringId name) const {
    const auto found = chief_.find(static_cast<std::uint32_t>(name));
    return found == chief_.end() ? name : found->second;
  }

 private:
  // A name that the other side has as well stands for itself.
  void lead(StringId name, StringId chief, const std::unordered_set<std::uint32_t>& in_other) {
    if (name == chief || in_other.contains(static_cast<std::uint32_t>(name))) return;
    chief_.try_emplace(static_cast<std::uint32_t>(name), chief);
  }

  std::unordered_map<std::uint32_t, StringId> chief_;
};

struct Building {
  double a = 0, b = 0;
  std::set<StringId> names_a, names_b;
};

std::string joined(const std::set<StringId>& ids, const StringPool& names) {
  std::string out;
  for (const StringId id : ids) {
    out += out.empty() ? "" : " + ";
    out += id == StringId::none ? "(nothing recorded)" : std::string(names[id]);
  }
  return out;
}

void sort_by_change(std::vector<Part>& parts) {
  std::stable_sort(parts.begin(), parts.end(),
                   [](const Part& x, const Part& y) { return std::abs(x.delta()) > std::abs(y.delta()); });
}

}  // namespace

Explanation explain(const Side& a, const Side& b, const std::vector<Row>& rows, const StringPool& names) {
  const auto samples_a = middle_half(a.walls), samples_b = middle_half(b.walls);
  Explanation out{.a = mean_over(a.walls, samples_a), .b = mean_over(b.walls, samples_b)};
  const Synonyms chief(a, b, rows);
  std::map<std::pair<PathClass, StringId>, Building> found;
  for (const PathEntity& part : a.path) {
    Building& building = found[{part.what, chief(part.name)}];
    building.a += mean_over(part.time, samples_a);
    building.names_a.insert(part.name);
  }
  for (const PathEntity& part : b.path) {
    Building& building = found[{part.what, chief(part.name)}];
    building.b += mean_over(part.time, samples_b);
    building.names_b.insert(part.name);
  }
  std::map<PathClass, Part> classes;
  std::vector<Part> parts;
  for (const auto& [key, building] : found) {
    Part& whole = classes[key.first];
    whole.what = key.first;
    whole.a += building.a;
    whole.b += building.b;
    if (key.first == PathClass::unknown) continue;
    parts.push_back(
        {key.first, joined(building.names_a, names), joined(building.names_b, names), building.a, building.b});
  }
  for (const auto& [what, part] : classes) out.classes.push_back(part);
  sort_by_change(out.classes);
  sort_by_change(parts);
  const double change = out.b - out.a;
  double left = change;
  for (Part& part : parts) {
    if (out.parts.size() >= kMostParts || part.delta() == 0) break;
    const bool enough = std::abs(left) <= (1 - kEnough) * std::abs(change);
    if (enough && std::abs(part.delta()) <= (1 - kEnough) * std::abs(change)) break;
    left -= part.delta();
    out.parts.push_back(std::move(part));
  }
  out.attributed = change == 0 ? 0 : std::clamp(1 - std::abs(left / change), 0.0, 1.0);
  return out;
}

}  // namespace stepscope::diff
