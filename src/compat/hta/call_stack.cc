#include "compat/hta/call_stack.h"

#include <algorithm>

namespace stepscope::compat::hta {
namespace {

struct Mark {
  double time, duration;
  std::uint32_t row;
  bool is_start;
};

// At the same time: the start of an event before its end; of different events ends before starts, but a start or end
// of no duration lies inside the other; longer ones start first and end last.
bool comes_before(const Mark& a, const Mark& b, CallStack::Empty empty) {
  if (a.row == b.row) return a.is_start && !b.is_start;
  if (a.time != b.time) return a.time < b.time;
  if (a.is_start == b.is_start) {
    if (a.duration != b.duration) return a.is_start == (a.duration > b.duration);
    return a.is_start == (a.row < b.row);
  }
  if (a.duration > 0 && b.duration > 0) return !a.is_start;
  if (a.duration == 0 && b.duration == 0 && empty == CallStack::Empty::one_by_one) return a.row < b.row;
  return a.is_start;
}

}  // namespace

CallStack::CallStack(const std::vector<Row>& rows, Empty empty)
    : rows_(rows), parents_(rows.size(), kRoot), children_(rows.size()) {
  std::vector<Mark> marks;
  for (std::uint32_t i = 0; i < rows.size(); i++) {
    const double duration = std::max(rows[i].dur, 0.0);
    marks.push_back({rows[i].ts, duration, i, true});
    marks.push_back({rows[i].ts + duration, duration, i, false});
  }
  std::stable_sort(marks.begin(), marks.end(), [&](const Mark& a, const Mark& b) { return comes_before(a, b, empty); });
  std::vector<std::uint32_t> open;
  for (const Mark& mark : marks) {
    if (!mark.is_start) {
      if (!open.empty()) open.pop_back();
      continue;
    }
    if (!open.empty()) parents_[mark.row] = open.back();
    (open.empty() ? roots_ : children_[open.back()]).push_back(mark.row);
    open.push_back(mark.row);
  }
}

void CallStack::visit(const Visit& enter, const Visit& leave) const {
  const auto parent_index = [&](std::uint32_t row) -> std::int64_t {
    return parents_[row] == kRoot ? kNone : rows_[parents_[row]].index;
  };
  struct Step {
    std::uint32_t row;
    bool entering;
  };
  std::vector<Step> waiting;
  for (auto root = roots_.rbegin(); root != roots_.rend(); ++root) waiting.push_back({*root, true});
  while (!waiting.empty()) {
    const Step step = waiting.back();
    waiting.pop_back();
    if (!step.entering) {
      leave(step.row, parent_index(step.row));
      continue;
    }
    enter(step.row, parent_index(step.row));
    waiting.push_back({step.row, false});
    const auto& children = children_[step.row];
    for (auto child = children.rbegin(); child != children.rend(); ++child) waiting.push_back({*child, true});
  }
}

}  // namespace stepscope::compat::hta
