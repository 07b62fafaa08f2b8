#include "model/collective_work.h"

#include <algorithm>
#include <array>
#include <string>
#include <utility>

namespace stepscope {
namespace {

constexpr int kMaxClimb = 16;  // record_param_comms stands a few levels above the launch

// Letters only, lower case, so that "_allgather_base", "ALL_GATHER" and "AllGather" read alike.
std::string letters(std::string_view text) {
  std::string out;
  for (const char c : text) {
    if (c >= 'A' && c <= 'Z') out += static_cast<char>(c - 'A' + 'a');
    if (c >= 'a' && c <= 'z') out += c;
  }
  return out;
}

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
  const std::string text = letters(recorded);
  for (const auto& [word, kind] : kinds) {
    if (text.find(word) != std::string::npos) return kind;
  }
  return CollectiveKind::other;
}

std::optional<std::int64_t> element_bytes(std::string_view dtype) {
  static constexpr std::array<std::pair<std::string_view, std::int64_t>, 26> sizes{{
      {"float", 4},       {"double", 8},     {"half", 2},         {"bfloat", 2},
      {"long", 8},        {"int", 4},        {"short", 2},        {"byte", 1},
      {"char", 1},        {"bool", 1},       {"floatemfn", 1},    {"floatem", 1},
      {"floatemfnuz", 1}, {"floatemuz", 1},  {"complexfloat", 8}, {"complexdouble", 16},
      {"complexhalf", 4}, {"uint", 4},       {"uchar", 1},        {"cfloat", 8},
      {"cdouble", 16},    {"qint", 1},       {"quint", 1},        {"ushort", 2},
      {"ulong", 8},       {"floatemfnz", 1},
  }};
  // Types with a width in their name are not decided by letters alone.
  static constexpr std::array<std::pair<std::string_view, std::int64_t>, 12> exact{{
      {"Float8_e4m3fn", 1},
      {"Float8_e5m2", 1},
      {"Float8_e4m3fnuz", 1},
      {"Float8_e5m2fnuz", 1},
      {"UInt16", 2},
      {"UInt32", 4},
      {"UInt64", 8},
      {"Int8", 1},
      {"UInt8", 1},
      {"Int32", 4},
      {"Int64", 8},
      {"Float8_e8m0fnu", 1},
  }};
  for (const auto& [name, bytes] : exact) {
    if (name == dtype) return bytes;
  }
  const std::string text = letters(dtype);
  for (const auto& [name, bytes] : sizes) {
    if (name == text) return bytes;
  }
  return std::nullopt;
}

std::optional<std::int64_t> collective_bytes(const Trace& trace, std::uint32_t collective) {
  const Collectives& rows = trace.collectives;
  const auto size = element_bytes(trace.strings[rows.dtype[collective]]);
  if (!size) return std::nullopt;
  constexpr std::int64_t kMost = std::int64_t{1} << 56;  // nonsense in a damaged file must not overflow sums
  const std::int64_t in = rows.in_elements[collective], out = rows.out_elements[collective];
  const std::int64_t ranks = std::clamp<std::int64_t>(rows.group_size[collective], 1, 1 << 20);
  const auto of_all = [&](std::int64_t one) { return one < kMost / ranks ? one * ranks : kMost + 1; };
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
  if (elements < 0 || elements > kMost) return std::nullopt;
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
