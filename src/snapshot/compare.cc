#include "snapshot/compare.h"

#include <algorithm>
#include <cmath>
#include <map>

#include "model/answer_parts.h"
#include "snapshot/stack_text.h"

namespace stepscope::snapshot {
namespace {

std::string key_of(const CudaSnapshot& snapshot, const Group& group, bool lines) {
  if (snapshot.frames_of(group.stack).empty()) return group.name;
  if (lines) return full_text(snapshot, group.stack);
  std::string key;
  for (const FrameId id : snapshot.frames_of(group.stack)) {
    const SnapshotFrame& frame = snapshot.frames[id];
    key += std::string(snapshot.strings[frame.file]) + '\n' + std::string(snapshot.strings[frame.function]) + '\n';
  }
  return key;
}

// Pairs what is left on both sides by that key, in the order of size.
void pair_by(const View& a, std::vector<const Group*>& first, const View& b, std::vector<const Group*>& second,
             bool lines, std::vector<Pair>& out) {
  std::map<std::string, std::vector<std::size_t>> by_key;  // of `second`, the largest last
  for (std::size_t i = second.size(); i-- > 0;) by_key[key_of(b.snapshot(), *second[i], lines)].push_back(i);
  for (const Group*& one : first) {
    const auto found = by_key.find(key_of(a.snapshot(), *one, lines));
    if (found == by_key.end() || found->second.empty()) continue;
    const std::size_t at = found->second.back();
    found->second.pop_back();
    out.push_back({one, second[at], lines ? Pairing::same : Pairing::moved});
    one = second[at] = nullptr;
  }
  std::erase(first, nullptr);
  std::erase(second, nullptr);
}

}  // namespace

std::string_view to_string(Pairing how) {
  switch (how) {
    case Pairing::same: return "same stack";
    case Pairing::moved: return "lines moved";
    case Pairing::only_first: return "only in A";
    case Pairing::only_second: break;
  }
  return "only in B";
}

std::vector<Pair> paired(const View& a, const std::vector<Group>& first, const View& b,
                         const std::vector<Group>& second) {
  std::vector<const Group*> left, right;
  for (const Group& group : first) left.push_back(&group);
  for (const Group& group : second) right.push_back(&group);
  std::vector<Pair> pairs;
  pair_by(a, left, b, right, true, pairs);
  pair_by(a, left, b, right, false, pairs);
  for (const Group* group : left) pairs.push_back({group, nullptr, Pairing::only_first});
  for (const Group* group : right) pairs.push_back({nullptr, group, Pairing::only_second});
  std::stable_sort(pairs.begin(), pairs.end(),
                   [](const Pair& x, const Pair& y) { return std::abs(x.change()) > std::abs(y.change()); });
  return pairs;
}

std::optional<Outlier> outlier_of(const std::vector<std::int64_t>& numbers) {
  constexpr double kToDeviation = 1.4826, kFarDistances = 5, kLeastShare = 0.02;
  if (numbers.size() < 3) return std::nullopt;
  const auto middle = static_cast<double>(*median(numbers));
  std::vector<std::int64_t> away;
  for (const std::int64_t number : numbers) {
    away.push_back(static_cast<std::int64_t>(std::abs(static_cast<double>(number) - middle)));
  }
  const auto far = std::max_element(away.begin(), away.end());
  const double least = kLeastShare * middle;
  // Ranks that are alike to the byte have no deviation; then a fiftieth of the median is what is usual.
  const double usual = std::max(kToDeviation * static_cast<double>(*median(away)), least / kFarDistances);
  if (usual <= 0 || static_cast<double>(*far) < kFarDistances * usual || static_cast<double>(*far) < least)
    return std::nullopt;
  const auto index = static_cast<std::size_t>(far - away.begin());
  return Outlier{index, static_cast<std::int64_t>(middle), (static_cast<double>(numbers[index]) - middle) / usual};
}

}  // namespace stepscope::snapshot
