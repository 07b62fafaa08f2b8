#include "read/rocprof_json/process.h"

#include <algorithm>
#include <array>

namespace stepscope::read::rocprof {
namespace {

// The tables of calls, each with a kind of its own in every record.
constexpr std::array<std::string_view, 5> kCalls{"hip_api", "hsa_api", "rccl_api", "rocdecode_api", "rocjpeg_api"};
constexpr std::array<std::string_view, 6> kOthers{"kernel_dispatch",   "memory_copy",    "marker_api",
                                                  "memory_allocation", "scratch_memory", "counter_collection"};

bool one_of(const auto& names, std::string_view name) {
  return std::find(names.begin(), names.end(), name) != names.end();
}

}  // namespace

void Process::take_metadata(const Record& metadata) {
  const auto keep = [&](const char* key, const Field& field) {
    if (given(field)) trace.metadata.push_back({key, simdjson::minify(field.value_unsafe())});
  };
  keep("pid", metadata["pid"]);
  keep("hostname", metadata["node"]["hostname"]);
  keep("command", metadata["command"]);
  keep("init_time", metadata["init_time"]);
  keep("fini_time", metadata["fini_time"]);
  const std::int64_t pid = integer(metadata["pid"]);
  pid_ = pid == kAbsent ? "" : std::to_string(pid);
  const std::string_view program = words(metadata["command"].at(0));
  program_ = program.substr(program.rfind('/') + 1);
  if (metadata["config"]["group_by_queue"].get(by_queue_) != simdjson::SUCCESS) by_queue_ = false;
}

bool Process::shows(std::string_view table) { return one_of(kCalls, table) || one_of(kOthers, table); }

void Process::take(std::string_view table, const Record& record, std::uint64_t place) {
  if (one_of(kCalls, table)) {
    take_call(table, record, place);
  } else if (table == "kernel_dispatch") {
    take_kernel(record, place);
  } else if (table == "counter_collection") {
    take_counters(record, place);
  } else if (table == "memory_copy") {
    take_copy(record, place);
  } else if (table == "marker_api") {
    take_marker(record, place);
  } else if (table == "memory_allocation") {
    take_allocation(record);
  } else if (table == "scratch_memory") {
    take_scratch(record, place);
  }
}

// Times are unsigned in the tool. Both are 0 where it was stopped before it heard of an end.
Process::Times Process::times_of(const Field& start, const Field& end) {
  const Times times{integer(start), integer(end)};
  const bool usable = times.start_ns >= 0 && times.end_ns >= 0 && (times.start_ns > 0 || times.end_ns > 0);
  return usable ? times : Times{kAbsent, kAbsent};
}

std::string_view Process::operation_of(const Record& record) {
  const std::string_view name = names_.operation(record);
  if (!name.empty()) return name;
  note("unknown_operation", Severity::info, "records of a kind or operation that the file does not name");
  return "unknown";
}

std::int64_t Process::device_of(const Field& agent_id) {
  const std::int64_t handle = integer(agent_id);
  const Agent* agent = names_.agent(handle);
  if (agent == nullptr && handle > 0) {
    note("unknown_agent", Severity::info, "records of an agent that the file does not list");
  }
  return agent != nullptr && agent->gpu ? agent->info.id : kAbsent;
}

TrackId Process::thread(const Record& record, std::string_view suffix) {
  const std::int64_t tid = integer(record["thread_id"]);
  if (suffix.empty() && tid == last_tid_ && last_thread_ != TrackId::none) return last_thread_;
  const TrackId track = lane(pid_, (tid == kAbsent ? "" : std::to_string(tid)) + std::string(suffix));
  if (!suffix.empty()) return track;
  last_tid_ = tid;
  return last_thread_ = track;
}

void Process::finish() {
  add_allocations();
  link_through_hsa();
  const StringId own = text(pid_), program = program_.empty() ? StringId::none : text(program_);
  for (Track& track : trace.tracks) {
    if (track.process == own && !track.device) track.process_name = program;
  }
  const auto used = trace.device.device.span();
  for (const auto& [handle, agent] : names_.agents()) {
    if (agent.gpu && std::find(used.begin(), used.end(), agent.info.id) != used.end()) {
      trace.devices.push_back(agent.info);
    }
  }
  std::sort(trace.devices.begin(), trace.devices.end(),
            [](const DeviceInfo& a, const DeviceInfo& b) { return a.id < b.id; });
  note_repaired_texts();
}

}  // namespace stepscope::read::rocprof
