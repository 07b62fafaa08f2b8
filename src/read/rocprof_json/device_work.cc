// What ran on GPUs: kernels, copies, and the counters of kernels. Copies are named as Kineto names them, so that one
// rule fits both.
//
// A lane is a HIP stream where the tool recorded streams (newer ones do, unless --group-by-queue), else an HSA queue.
#include <array>
#include <map>

#include "read/rocprof_json/process.h"

namespace stepscope::read::rocprof {
namespace {

// Grids are given in work-items, the model wants workgroups.
std::int64_t groups(std::int64_t items, std::int64_t size) {
  return items > 0 && size > 0 ? (items - 1) / size + 1 : 0;
}

// 'D', 'H', or '?' for one that the file does not list.
char side_of(const Agent* agent) { return agent == nullptr ? '?' : agent->gpu ? 'D' : 'H'; }

// "MEMORY_COPY_HOST_TO_DEVICE", or "HOST_TO_DEVICE" in ROCm 6.2 → "HtoD"; without it the two ends tell.
std::string direction_of(std::string_view operation, char from, char to) {
  const std::size_t at = operation.find("_TO_");
  if (at != operation.npos) {
    from = operation.substr(0, at).ends_with("HOST") ? 'H' : 'D';
    to = operation.substr(at).ends_with("HOST") ? 'H' : 'D';
  }
  return from == '?' || to == '?' ? "Unknown" : std::string{from, 't', 'o', to};
}

std::string copy_name(std::string_view operation, const Agent* from, const Agent* to) {
  const std::string direction = direction_of(operation, side_of(from), side_of(to));
  if (direction == "Unknown") return "Memcpy Unknown";
  if (direction == "DtoD" && from != nullptr && to != nullptr && from != to) {
    return "Memcpy PtoP (Device " + std::to_string(from->info.id) + " -> Device " + std::to_string(to->info.id) + ")";
  }
  const auto end = [](char side) { return std::string(side == 'H' ? "Host" : "Device"); };
  return "Memcpy " + direction + " (" + end(direction.front()) + " -> " + end(direction.back()) + ")";
}

}  // namespace

StringId Process::kernel_name(std::int64_t id) {
  const Kernel* kernel = names_.kernel(id);
  if (kernel != nullptr && !kernel->name.empty()) return text(kernel->name);
  note("unknown_kernel", Severity::info, "kernels without a name in the file are shown with their number");
  return text(id == kAbsent ? "kernel" : "kernel " + std::to_string(id));
}

StringId Process::counter_name(std::int64_t id) {
  if (const std::string_view name = names_.counter(id); !name.empty()) return text(name);
  note("unknown_counter", Severity::info, "counters without a name in the file are shown with their number");
  return text("counter " + std::to_string(id));
}

TrackId Process::work_lane(DeviceRow& row, const Field& queue, const Field& stream_id) {
  const std::int64_t number = by_queue_ ? kAbsent : integer(stream_id);
  row.stream = number == kAbsent ? integer(queue) : number;
  return stream(row.device, row.stream, number == kAbsent && row.stream != kAbsent ? "queue" : "stream");
}

SliceId Process::add_kernel(const Dispatch& at, std::uint64_t place) {
  const std::int64_t id = integer(at.info["kernel_id"]);
  const Kernel* kernel = names_.kernel(id);
  DeviceRow row{
      .correlation = integer(at.correlation["internal"]),
      .device = device_of(at.info["agent_id"]),
      .registers = kernel == nullptr || kernel->registers == kAbsent ? integer(at.registers) : kernel->registers,
      .shared_bytes = integer(at.info["group_segment_size"])};
  constexpr std::array<const char*, 3> kAxes{"x", "y", "z"};
  for (std::size_t axis = 0; axis < kAxes.size(); axis++) {
    row.block[axis] = integer(at.info["workgroup_size"][kAxes[axis]]);
    row.grid[axis] = groups(integer(at.info["grid_size"][kAxes[axis]]), row.block[axis]);
  }
  const TrackId track = work_lane(row, at.info["queue_id"], at.stream);
  const SliceId slice =
      add_slice(place, at.times.start_ns, at.times.end_ns, kernel_name(id), track, category("kernel"));
  if (slice != SliceId::none) add_device_row(slice, row);
  return slice;
}

void Process::take_kernel(const Record& record, std::uint64_t place) {
  const Field dispatch = record["dispatch_info"];
  if (counted_.contains(integer(dispatch["dispatch_id"]))) return;
  add_kernel({.info = dispatch,
              .correlation = record["correlation_id"],
              .stream = record["stream_id"],
              .registers = {},
              .times = times_of(record["start_timestamp"], record["end_timestamp"])},
             place);
}

// With counters a kernel is recorded here and, only where kernels were asked for too, once more among the dispatches.
// A counter has a value for each instance of its block (shader engine, cache channel …): the tool itself shows the sum.
void Process::take_counters(const Record& record, std::uint64_t place) {
  const Field data = record["dispatch_data"], dispatch = data["dispatch_info"];
  const Times times = times_of(data["start_timestamp"], data["end_timestamp"]);
  if (times.start_ns == kAbsent) {
    trace.source.events++;
    note("counters_without_time", Severity::lost, "counters of kernels without times were left out",
         "Record with ROCm 6.3 or newer", place);
    return;
  }
  const SliceId kernel = add_kernel({.info = dispatch,
                                     .correlation = data["correlation_id"],
                                     .stream = record["stream_id"],
                                     .registers = record["arch_vgpr_count"],
                                     .times = times},
                                    place);
  if (kernel == SliceId::none) return;
  if (const std::int64_t id = integer(dispatch["dispatch_id"]); id != kAbsent) counted_.insert(id);
  const std::int64_t device = device_of(dispatch["agent_id"]);
  const TrackId track = device_lane(device, "counters");
  const StringId name = trace.slices.name[kernel];
  add_slice(place, times.start_ns, times.end_ns, name, track, category("rocprof_counters", SliceKind::profiler_range));
  simdjson::dom::array values;
  if (record["records"].get(values) != simdjson::SUCCESS) return;
  std::map<std::int64_t, double> sums;
  for (const Record value : values) {
    double number = 0;
    if (value["value"].get(number) == simdjson::SUCCESS) sums[integer(value["counter_id"])] += number;
  }
  for (const auto& [id, sum] : sums) add_counter(times.start_ns, name, counter_name(id), track, sum);
}

void Process::take_copy(const Record& record, std::uint64_t place) {
  const std::int64_t from = device_of(record["src_agent_id"]), to = device_of(record["dst_agent_id"]);
  DeviceRow row{.correlation = integer(record["correlation_id"]["internal"]),
                .device = to == kAbsent ? from : to,
                .bytes = integer(record["bytes"])};
  const TrackId track = work_lane(row, {}, record["stream_id"]);
  const Times times = times_of(record["start_timestamp"], record["end_timestamp"]);
  const StringId name = text(copy_name(names_.operation(record), names_.agent(integer(record["src_agent_id"])),
                                       names_.agent(integer(record["dst_agent_id"]))));
  const SliceId slice = add_slice(place, times.start_ns, times.end_ns, name, track, category("gpu_memcpy"));
  if (slice != SliceId::none) add_device_row(slice, row);
}

}  // namespace stepscope::read::rocprof
