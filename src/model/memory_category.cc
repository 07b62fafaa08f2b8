#include "model/memory_category.h"

#include <algorithm>
#include <array>

namespace stepscope {

namespace {

constexpr std::array<std::string_view, kMemoryCategories> kNames{
    "parameter",     "buffer",    "gradient", "master parameter", "optimizer state", "activation", "temporary",
    "communication", "workspace", "input",    "unknown"};

}  // namespace

std::string_view to_string(MemoryCategory category) {
  const auto at = static_cast<std::size_t>(category);
  return at < kNames.size() ? kNames[at] : "unknown";
}

MemoryCategory memory_category(std::string_view name) {
  const auto found = std::find(kNames.begin(), kNames.end(), name);
  return found == kNames.end() ? MemoryCategory::unknown : static_cast<MemoryCategory>(found - kNames.begin());
}

}  // namespace stepscope
