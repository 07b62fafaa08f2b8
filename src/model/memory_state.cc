#include "model/memory_state.h"

#include <algorithm>
#include <numeric>

namespace stepscope {

std::int64_t total(const CategoryBytes& bytes) { return std::accumulate(bytes.begin(), bytes.end(), std::int64_t{0}); }

std::int64_t MemoryLayout::bytes() const {
  return std::accumulate(trees.begin(), trees.end(), std::int64_t{0},
                         [](std::int64_t sum, const MemoryTree& tree) { return sum + tree.bytes(); });
}

const MemoryTree* MemoryLayout::tree(MemoryCategory category) const {
  const auto found =
      std::find_if(trees.begin(), trees.end(), [&](const MemoryTree& tree) { return tree.category == category; });
  return found == trees.end() ? nullptr : &*found;
}

}  // namespace stepscope
