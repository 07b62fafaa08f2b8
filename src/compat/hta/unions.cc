#include "compat/hta/unions.h"

#include <algorithm>
#include <cmath>
#include <iterator>

namespace stepscope::compat::hta {

std::vector<Span> merged(std::vector<Row> rows) {
  std::stable_sort(rows.begin(), rows.end(), [](const Row& a, const Row& b) { return a.ts < b.ts; });
  std::vector<Span> spans;
  double latest = -INFINITY;
  for (const Row& row : rows) {
    if (spans.empty() || row.ts > latest) {
      spans.push_back({row.ts, row.end()});
    } else {
      spans.back().end = std::max(spans.back().end, row.end());
    }
    latest = std::max(latest, row.end());
  }
  return spans;
}

double total(const std::vector<Span>& spans) {
  double sum = 0;
  for (const Span& span : spans) sum += span.end - span.start;
  return sum;
}

Sweep sweep(const std::vector<std::vector<Span>>& unions) {
  struct Change {
    double time;
    int by;
  };
  std::vector<Change> changes;
  for (std::size_t i = 0; i < unions.size(); i++) {
    for (const Span& span : unions[i]) {
      changes.push_back({span.start, 1 << i});
      changes.push_back({span.end, -(1 << i)});
    }
  }
  std::stable_sort(changes.begin(), changes.end(), [](const Change& a, const Change& b) {
    return a.time != b.time ? a.time < b.time : a.by < b.by;  // ends first: states of no length do not count
  });
  Sweep out{std::vector<double>(std::size_t{1} << unions.size()), std::vector<bool>(std::size_t{1} << unions.size())};
  int active = 0;
  for (std::size_t i = 0; i + 1 < changes.size(); i++) {
    active += changes[i].by;
    if (active <= 0 || static_cast<std::size_t>(active) >= out.time.size()) continue;
    out.time[static_cast<std::size_t>(active)] += changes[i + 1].time - changes[i].time;
    if (changes[i + 1].time > changes[i].time) out.seen[static_cast<std::size_t>(active)] = true;
  }
  return out;
}

std::vector<Row> of_type(const EventTable& table, const std::vector<Row>& rows, KernelType type) {
  std::vector<Row> found;
  std::copy_if(rows.begin(), rows.end(), std::back_inserter(found),
               [&](const Row& row) { return table.type(row) == type; });
  return found;
}

}  // namespace stepscope::compat::hta
