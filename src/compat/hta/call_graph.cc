#include "compat/hta/call_graph.h"

#include <algorithm>
#include <map>

#include "compat/hta/call_stack.h"

namespace stepscope::compat::hta {
namespace {

using Thread = std::vector<std::uint32_t>;

const Track& track_of(const EventTable& table, std::uint32_t row) {
  const Trace& trace = table.trace();
  return trace.tracks[static_cast<std::size_t>(trace.slices.track[table.rows()[row].index])];
}

std::vector<Thread> host_threads(const EventTable& table) {
  const StringPool& strings = table.trace().strings;
  std::map<std::pair<NumberFirst, NumberFirst>, Thread> threads;
  for (std::uint32_t row = 0; row < table.rows().size(); row++) {
    const Track& track = track_of(table, row);
    threads[{NumberFirst(strings[track.process]), NumberFirst(strings[track.thread])}].push_back(row);
  }
  std::vector<Thread> found;
  for (auto& [ids, rows] : threads) {
    const Track& track = track_of(table, rows.front());
    const bool device = strings[track.process] == "0" || strings[track.thread] == "0" ||
                        std::all_of(rows.begin(), rows.end(), [&](auto row) { return table.rows()[row].stream > 0; });
    if (!device) found.push_back(std::move(rows));
  }
  return found;
}

std::vector<std::uint32_t> named(const EventTable& table, const Thread& thread, std::string_view start) {
  std::vector<std::uint32_t> rows;
  std::copy_if(thread.begin(), thread.end(), std::back_inserter(rows),
               [&](auto row) { return table.name(table.rows()[row]).starts_with(start); });
  return rows;
}

bool runs_backward(const EventTable& table, const Thread& thread) {
  return std::any_of(thread.begin(), thread.end(), [&](auto row) {
    return table.name(table.rows()[row]).find("autograd::") != std::string_view::npos;
  });
}

}  // namespace

CallGraph::CallGraph(const EventTable& table)
    : table_(table),
      parent_(table.rows().size(), kRoot),
      children_(table.rows().size()),
      inside_(table.rows().size(), false),
      depth_(table.rows().size(), -1),
      kernels_(table.rows().size(), 0),
      kernel_time_(table.rows().size(), 0) {
  const std::vector<Thread> threads = host_threads(table);
  std::vector<const Thread*> main, backward;
  std::vector<std::uint32_t> backward_roots;
  for (const Thread& thread : threads) {
    std::vector<std::uint32_t> roots = add_thread(thread);
    if (!named(table, thread, "ProfilerStep#").empty()) {
      main.push_back(&thread);
    } else if (runs_backward(table, thread)) {
      backward.push_back(&thread);
      backward_roots = std::move(roots);
    }
  }
  add_device_work();
  if (main.size() == 1 && backward.size() == 1) {  // the backward thread works for an annotation of the main one
    std::vector<std::uint32_t> annotations = named(table, *main.front(), "## backward ##");
    if (annotations.empty()) annotations = named(table, *main.front(), "ProfilerStep#");
    for (const std::uint32_t annotation : annotations) adopt(backward_roots, annotation);
  }
  measure();
}

std::vector<std::uint32_t> CallGraph::add_thread(const Thread& thread) {
  std::vector<Row> rows;
  std::vector<std::uint32_t> numbers;
  for (const std::uint32_t row : thread) {
    if (table_.rows()[row].stream != kNone) continue;
    rows.push_back(table_.rows()[row]);
    numbers.push_back(row);
    inside_[row] = true;
  }
  const CallStack stack(rows, CallStack::Empty::nested);
  for (std::uint32_t i = 0; i < rows.size(); i++) {
    if (stack.parent(i) != CallStack::kRoot) parent_[numbers[i]] = numbers[stack.parent(i)];
    for (const std::uint32_t child : stack.children(i)) children_[numbers[i]].push_back(numbers[child]);
  }
  std::vector<std::uint32_t> roots;
  for (const std::uint32_t root : stack.roots()) roots.push_back(numbers[root]);
  return roots;
}

void CallGraph::add_device_work() {
  for (std::uint32_t row = 0; row < table_.rows().size(); row++) {
    const Row& work = table_.rows()[row];
    const Row* const launch =
        work.stream > 0 && work.index_correlation > 0 ? table_.at(work.index_correlation) : nullptr;
    if (launch == nullptr) continue;
    const auto parent = static_cast<std::uint32_t>(launch - table_.rows().data());
    if (!inside_[parent] || inside_[row]) continue;
    inside_[row] = true;
    parent_[row] = parent;
    children_[parent].push_back(row);
  }
}

void CallGraph::adopt(std::vector<std::uint32_t>& roots, std::uint32_t parent) {
  const Row& range = table_.rows()[parent];
  const auto lies_inside = [&](std::uint32_t row) {
    return table_.rows()[row].ts >= range.ts && table_.rows()[row].end() <= range.end();
  };
  for (const std::uint32_t root : roots) {
    if (!lies_inside(root)) continue;
    parent_[root] = parent;
    children_[parent].push_back(root);
  }
  roots.erase(std::remove_if(roots.begin(), roots.end(), lies_inside), roots.end());
}

void CallGraph::measure() {
  std::vector<std::uint32_t> order;  // parents before children
  for (std::uint32_t row = 0; row < parent_.size(); row++) {
    if (inside_[row] && parent_[row] == kRoot) order.push_back(row);
  }
  for (std::size_t i = 0; i < order.size(); i++) {
    const std::uint32_t row = order[i];
    depth_[row] = parent_[row] == kRoot ? 0 : depth_[parent_[row]] + 1;
    order.insert(order.end(), children_[row].begin(), children_[row].end());
  }
  for (auto row = order.rbegin(); row != order.rend(); ++row) {
    if (table_.rows()[*row].stream != kNone) {
      kernels_[*row]++;
      kernel_time_[*row] += table_.rows()[*row].dur;
    }
    if (parent_[*row] == kRoot) continue;
    kernels_[parent_[*row]] += kernels_[*row];
    kernel_time_[parent_[*row]] += kernel_time_[*row];
  }
}

std::vector<std::uint32_t> CallGraph::subtree(std::uint32_t row) const {
  std::vector<std::uint32_t> found{row};
  for (std::size_t i = 0; i < found.size(); i++)
    found.insert(found.end(), children_[found[i]].begin(), children_[found[i]].end());
  return found;
}

std::vector<std::uint32_t> CallGraph::path_to(std::uint32_t row) const {
  std::vector<std::uint32_t> path;
  for (; row != kRoot; row = parent_[row]) path.push_back(row);
  std::reverse(path.begin(), path.end());
  return path;
}

}  // namespace stepscope::compat::hta
