#include "snapshot/holdings.h"

#include <algorithm>
#include <utility>

#include "model/answer_parts.h"
#include "snapshot/byte_sums.h"

namespace stepscope::snapshot {
namespace {

const TableColumn kBytes{"bytes", ValueType::integer, Unit::bytes, "Bytes alive, as the program asked for them"};
const TableColumn kShare{"share", ValueType::real, Unit::ratio, "Share of all that lives at that moment"};
const TableColumn kBlocks{"blocks", ValueType::integer, Unit::count, "Allocations alive"};
const TableColumn kBlockBytes{"block_bytes", ValueType::integer, Unit::bytes,
                              "What they take of the allocator's memory, rounded as it does"};
const TableColumn kStack{"stack", ValueType::integer, Unit::none, "Number of the stack; whole in the table stacks"};

Value named(const std::string& name) { return text(name); }

std::int64_t whole_of(const std::vector<Group>& groups) {
  std::int64_t sum = 0;
  for (const Group& group : groups) sum = plus(sum, group.bytes);
  return sum;
}

}  // namespace

Holdings::Holdings(std::string_view name, bool with_event, std::size_t most_rows)
    : name_(name), with_event_(with_event), most_rows_(most_rows) {
  classes_ = table_of(name_ + "_classes",
                      columns({{"class", ValueType::text, Unit::none,
                                "What it is for: its category, else what is known instead; unknown: nothing is"},
                               kBytes,
                               kShare,
                               kBlocks,
                               kBlockBytes}));
  evidence_ = table_of(
      name_ + "_evidence",
      columns({{"class", ValueType::text, Unit::none, "Class, as in the table of classes"},
               kBytes,
               kShare,
               {"why", ValueType::text, Unit::none, "The evidence for the class; unknown: there is none"},
               {"category", ValueType::text, Unit::none, "Category, where the evidence gives one; else unknown"},
               kBlocks}));
  stacks_ = table_of(name_ + "_stacks", columns({{"where", ValueType::text, Unit::none,
                                                  "Who allocated it: innermost frames of your own code, else of torch"},
                                                 kBytes,
                                                 kShare,
                                                 kBlocks,
                                                 {"class", ValueType::text, Unit::none, "Class of most of its bytes"},
                                                 kStack}));
}

std::vector<TableColumn> Holdings::columns(std::vector<TableColumn> more) const {
  if (with_event_)
    more.insert(more.begin(), {"event", ValueType::integer, Unit::none, "Number of the event where memory ran out"});
  return more;
}

std::vector<Value> Holdings::row(const View& view, const State& state, std::vector<Value> cells) const {
  if (with_event_) cells.insert(cells.begin(), static_cast<std::int64_t>(state.moment));
  return row_of(view, std::move(cells));
}

HeldShares Holdings::add(const View& view, const State& state, ToldStacks& told) {
  const auto groups = [&](GroupBy by) { return grouped(view.snapshot(), view.history(), *view.device, state, by); };
  HeldShares shares;
  const std::vector<Group> classes = groups(GroupBy::of_class);
  shares.bytes = whole_of(classes);
  const std::string_view unknown = to_string(MemoryCategory::unknown);
  for (const Group& group : classes) {
    classes_.rows.push_back(row(
        view, state,
        {named(group.name), group.bytes, share(group.bytes, shares.bytes), count(group.blocks), group.block_bytes}));
    if (group.name == unknown) shares.unknown = group.bytes;
  }
  const std::vector<Group> categories = groups(GroupBy::category);
  const auto none =
      std::find_if(categories.begin(), categories.end(), [&](const Group& group) { return group.name == unknown; });
  if (none != categories.end()) shares.uncategorized = none->bytes;
  for (const Group& group : groups(GroupBy::evidence)) {
    const MemoryCategory category = view.history().classes[group.class_number].category;
    evidence_.rows.push_back(
        row(view, state,
            {named(group.name), group.bytes, share(group.bytes, shares.bytes), named(group.evidence),
             named(std::string(to_string(category))), count(group.blocks)}));
  }
  add_stacks(view, state, groups(GroupBy::stack), shares.bytes, told);
  return shares;
}

void Holdings::add_stacks(const View& view, const State& state, const std::vector<Group>& groups, std::int64_t whole,
                          ToldStacks& told) {
  const std::size_t shown = most_rows_ == 0 ? groups.size() : std::min(most_rows_, groups.size());
  for (std::size_t i = 0; i < groups.size(); i++) {
    const Group& group = groups[i];
    if (i >= shown) {
      stacks_left_out_++;
      continue;
    }
    stacks_.rows.push_back(row(view, state,
                               {named(group.name), group.bytes, share(group.bytes, whole), count(group.blocks),
                                named(group.of_class), told.tell(view, group.stack)}));
  }
}

Table Holdings::by(const View& view, const State& state, GroupBy by, ToldStacks& told) const {
  const std::string kind(group_names()[static_cast<std::size_t>(by)]);
  Table table = table_of(name_ + "_by_" + kind,
                         columns({{kind, ValueType::text, Unit::none, "What the allocations have in common"},
                                  kBytes,
                                  kShare,
                                  kBlocks,
                                  kBlockBytes,
                                  {"class", ValueType::text, Unit::none, "Class of most of its bytes"},
                                  {"why", ValueType::text, Unit::none, "The evidence for that class"},
                                  kStack}));
  const std::vector<Group> groups = grouped(view.snapshot(), view.history(), *view.device, state, by);
  const std::int64_t whole = whole_of(groups);
  for (const Group& group : groups) {
    table.rows.push_back(
        row(view, state,
            {named(group.name), group.bytes, share(group.bytes, whole), count(group.blocks), group.block_bytes,
             named(group.of_class), named(group.evidence), told.tell(view, group.stack)}));
  }
  return table;
}

void Holdings::take(Answer& answer) {
  if (stacks_left_out_ > 0) {
    answer.notes.push_back("Table " + stacks_.name + " has the " + std::to_string(most_rows_) +
                           " largest stacks of each moment; " + std::to_string(stacks_left_out_) +
                           " smaller ones are left out.");
  }
  answer.tables.push_back(std::move(classes_));
  answer.tables.push_back(std::move(evidence_));
  answer.tables.push_back(std::move(stacks_));
}

}  // namespace stepscope::snapshot
