#include "analyze/memory_state/tables.h"

#include <algorithm>

#include "model/answer_parts.h"

namespace stepscope::analyze::memory_states {
namespace {

constexpr std::size_t kMostRows = 4000;  // of one tree
constexpr std::size_t kMostRanks = 8;    // whose trees are shown

TableColumn rank_column() { return {"rank", ValueType::integer, Unit::none, "Rank"}; }

std::vector<Value> moment_cells(const MemoryMoment& moment) {
  return {moment.step, to_value(moment.micro_batch), text(moment.event)};
}

void add_moment_columns(std::vector<TableColumn>& columns) {
  columns.push_back({"step", ValueType::integer, Unit::none, "Number of the step"});
  columns.push_back({"micro_batch", ValueType::integer, Unit::none,
                     "Which forward or backward pass of the step; unknown: it was at no pass"});
  columns.push_back(
      {"event", ValueType::text, Unit::none, "What it was at, or before: begin, forward, backward, step, asked"});
}

// The tree row by row, each node before those below it, larger ones first; rows too small to be kept are left out.
class Rows {
 public:
  Rows(const MemoryState& state, const MemoryTree& tree) : nodes_(state.nodes), tree_(tree) {
    below_.resize(tree.rows.size());
    std::vector<std::size_t> place(state.nodes.size(), kNone);
    for (std::size_t i = 0; i < tree.rows.size(); i++) place[tree.rows[i].node] = i;
    for (std::size_t i = 0; i < tree.rows.size(); i++) {
      const std::uint32_t node = tree.rows[i].node;
      if (node != 0 && place[nodes_[node].parent] != kNone) below_[place[nodes_[node].parent]].push_back(i);
    }
    for (auto& children : below_) {
      std::stable_sort(children.begin(), children.end(), [&](std::size_t a, std::size_t b) {
        return tree.rows[a].total_bytes > tree.rows[b].total_bytes;
      });
    }
  }

  template <class Add>
  std::size_t each(const Add& add) const {
    const std::int64_t smallest = smallest_kept();
    std::size_t shown = 0;
    std::vector<std::size_t> waiting;
    if (!tree_.rows.empty()) waiting.push_back(0);
    while (!waiting.empty()) {
      const std::size_t at = waiting.back();
      waiting.pop_back();
      if (tree_.rows[at].total_bytes < smallest) continue;
      shown++;
      add(tree_.rows[at], nodes_[tree_.rows[at].node]);
      waiting.insert(waiting.end(), below_[at].rbegin(), below_[at].rend());
    }
    return tree_.rows.size() - shown;
  }

 private:
  static constexpr std::size_t kNone = static_cast<std::size_t>(-1);

  // What is above a node is never smaller, so that no row stays without it.
  std::int64_t smallest_kept() const {
    if (tree_.rows.size() <= kMostRows) return 0;
    std::vector<std::int64_t> sizes;
    for (const MemoryTreeRow& row : tree_.rows) sizes.push_back(row.total_bytes);
    std::nth_element(sizes.begin(), sizes.begin() + kMostRows, sizes.end(), std::greater<>());
    return sizes[kMostRows] + 1;
  }

  const std::vector<MemoryNode>& nodes_;
  const MemoryTree& tree_;
  std::vector<std::vector<std::size_t>> below_;
};

std::string_view path_of(const MemoryNode& node) { return node.depth == 0 ? "(all)" : std::string_view(node.path); }

Table tree_table(std::string name) {
  Table table{.name = std::move(name), .columns = {rank_column()}, .rows = {}};
  add_moment_columns(table.columns);
  for (TableColumn column : std::initializer_list<TableColumn>{
           {"category", ValueType::text, Unit::none, "What the memory is used for"},
           {"path", ValueType::text, Unit::none,
            "Module, parameter, or what the optimizer has of one; (all): the whole category"},
           {"own_bytes", ValueType::integer, Unit::bytes, "Its own, without those below it"},
           {"total_bytes", ValueType::integer, Unit::bytes, "With those below it"},
           {"share", ValueType::real, Unit::ratio, "Share of all bytes in this table's moment of the rank"},
           {"class", ValueType::text, Unit::none, "Class of the module; empty: it is none"},
           {"parent", ValueType::text, Unit::none, "Path of the one that it belongs to; empty: it is the whole"},
           {"depth", ValueType::integer, Unit::none, "How far below the whole"}}) {
    table.columns.push_back(std::move(column));
  }
  return table;
}

std::size_t add_layout(const MemoryState& state, const MemoryLayout& layout, Table& table) {
  std::size_t left_out = 0;
  const std::int64_t whole = layout.bytes();
  for (const MemoryTree& tree : layout.trees) {
    left_out += Rows(state, tree).each([&](const MemoryTreeRow& row, const MemoryNode& node) {
      std::vector<Value> cells{state.rank};
      for (Value& cell : moment_cells(layout.moment)) cells.push_back(std::move(cell));
      for (Value cell : {Value(std::string(to_string(tree.category))), text(path_of(node)), Value(row.own_bytes),
                         Value(row.total_bytes), share(row.total_bytes, whole), Value(node.class_name),
                         Value(std::string(row.node == 0 ? "" : path_of(state.nodes[node.parent]))),
                         Value(static_cast<std::int64_t>(node.depth))}) {
        cells.push_back(std::move(cell));
      }
      table.rows.push_back(std::move(cells));
    });
  }
  return left_out;
}

// The ranks whose trees are shown, by rank: of many those with the highest peaks.
std::vector<const MemoryState*> shown_ranks(const Run& run) {
  std::vector<const MemoryState*> all;
  for (const MemoryState& state : run.memory_states) all.push_back(&state);
  if (all.size() <= kMostRanks) return all;
  const auto peak = [](const MemoryState* state) { return state->peak ? state->peak->bytes() : 0; };
  std::stable_sort(all.begin(), all.end(),
                   [&](const MemoryState* a, const MemoryState* b) { return peak(a) > peak(b); });
  all.resize(kMostRanks);
  std::stable_sort(all.begin(), all.end(),
                   [](const MemoryState* a, const MemoryState* b) { return a->rank < b->rank; });
  return all;
}

void add_category_rows(const MemoryState& state, const char* moment, const MemoryLayout& layout, Table& table) {
  const std::int64_t whole = layout.bytes();
  for (const MemoryTree& tree : layout.trees) {
    std::vector<Value> cells{state.rank, text(moment)};
    for (Value& cell : moment_cells(layout.moment)) cells.push_back(std::move(cell));
    cells.push_back(text(to_string(tree.category)));
    cells.push_back(tree.bytes());
    cells.push_back(share(tree.bytes(), whole));
    table.rows.push_back(std::move(cells));
  }
}

const MemoryPoint* most_allocated(const MemoryState& state) {
  const MemoryPoint* most = nullptr;
  for (const MemoryPoint& point : state.points) {
    if (!point.allocator || !point.allocator->allocated_bytes) continue;
    if (most == nullptr || *point.allocator->allocated_bytes > *most->allocator->allocated_bytes) most = &point;
  }
  return most;
}

std::optional<std::int64_t> less(std::optional<std::int64_t> whole, std::optional<std::int64_t> part) {
  return whole && part ? std::optional(*whole - *part) : std::nullopt;
}

std::vector<Value> allocator_row(const MemoryState& state, const char* which, const MemoryPoint& point) {
  const AllocatorFigures& told = *point.allocator;
  const std::int64_t known = on_device_of_model(state, point);
  std::vector<Value> cells{state.rank, text(state.device), text(which)};
  for (Value& cell : moment_cells(point.moment)) cells.push_back(std::move(cell));
  const auto free = less(less(told.reserved_bytes, told.allocated_bytes), told.inactive_split_bytes);
  const auto rest = less(told.requested_bytes ? told.requested_bytes : told.allocated_bytes, known);
  for (const std::optional<std::int64_t>& number :
       {std::optional(known), rest, told.requested_bytes, told.rounding_bytes, told.allocated_bytes,
        told.inactive_split_bytes, free, told.reserved_bytes, told.non_torch_bytes, told.device_used_bytes,
        told.device_total_bytes}) {
    cells.push_back(to_value(number));
  }
  return cells;
}

}  // namespace

std::int64_t on_device_of_model(const MemoryState& state, const MemoryPoint& point) {
  for (const auto& [name, bytes] : point.devices) {
    if (name == state.device) return total(bytes);
  }
  return total(point.bytes);
}

Table categories_table(const Run& run) {
  Table table{
      .name = "categories",
      .columns = {rank_column(),
                  {"moment", ValueType::text, Unit::none, "peak: the most there was; end: after the last step"}},
      .rows = {}};
  add_moment_columns(table.columns);
  table.columns.push_back({"category", ValueType::text, Unit::none, "What the memory is used for"});
  table.columns.push_back({"bytes", ValueType::integer, Unit::bytes, "Bytes of storages, each counted once"});
  table.columns.push_back({"share", ValueType::real, Unit::ratio, "Share of all at that moment"});
  for (const MemoryState& state : run.memory_states) {
    if (state.peak) add_category_rows(state, "peak", *state.peak, table);
    if (!state.step_ends.empty()) add_category_rows(state, "end", state.step_ends.back(), table);
  }
  return table;
}

Table steps_table(const Run& run) {
  Table table{.name = "steps", .columns = {rank_column()}, .rows = {}};
  table.columns.push_back({"step", ValueType::integer, Unit::none, "Number of the step"});
  table.columns.push_back({"peak_bytes", ValueType::integer, Unit::bytes, "Most there was at once in the step"});
  table.columns.push_back({"peak_micro_batch", ValueType::integer, Unit::none,
                           "In which forward or backward pass that was; unknown: in none"});
  table.columns.push_back({"peak_event", ValueType::text, Unit::none, "What ended next: forward, backward, step"});
  table.columns.push_back({"peak_activation_bytes", ValueType::integer, Unit::bytes,
                           "Activations at that moment, without inputs of the model"});
  table.columns.push_back({"end_bytes", ValueType::integer, Unit::bytes, "At the end of the step"});
  for (const MemoryState& state : run.memory_states) {
    for (const MemoryLayout& end : state.step_ends) {
      const auto same = [&](const MemoryLayout& one) { return one.moment.step == end.moment.step; };
      const auto peak = std::find_if(state.step_peaks.begin(), state.step_peaks.end(), same);
      const bool known = peak != state.step_peaks.end();
      const MemoryTree* kept = known ? peak->tree(MemoryCategory::activation) : nullptr;
      table.rows.push_back({state.rank, end.moment.step, value_if(known, known ? peak->bytes() : 0),
                            known ? to_value(peak->moment.micro_batch) : Value(),
                            known ? text(peak->moment.event) : Value(), value_if(known, kept ? kept->bytes() : 0),
                            end.bytes()});
    }
  }
  return table;
}

Table devices_table(const Run& run) {
  Table table{.name = "devices",
              .columns = {rank_column(),
                          {"device", ValueType::text, Unit::none, "Device that holds the memory"},
                          {"category", ValueType::text, Unit::none, "What it is used for"},
                          {"bytes", ValueType::integer, Unit::bytes, "At the last moment that was measured"},
                          {"largest_bytes", ValueType::integer, Unit::bytes, "At most, at the end of a pass or step"}},
              .rows = {}};
  for (const MemoryState& state : run.memory_states) {
    if (state.points.empty()) continue;
    for (const auto& [device, last] : state.points.back().devices) {
      CategoryBytes most = last;
      for (const MemoryPoint& point : state.points) {
        for (const auto& [name, bytes] : point.devices) {
          if (name != device) continue;
          for (std::size_t i = 0; i < most.size(); i++) most[i] = std::max(most[i], bytes[i]);
        }
      }
      for (const MemoryCategory category : kMeasured) {
        const auto at = static_cast<std::size_t>(category);
        if (most[at] > 0) table.rows.push_back({state.rank, device, text(to_string(category)), last[at], most[at]});
      }
    }
  }
  return table;
}

Table allocator_table(const Run& run) {
  Table table{.name = "allocator",
              .columns = {rank_column(),
                          {"device", ValueType::text, Unit::none, "Device of the model"},
                          {"moment", ValueType::text, Unit::none,
                           "most: where most was allocated, of all moments measured; last: the last of them"}},
              .rows = {}};
  add_moment_columns(table.columns);
  for (TableColumn column : std::initializer_list<TableColumn>{
           {"categories_bytes", ValueType::integer, Unit::bytes, "What the categories on that device add up to"},
           {"other_bytes", ValueType::integer, Unit::bytes,
            "Requested beside them: results on their way, workspaces of libraries, buffers of communication"},
           {"requested_bytes", ValueType::integer, Unit::bytes, "What torch was asked for: the two before"},
           {"rounding_bytes", ValueType::integer, Unit::bytes, "Added to it by the allocator's sizes of blocks"},
           {"allocated_bytes", ValueType::integer, Unit::bytes, "Held by tensors: the two before"},
           {"inactive_split_bytes", ValueType::integer, Unit::bytes,
            "Fragmentation: free pieces of blocks that were split, which cannot be given back"},
           {"free_bytes", ValueType::integer, Unit::bytes, "Free in the allocator otherwise"},
           {"reserved_bytes", ValueType::integer, Unit::bytes, "What torch has of the device: the three before"},
           {"non_torch_bytes", ValueType::integer, Unit::bytes,
            "Used on the device beside that: contexts, NCCL, graphs, other processes"},
           {"device_used_bytes", ValueType::integer, Unit::bytes, "In use on the device: the two before"},
           {"device_total_bytes", ValueType::integer, Unit::bytes, "Memory of the device"}}) {
    table.columns.push_back(std::move(column));
  }
  for (const MemoryState& state : run.memory_states) {
    const MemoryPoint* most = most_allocated(state);
    if (most == nullptr) continue;
    table.rows.push_back(allocator_row(state, "most", *most));
    const auto last = std::find_if(state.points.rbegin(), state.points.rend(),
                                   [](const MemoryPoint& point) { return point.allocator.has_value(); });
    table.rows.push_back(allocator_row(state, "last", *last));
  }
  return table;
}

void add_trees(const Run& run, Answer& answer) {
  Table peak = tree_table("at_peak"), end = tree_table("at_end"), largest = tree_table("largest");
  const auto ranks = shown_ranks(run);
  std::size_t left_out = 0;
  for (const MemoryState* state : ranks) {
    if (state->peak) left_out += add_layout(*state, *state->peak, peak);
    if (!state->step_ends.empty()) left_out += add_layout(*state, state->step_ends.back(), end);
    for (const MemoryLayout& one : state->largest) left_out += add_layout(*state, one, largest);
  }
  for (Table* table : {&peak, &end, &largest}) answer.tables.push_back(std::move(*table));
  if (ranks.size() < run.memory_states.size()) {
    answer.notes.push_back("Trees are shown of the " + std::to_string(ranks.size()) +
                           " ranks with the highest peaks of " + std::to_string(run.memory_states.size()) +
                           "; open the folder of another rank for its own.");
  }
  if (left_out > 0) {
    answer.notes.push_back("Of each tree the " + std::to_string(kMostRows) + " largest rows are shown; " +
                           std::to_string(left_out) + " smaller ones are left out. All are in memory_state.json.");
  }
}

}  // namespace stepscope::analyze::memory_states
