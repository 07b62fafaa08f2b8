#include "snapshot/class_curves.h"

#include <algorithm>
#include <iterator>
#include <map>
#include <utility>

#include "snapshot/byte_sums.h"

namespace stepscope::snapshot {
namespace {

std::vector<std::uint32_t> fullest_moments(const std::vector<std::int64_t>& held, std::size_t pieces) {
  std::vector<std::uint32_t> moments;
  const std::size_t step = std::max<std::size_t>(1, (held.size() + pieces - 1) / pieces);
  for (std::size_t first = 0; first < held.size(); first += step) {
    const auto begin = held.begin() + static_cast<std::ptrdiff_t>(first);
    const auto end = held.begin() + static_cast<std::ptrdiff_t>(std::min(first + step, held.size()));
    moments.push_back(static_cast<std::uint32_t>(std::max_element(begin, end) - held.begin()));
  }
  const auto last = static_cast<std::uint32_t>(held.size() - 1);
  if (moments.back() != last) moments.push_back(last);
  return moments;
}

std::int64_t sum_of(const ClassCurve& curve) {
  std::int64_t sum = 0;
  for (const std::int64_t bytes : curve.bytes) sum = plus(sum, bytes);
  return sum;
}

// By name: several classes with evidence of their own may be called the same.
std::map<std::string, std::vector<std::int64_t>> bytes_by_name(const AllocatorHistory& history,
                                                               const SnapshotDevice& device,
                                                               const std::vector<std::uint32_t>& moments) {
  const auto place = [&](std::uint32_t moment) {  // of the first that is not before it
    return static_cast<std::size_t>(std::lower_bound(moments.begin(), moments.end(), moment) - moments.begin());
  };
  std::map<std::string, std::vector<std::int64_t>> all;
  std::vector<std::vector<std::int64_t>*> of_class(history.classes.size());
  for (std::size_t i = 0; i < of_class.size(); i++) of_class[i] = &all[history.classes[i].name];
  const Allocations& rows = history.allocations;
  for (std::uint32_t i = device.allocations.first; i < device.allocations.first + device.allocations.count; i++) {
    std::vector<std::int64_t>& changes = *of_class[rows.of_class[i]];
    changes.resize(moments.size() + 1);
    const std::size_t begin = place(rows.begin[i]), end = rows.end[i] == kNever ? moments.size() : place(rows.end[i]);
    changes[begin] = plus(changes[begin], rows.bytes[i]);
    changes[end] = plus(changes[end], -rows.bytes[i]);
  }
  for (auto& [name, changes] : all) {
    for (std::size_t i = 1; i < changes.size(); i++) changes[i] = plus(changes[i], changes[i - 1]);
    if (!changes.empty()) changes.pop_back();
  }
  return all;
}

}  // namespace

ClassCurves class_curves(const AllocatorHistory& history, const SnapshotDevice& device,
                         const std::vector<std::int64_t>& held, std::size_t pieces, std::size_t most_classes) {
  ClassCurves out{.moments = fullest_moments(held, pieces)};
  for (auto& [name, bytes] : bytes_by_name(history, device, out.moments)) {
    if (std::any_of(bytes.begin(), bytes.end(), [](std::int64_t one) { return one != 0; }))
      out.classes.push_back({name, std::move(bytes)});
  }
  std::stable_sort(out.classes.begin(), out.classes.end(),
                   [](const ClassCurve& a, const ClassCurve& b) { return sum_of(a) > sum_of(b); });
  if (out.classes.size() <= most_classes + 1) return out;
  ClassCurve rest{"other classes", std::vector<std::int64_t>(out.moments.size())};
  for (std::size_t i = most_classes; i < out.classes.size(); i++) {
    for (std::size_t m = 0; m < rest.bytes.size(); m++) rest.bytes[m] = plus(rest.bytes[m], out.classes[i].bytes[m]);
  }
  out.classes.resize(most_classes);
  out.classes.push_back(std::move(rest));
  return out;
}

}  // namespace stepscope::snapshot
