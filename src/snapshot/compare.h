// What several snapshots hold, side by side. Stacks have numbers of their own in each, so they are paired by their
// text: first with the numbers of lines, then without, since code moves between two versions of a program.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "snapshot/groups.h"
#include "snapshot/views.h"

namespace stepscope::snapshot {

enum class Pairing : std::uint8_t { same, moved, only_first, only_second };
std::string_view to_string(Pairing how);

struct Pair {
  const Group* first = nullptr;  // null: the other side has it alone
  const Group* second = nullptr;
  Pairing how = Pairing::same;

  std::int64_t change() const { return (second ? second->bytes : 0) - (first ? first->bytes : 0); }
};

// Groups by stack of two snapshots; they must outlive the pairs. By the size of the change, the largest first.
std::vector<Pair> paired(const View& a, const std::vector<Group>& first, const View& b,
                         const std::vector<Group>& second);

// Which of the numbers stands out: by how many of the usual distances from the median (1.4826 times the median absolute
// deviation), and by more than a fiftieth of the median. Fewer than three numbers: none does.
struct Outlier {
  std::size_t index = 0;
  std::int64_t median = 0;
  double distances = 0;
};
std::optional<Outlier> outlier_of(const std::vector<std::int64_t>& numbers);

}  // namespace stepscope::snapshot
