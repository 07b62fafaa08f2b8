#include "model/memory_category.h"

#include <array>

namespace stepscope {

std::string_view to_string(MemoryCategory category) {
  static constexpr std::array<std::string_view, kMemoryCategories> kNames{
      "parameter",     "buffer",    "gradient", "master parameter", "optimizer state", "activation", "temporary",
      "communication", "workspace", "input",    "unknown"};
  const auto at = static_cast<std::size_t>(category);
  return at < kNames.size() ? kNames[at] : "unknown";
}

}  // namespace stepscope
