#include "snapshot/growth.h"

#include <algorithm>
#include <map>

#include "base/key_index.h"
#include "snapshot/byte_sums.h"

namespace stepscope::snapshot {
namespace {

constexpr std::size_t kMostMoments = 12;
constexpr std::uint32_t kParts = 8;         // of the events, where there are no steps
constexpr std::uint32_t kLeastEvents = 64;  // fewer are no recording in which something grows

std::vector<std::uint32_t> thinned(const std::vector<std::uint32_t>& all) {
  if (all.size() <= kMostMoments) return all;
  std::vector<std::uint32_t> out;
  for (std::size_t i = 0; i < kMostMoments; i++) out.push_back(all[i * (all.size() - 1) / (kMostMoments - 1)]);
  return out;
}

}  // namespace

GrowthMoments growth_moments(const SnapshotDevice& device) {
  std::vector<std::uint32_t> ends;
  for (const SnapshotStep& step : device.steps) {
    if (ends.empty() || step.end > ends.back()) ends.push_back(step.end);
  }
  if (ends.size() >= 3) ends.erase(ends.begin());
  if (ends.size() == 1) return {};  // within one step most of what is made is to be freed
  if (ends.size() >= 2) return {thinned(ends), "the ends of steps (" + device.step_source + ")", true};
  if (device.events.count < kLeastEvents) return {};
  GrowthMoments parts{.source = "equal parts of the events: no steps are marked"};
  for (std::uint32_t i = 1; i <= kParts; i++) {
    parts.moments.push_back(static_cast<std::uint32_t>(std::uint64_t{device.events.count} * i / kParts));
  }
  return parts;
}

bool StackGrowth::steady() const {
  std::size_t more = 0;
  for (std::size_t i = 1; i < bytes.size(); i++) {
    if (bytes[i] < bytes[i - 1]) return false;
    more += bytes[i] > bytes[i - 1] ? 1 : 0;
  }
  return 3 * more >= 2 * (bytes.size() - 1) && more > 0;
}

std::vector<StackGrowth> growth_by_stack(const AllocatorHistory& history, const SnapshotDevice& device,
                                         const std::vector<std::uint32_t>& moments) {
  const Allocations& rows = history.allocations;
  KeyIndex stacks;
  std::vector<StackGrowth> all;
  std::vector<std::map<std::uint16_t, std::int64_t>> classes;
  for (std::uint32_t i = device.allocations.first; i < device.allocations.first + device.allocations.count; i++) {
    // the moments at which it lives
    const auto first = std::lower_bound(moments.begin(), moments.end(), rows.begin[i]);
    const auto last = std::lower_bound(first, moments.end(), rows.end[i]);
    if (first == last) continue;
    const std::uint32_t at = stacks[static_cast<std::uint64_t>(rows.stack[i])];
    if (at == all.size()) {
      all.push_back({.stack = rows.stack[i], .bytes = std::vector<std::int64_t>(moments.size())});
      classes.emplace_back();
    }
    for (auto moment = first; moment != last; moment++) {
      std::int64_t& sum = all[at].bytes[static_cast<std::size_t>(moment - moments.begin())];
      sum = plus(sum, rows.bytes[i]);
    }
    all[at].first_blocks += first == moments.begin() ? 1 : 0;
    all[at].last_blocks += last == moments.end() ? 1 : 0;
    if (first != moments.begin() && last != moments.end()) continue;
    std::int64_t& part = classes[at][rows.of_class[i]];
    part = plus(part, rows.bytes[i]);
  }
  for (std::size_t i = 0; i < all.size(); i++) {
    if (classes[i].empty()) continue;
    all[i].of_class = std::max_element(classes[i].begin(), classes[i].end(), [](const auto& a, const auto& b) {
                        return a.second < b.second;
                      })->first;
  }
  std::erase_if(all, [](const StackGrowth& one) { return one.bytes.front() == 0 && one.bytes.back() == 0; });
  std::stable_sort(all.begin(), all.end(),
                   [](const StackGrowth& a, const StackGrowth& b) { return a.growth() > b.growth(); });
  return all;
}

}  // namespace stepscope::snapshot
