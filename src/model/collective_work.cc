#include "model/collective_work.h"

#include <algorithm>
#include <array>
#include <string>
#include <utility>
#include <vector>

#include "base/text_parts.h"
#include "model/element_types.h"
#include "model/input_text.h"

namespace stepscope {
namespace {

constexpr int kMaxClimb = 16;  // record_param_comms stands a few levels above the launch

std::uint32_t row_of(const Trace& trace, SliceId slice) {
  const auto& slices = trace.collectives.slice;
  const SliceId* at = std::lower_bound(slices.begin(), slices.end(), slice);
  return at != slices.end() && *at == slice ? static_cast<std::uint32_t>(at - slices.begin()) : kNoCollective;
}

std::uint32_t row_above(const Trace& trace, SliceId slice) {
  for (int i = 0; i < kMaxClimb && slice != SliceId::none; i++, slice = trace.slices.parent[slice]) {
    if (const std::uint32_t row = row_of(trace, slice); row != kNoCollective) return row;
  }
  return kNoCollective;
}

}  // namespace

std::string_view to_string(CollectiveKind kind) {
  static constexpr std::array<std::string_view, kCollectiveKinds> names{
      "all-reduce", "all-gather", "reduce-scatter", "all-to-all", "broadcast", "reduce",
      "send",       "receive",    "gather",         "scatter",    "barrier",   "other"};
  return names[static_cast<std::size_t>(kind)];
}

CollectiveKind collective_kind(std::string_view recorded) {
  static constexpr std::array<std::pair<std::string_view, CollectiveKind>, 12> kinds{{
      {"allreduce", CollectiveKind::all_reduce},
      {"allgather", CollectiveKind::all_gather},
      {"reducescatter", CollectiveKind::reduce_scatter},
      {"alltoall", CollectiveKind::all_to_all},
      {"broadcast", CollectiveKind::broadcast},
      {"reduce", CollectiveKind::reduce},
      {"gather", CollectiveKind::gather},
      {"scatter", CollectiveKind::scatter},
      {"sendrecv", CollectiveKind::other},  // one kernel for both directions
      {"send", CollectiveKind::send},
      {"recv", CollectiveKind::receive},
      {"barrier", CollectiveKind::barrier},
  }};
  const std::string text = lower_letters(recorded);
  for (const auto& [word, kind] : kinds) {
    if (text.find(word) != std::string::npos) return kind;
  }
  return CollectiveKind::other;
}

namespace {

constexpr std::int64_t kMostBytes = std::int64_t{1} << 56;  // nonsense in a damaged file must not overflow sums

// Types of tensors are "Tensor(float)", "GenericList[Tensor(float),…]", or "float" in timelines.
std::optional<std::int64_t> size_of_type(std::string_view type) {
  if (const std::size_t open = type.find("Tensor("); open != type.npos) {
    const std::size_t begin = open + 7;
    type = type.substr(begin, type.find(')', begin) - begin);
  }
  return recorded_element_bytes(type);
}

// Numbers, texts and objects begin with a capital letter, or have no type.
bool holds_tensors(std::string_view type) {
  return type.find("Tensor") != type.npos || (!type.empty() && type[0] >= 'a' && type[0] <= 'z');
}

std::optional<std::int64_t> elements_of(const Sizes& sizes) {
  std::int64_t count = 1;
  for (const std::int64_t size : sizes) {
    if (size < 0 || (size > 0 && count > kMostBytes / size)) return std::nullopt;
    count *= size;
  }
  return count;
}

std::optional<std::int64_t> elements_of(const Shape& shape) {
  if (shape.list.empty()) return elements_of(shape.sizes);
  std::int64_t sum = 0;
  for (const Sizes& sizes : shape.list) {
    const auto count = elements_of(sizes);
    if (!count || *count > kMostBytes - sum) return std::nullopt;
    sum += *count;
  }
  return sum;
}

}  // namespace

std::optional<std::int64_t> largest_input_bytes(std::string_view dims, std::string_view types) {
  const std::vector<Shape> shapes = parse_shapes(dims);
  const std::vector<std::string> kinds = parse_texts(types);
  std::optional<std::int64_t> bytes;
  for (std::size_t i = 0; i < shapes.size() && i < kinds.size(); i++) {
    // a timeline names a list of tensors, but not their type
    if (!holds_tensors(kinds[i])) continue;
    const auto count = elements_of(shapes[i]), size = size_of_type(kinds[i]);
    if (!count || !size || *count > kMostBytes / *size) return std::nullopt;
    bytes = std::max(bytes.value_or(0), *count * *size);
  }
  return bytes;
}

std::optional<std::int64_t> collective_bytes(const Trace& trace, std::uint32_t collective) {
  const Collectives& rows = trace.collectives;
  const auto size = recorded_element_bytes(trace.strings[rows.dtype[collective]]);
  if (!size) return std::nullopt;
  const std::int64_t in = rows.in_elements[collective], out = rows.out_elements[collective];
  const std::int64_t ranks = std::clamp<std::int64_t>(rows.group_size[collective], 1, 1 << 20);
  const auto of_all = [&](std::int64_t one) { return one < kMostBytes / ranks ? one * ranks : kMostBytes + 1; };
  std::int64_t elements = kAbsent;
  switch (collective_kind(trace.strings[rows.kind[collective]])) {
    case CollectiveKind::all_gather:
    case CollectiveKind::receive:
    case CollectiveKind::reduce_scatter: elements = std::max(in, out); break;
    // only the root has the full buffer
    case CollectiveKind::gather: elements = in == kAbsent ? out : std::max(out, of_all(in)); break;
    case CollectiveKind::scatter: elements = out == kAbsent ? in : std::max(in, of_all(out)); break;
    default: elements = in != kAbsent ? in : out; break;
  }
  if (elements < 0 || elements > kMostBytes) return std::nullopt;
  return elements * *size;
}

std::optional<double> bus_factor(CollectiveKind kind, std::int64_t n) {
  if (n < 1) return std::nullopt;
  const double ranks = static_cast<double>(n);
  switch (kind) {
    case CollectiveKind::all_reduce: return 2 * (ranks - 1) / ranks;
    case CollectiveKind::all_gather:
    case CollectiveKind::reduce_scatter:
    case CollectiveKind::gather:
    case CollectiveKind::scatter:
    case CollectiveKind::all_to_all: return (ranks - 1) / ranks;
    case CollectiveKind::broadcast:
    case CollectiveKind::reduce:
    case CollectiveKind::send:
    case CollectiveKind::receive: return 1;
    default: return std::nullopt;
  }
}

std::uint32_t host_collective_of(const Trace& trace, std::uint32_t row) {
  return trace.collectives.size() == 0 ? kNoCollective : row_above(trace, trace.device.op[row]);
}

std::uint32_t collective_of(const Trace& trace, std::uint32_t row) {
  if (trace.collectives.size() == 0) return kNoCollective;
  if (const std::uint32_t own = row_of(trace, trace.device.slice[row]); own != kNoCollective) return own;
  return row_above(trace, trace.device.op[row]);
}

}  // namespace stepscope
