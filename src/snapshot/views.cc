#include "snapshot/views.h"

#include <algorithm>

#include "model/answer_parts.h"
#include "snapshot/curve.h"
#include "snapshot/marks.h"
#include "snapshot/stack_text.h"

namespace stepscope::snapshot {

std::vector<View> views_of(const Run& run) {
  std::vector<View> views;
  for (std::size_t i = 0; i < run.snapshots.size(); i++) {
    const Trace& trace = run.snapshots[i];
    if (trace.snapshot == nullptr || trace.snapshot_history == nullptr) continue;
    for (const SnapshotDevice& device : trace.snapshot_history->devices)
      views.push_back({static_cast<std::int64_t>(i), &trace, &device});
  }
  return views;
}

Table table_of(std::string_view name, std::vector<TableColumn> columns) {
  Table table{.name = std::string(name),
              .columns = {{"snapshot", ValueType::integer, Unit::none, "Number of the snapshot in the run"},
                          {"rank", ValueType::integer, Unit::none, "Rank of the process"},
                          {"device", ValueType::text, Unit::none, "Device, as the process numbers it"}}};
  table.columns.insert(table.columns.end(), columns.begin(), columns.end());
  return table;
}

std::vector<Value> row_of(const View& view, std::vector<Value> cells) {
  cells.insert(cells.begin(), {view.number, view.trace->rank.rank, view.device_name()});
  return cells;
}

Value ToldStacks::tell(const View& view, StackId stack) {
  if (stack == StackId::none || view.snapshot().frames_of(stack).empty()) return {};
  if (told_.insert({view.number, stack}).second) stacks_.emplace_back(view, stack);
  return static_cast<std::int64_t>(stack);
}

Table ToldStacks::table() const {
  Table table{.name = "stacks",
              .columns = {{"snapshot", ValueType::integer, Unit::none, "Number of the snapshot in the run"},
                          {"stack", ValueType::integer, Unit::none, "Number of the stack in its snapshot"},
                          {"frames", ValueType::text, Unit::none,
                           "File, line and function of all frames, innermost first, a line each"}},
              .rows = {},
              .bulky = true};
  for (const auto& [view, stack] : stacks_) {
    table.rows.push_back({view.number, static_cast<std::int64_t>(stack), full_text(view.snapshot(), stack)});
  }
  return table;
}

Value moment_time(const View& view, std::uint32_t moment) {
  const std::int64_t time = time_of(view.snapshot(), *view.device, moment);
  return time == kNotRecorded ? Value() : Value(time);
}

Value moment_event(const View&, std::uint32_t moment) {
  return moment == 0 ? Value() : Value(static_cast<std::int64_t>(moment) - 1);
}

Value moment_step(const View& view, std::uint32_t moment) {
  for (const SnapshotStep& step : view.device->steps) {
    if (moment > step.begin && moment <= step.end) return step.name;
  }
  return {};
}

Value moment_range(const View& view, std::uint32_t moment) {
  const MarkedRange* inner = nullptr;
  for (const MarkedRange& mark : view.device->marks) {  // by begin: the last that holds it is the innermost
    const bool holds = moment > 0 && mark.begin < moment && moment <= mark.end;
    if (holds && !is_step_mark(view.snapshot(), mark)) inner = &mark;
  }
  return inner == nullptr ? Value() : text(view.snapshot().strings[inner->name]);
}

}  // namespace stepscope::snapshot
