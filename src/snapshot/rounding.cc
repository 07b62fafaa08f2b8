#include "snapshot/rounding.h"

#include <algorithm>
#include <bit>
#include <charconv>
#include <string_view>

namespace stepscope::snapshot {
namespace {

constexpr std::string_view kDivisions = "roundup_power2_divisions.";
constexpr std::int64_t kMostRounded = std::int64_t{1} << 50;  // no device has more; sums stay far from the limit

std::int64_t up_to(std::int64_t bytes, std::int64_t step) { return (bytes + step - 1) / step * step; }

}  // namespace

Rounding::Rounding(const CudaSnapshot& snapshot) {
  for (const AllocatorSetting& setting : snapshot.settings) {
    const auto* number = std::get_if<std::int64_t>(&setting.value);
    const auto* truth = std::get_if<bool>(&setting.value);
    if (setting.name == "expandable_segments") expandable_ = truth != nullptr && *truth;
    if (setting.name == "max_split_size" && number != nullptr && *number > 0) most_split_ = *number;
    if (!setting.name.starts_with(kDivisions) || number == nullptr) continue;
    std::uint64_t mebibytes = 0;
    const std::string_view text = std::string_view(setting.name).substr(kDivisions.size());
    std::from_chars(text.data(), text.data() + text.size(), mebibytes);
    if (std::has_single_bit(mebibytes) && mebibytes <= 32768) {
      divisions_[static_cast<std::size_t>(std::countr_zero(mebibytes))] = *number;
    }
  }
}

std::int64_t Rounding::rounded(std::int64_t bytes) const {
  if (bytes < kLeastBlock) return kLeastBlock;
  if (bytes > kMostRounded) return bytes;
  const auto size = static_cast<std::uint64_t>(bytes);
  const int power = std::bit_width(size) - 1;
  const std::int64_t divisions = divisions_[static_cast<std::size_t>(std::clamp(power - 20, 0, 15))];
  if (divisions <= 1 || bytes <= kLeastBlock * std::min(divisions, kMostRounded / kLeastBlock)) {
    return up_to(bytes, kLeastBlock);
  }
  if (std::has_single_bit(size)) return bytes;
  const int divided = std::bit_width(static_cast<std::uint64_t>(divisions)) - 1;
  const std::int64_t step = divided < power ? std::int64_t{1} << (power - divided) : 0;
  return step == 0 ? std::int64_t{1} << (power + 1) : up_to(bytes, step);
}

std::int64_t Rounding::taken(std::int64_t wanted, std::int64_t available) const {
  const std::int64_t rest = available - wanted;
  if (rest <= 0) return wanted;
  const bool any_rest = wanted <= kMostSmall || expandable_;
  const bool splits = any_rest ? rest >= kLeastBlock : rest > kMostSmall && wanted < most_split_;
  return splits ? wanted : available;
}

}  // namespace stepscope::snapshot
