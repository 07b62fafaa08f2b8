#include "snapshot/growth_table.h"

#include <algorithm>
#include <cmath>

#include "model/answer_parts.h"
#include "snapshot/stack_text.h"

namespace stepscope::snapshot {

Table growth_table(std::string_view name) {
  return table_of(
      name, {{"where", ValueType::text, Unit::none, "Who allocated it"},
             {"growth_bytes", ValueType::integer, Unit::bytes, "What lives more at the later moment"},
             {"from_bytes", ValueType::integer, Unit::bytes, "Alive at the earlier moment"},
             {"to_bytes", ValueType::integer, Unit::bytes, "Alive at the later moment"},
             {"growth_blocks", ValueType::integer, Unit::count, "Blocks more"},
             {"steady", ValueType::boolean, Unit::none, "Did it grow at most moments in between, and shrink at none?"},
             {"class", ValueType::text, Unit::none, "Class of most of its bytes at the two moments"},
             {"from_event", ValueType::integer, Unit::none, "Number of the event before the earlier moment"},
             {"to_event", ValueType::integer, Unit::none, "Number of the event before the later moment"},
             {"stack", ValueType::integer, Unit::none, "Number of the stack; whole in the table stacks"}});
}

void add_growth_rows(Table& table, const View& view, const std::vector<std::uint32_t>& moments,
                     const std::vector<StackGrowth>& all, std::size_t most_rows, ToldStacks& told) {
  std::vector<const StackGrowth*> changed;
  for (const StackGrowth& one : all) {
    if (one.growth() != 0) changed.push_back(&one);
  }
  std::stable_sort(changed.begin(), changed.end(), [](const StackGrowth* a, const StackGrowth* b) {
    return std::abs(a->growth()) > std::abs(b->growth());
  });
  if (changed.size() > most_rows) changed.resize(most_rows);
  for (const StackGrowth* one : changed) {
    const auto blocks = static_cast<std::int64_t>(one->last_blocks) - static_cast<std::int64_t>(one->first_blocks);
    std::string where = where_text(view.snapshot(), one->stack);
    if (where.empty()) where = "no stack";
    table.rows.push_back(
        row_of(view, {std::move(where), one->growth(), one->bytes.front(), one->bytes.back(), blocks, one->steady(),
                      text(view.history().classes[one->of_class].name), moment_event(view, moments.front()),
                      moment_event(view, moments.back()), told.tell(view, one->stack)}));
  }
}

}  // namespace stepscope::snapshot
