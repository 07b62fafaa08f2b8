#include "model/allocations.h"

#include <algorithm>
#include <array>
#include <map>

#include "base/key_index.h"

namespace stepscope {
namespace {

std::vector<std::uint32_t> by_time(const Trace& trace) {
  std::vector<std::uint32_t> order(trace.memory.size());
  for (std::uint32_t i = 0; i < order.size(); i++) order[i] = i;
  const auto earlier = [&](std::uint32_t a, std::uint32_t b) {
    return trace.memory.time_ns[a] < trace.memory.time_ns[b];
  };
  if (!std::is_sorted(order.begin(), order.end(), earlier)) std::stable_sort(order.begin(), order.end(), earlier);
  return order;
}

void pair_by_address(const Trace& trace, const std::vector<std::uint32_t>& events, DeviceMemory& out) {
  constexpr std::uint32_t kNone = Allocation::never;
  KeyIndex addresses;
  std::vector<std::uint32_t> open;  // per address: its allocation that is not freed yet
  for (std::uint32_t order = 0; order < events.size(); order++) {
    const std::uint32_t event = events[order];
    const std::int64_t bytes = trace.memory.bytes[event];
    const std::uint32_t at = addresses[static_cast<std::uint64_t>(trace.memory.address[event])];
    if (at == open.size()) open.push_back(kNone);
    if (bytes > 0) {
      if (open[at] != kNone) out.lost_frees++;
      open[at] = static_cast<std::uint32_t>(out.allocations.size());
      out.allocations.push_back({.event = event, .order = order});
    } else {
      out.frees++;
      if (open[at] == kNone) {
        out.unknown_frees++;
        out.unknown_freed_bytes -= bytes;
        continue;
      }
      out.allocations[open[at]].freed = order;
      out.allocations[open[at]].free_event = event;
      out.allocations[open[at]].freed_ns = trace.memory.time_ns[event];
      open[at] = kNone;
    }
  }
}

std::int64_t told_bytes(const Trace& trace, std::string_view device) {
  std::int64_t sum = 0;
  for (const HeldBefore& row : trace.held_before) sum += row.device == device ? row.bytes : 0;
  return sum;
}

// The allocator's own totals where it gives any; else what was allocated less what was freed since the beginning,
// raised so far that it never falls below 0, on top of what the program says that it held. Of the host torch only
// counts what was allocated while some profiler ran: where the program told, that is no total.
void draw_curves(const Trace& trace, const std::vector<std::uint32_t>& events, DeviceMemory& out) {
  const MemoryEvents& memory = trace.memory;
  const auto positive = [](const NarrowColumn& column) {
    return [&column](std::uint32_t event) { return column[event] > 0; };
  };
  const std::int64_t told = told_bytes(trace, out.name());
  const bool host = out.type == 0;
  out.absolute = (!host || told == 0) && std::any_of(events.begin(), events.end(), positive(memory.total_allocated));
  const bool reserved = std::any_of(events.begin(), events.end(), positive(memory.total_reserved));
  double sum = 0, lowest = 0;
  for (const std::uint32_t event : events) {
    sum += static_cast<double>(memory.bytes[event]);
    lowest = std::min(lowest, sum);
    const std::int64_t total = memory.total_allocated[event];
    if (!out.absolute) {
      out.allocated.add(memory.time_ns[event], sum);
    } else if (total >= 0) {
      out.allocated.add(memory.time_ns[event], static_cast<double>(total));
    } else {  // one point for each event
      const double before = out.allocated.size() > 0 ? out.allocated.v.back() : 0;
      out.allocated.add(memory.time_ns[event], std::max(0.0, before + static_cast<double>(memory.bytes[event])));
    }
    if (reserved && memory.total_reserved[event] >= 0)
      out.reserved.add(memory.time_ns[event], static_cast<double>(memory.total_reserved[event]));
  }
  if (out.absolute) {
    const auto first =
        std::find_if(events.begin(), events.end(), [&](auto e) { return memory.total_allocated[e] >= 0; });
    out.before_bytes = std::max<std::int64_t>(0, memory.total_allocated[*first] - memory.bytes[*first]);
    return;
  }
  out.before_bytes = told;
  for (double& value : out.allocated.v) value += static_cast<double>(told) - lowest;
}

}  // namespace

std::string DeviceMemory::name() const {
  constexpr std::array<std::pair<int, std::string_view>, 8> kTypes{
      {{0, "cpu"}, {1, "cuda"}, {6, "hip"}, {9, "xla"}, {12, "xpu"}, {13, "mps"}, {19, "mtia"}, {20, "privateuse"}}};
  const auto known = std::find_if(kTypes.begin(), kTypes.end(), [&](const auto& t) { return t.first == type; });
  std::string out = known != kTypes.end() ? std::string(known->second)
                    : type < 0            ? std::string("unknown")
                                          : "type " + std::to_string(type);
  if (index >= 0) out += ":" + std::to_string(index);
  return out;
}

std::vector<DeviceMemory> device_memories(const Trace& trace) {
  std::map<std::pair<std::int16_t, std::int16_t>, std::vector<std::uint32_t>> devices;
  for (const std::uint32_t event : by_time(trace)) {
    const std::int64_t bytes = trace.memory.bytes[event];
    if (bytes == 0 || bytes == kAbsent) continue;
    devices[{trace.memory.device_type[event], trace.memory.device_index[event]}].push_back(event);
  }
  std::vector<DeviceMemory> out;
  for (const auto& [device, events] : devices) {
    DeviceMemory memory{.type = device.first, .index = device.second, .events = events.size()};
    pair_by_address(trace, events, memory);
    draw_curves(trace, events, memory);
    out.push_back(std::move(memory));
  }
  return out;
}

}  // namespace stepscope
