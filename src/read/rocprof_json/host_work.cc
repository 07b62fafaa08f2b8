// What ran on host threads: calls of HIP, HSA and libraries, ROCTx, scratch memory, and device memory as it was
// allocated.
#include <algorithm>

#include "read/rocprof_json/process.h"

namespace stepscope::read::rocprof {
namespace {

struct CallKind {
  std::string_view category;
  SliceKind kind;
};

// HIP's two parts and HSA below it are the runtime; what libraries offer are no parts of it.
CallKind call_kind(std::string_view table, std::string_view kind) {
  if (kind.starts_with("HIP_COMPILER")) return {"hip_compiler", SliceKind::runtime};
  if (table == "hip_api") return {"hip_runtime", SliceKind::runtime};
  if (table == "hsa_api") return {"hsa_api", SliceKind::runtime};
  return {table, SliceKind::other};
}

bool has(std::string_view name, std::string_view part) { return name.find(part) != name.npos; }

}  // namespace

void Process::take_call(std::string_view table, const Record& record, std::uint64_t place) {
  const CallKind is = call_kind(table, names_.kind(record));
  const std::string_view name = operation_of(record);
  const Times times = times_of(record["start_timestamp"], record["end_timestamp"]);
  const SliceId slice =
      add_slice(place, times.start_ns, times.end_ns, text(name), thread(record), category(is.category, is.kind));
  const Field ids = record["correlation_id"];
  const std::int64_t correlation = integer(ids["internal"]);
  if (slice == SliceId::none || is.kind != SliceKind::runtime || correlation == kAbsent) return;
  add_launch(slice, correlation);
  const std::int64_t caller = integer(ids["ancestor"]);
  if (caller > 0 && has(name, "memory_")) callers_[correlation] = caller;
}

// A copy carries the id of the innermost call, which is HSA's where HSA was recorded too; who asked for the copy is the
// call of HIP around it, if that was recorded.
void Process::link_through_hsa() {
  std::unordered_set<std::int64_t> asked;
  for (const auto& [call, caller] : callers_) asked.insert(caller);
  std::unordered_set<std::int64_t> recorded;
  for (std::size_t row = 0; row < trace.launches.size() && !asked.empty(); row++) {
    const std::int64_t id = trace.launches.correlation[row];
    if (asked.contains(id)) recorded.insert(id);
  }
  if (recorded.empty()) return;
  NarrowColumn ids;
  for (std::size_t row = 0; row < trace.device.size(); row++) {
    const std::int64_t id = trace.device.correlation[row];
    const auto caller = callers_.find(id);
    ids.push_back(caller != callers_.end() && recorded.contains(caller->second) ? caller->second : id);
  }
  trace.device.correlation = std::move(ids);
}

// Ranges of a thread nest; those of the process may end on another thread, so they lie on a lane of their own.
void Process::take_marker(const Record& record, std::uint64_t place) {
  const std::string_view operation = operation_of(record);
  const Times times = times_of(record["start_timestamp"], record["end_timestamp"]);
  const std::string_view message = names_.marker(integer(record["correlation_id"]["internal"]));
  const RangeName range = range_name(message.empty() ? operation : message);
  const CategoryId annotation = category(is_operator(range) ? "cpu_op" : "user_annotation");
  if (has(operation, "Mark")) {
    add_instant(place, times.start_ns, text(range.name), thread(record), annotation);
    return;
  }
  const bool of_process = has(operation, "RangeStart") || has(operation, "ProcessRange");
  if (!of_process && !has(operation, "RangePush") && !has(operation, "ThreadRange")) {
    add_slice(place, times.start_ns, times.end_ns, text(operation), thread(record), category("roctx"));
    return;
  }
  if (times.end_ns == 0) {
    trace.source.events++;
    note("open_range", Severity::lost, "ROCTx ranges that had not ended with the recording were left out", "", place);
    return;
  }
  const SliceId slice = add_slice(place, times.start_ns, times.end_ns, text(range.name),
                                  thread(record, of_process ? " ranges" : ""), annotation);
  if (slice != SliceId::none && range.annotated()) add_op(slice, range);
}

void Process::take_scratch(const Record& record, std::uint64_t place) {
  const std::int64_t queue = integer(record["queue_id"]);
  const std::string lane_name = "scratch memory" + (queue == kAbsent ? "" : " of queue " + std::to_string(queue));
  const Times times = times_of(record["start_timestamp"], record["end_timestamp"]);
  add_slice(place, times.start_ns, times.end_ns, text(operation_of(record)), lane(pid_, lane_name),
            category("scratch_memory"));
}

void Process::take_allocation(const Record& record) {
  constexpr std::int16_t kHost = 0, kHip = 6;  // of c10::DeviceType
  const std::int64_t device = device_of(record["agent_id"]);
  Allocation& added = allocations_.emplace_back();
  added.frees = has(operation_of(record), "FREE");
  added.row = {.time_ns = times_of(record["start_timestamp"], record["end_timestamp"]).start_ns,
               .bytes = integer(record["allocation_size"]),
               .address = integer(record["address"]),
               .device = device,
               .device_type = device == kAbsent ? kHost : kHip};
}

// A free tells the address alone: bytes and device are those of its allocation.
void Process::add_allocations() {
  std::stable_sort(allocations_.begin(), allocations_.end(),
                   [](const Allocation& a, const Allocation& b) { return a.row.time_ns < b.row.time_ns; });
  std::unordered_map<std::int64_t, MemoryRow> alive;
  for (const Allocation& each : allocations_) {
    MemoryRow row = each.row;
    if (!each.frees && row.bytes < 0) {
      note("allocation_without_bytes", Severity::lost, "allocations of unknown size were left out");
      continue;
    }
    if (each.frees) {
      const auto from = alive.find(row.address);
      if (from == alive.end()) {
        trace.source.events++;
        note("unknown_free", Severity::info, "frees of memory that was not allocated in the recording were left out");
        continue;
      }
      row.bytes = -from->second.bytes;
      row.device = from->second.device;
      row.device_type = from->second.device_type;
      alive.erase(from);
    } else {
      alive[row.address] = row;
    }
    add_memory(row);
  }
  allocations_ = {};
}

}  // namespace stepscope::read::rocprof
