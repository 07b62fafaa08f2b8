// What an export says about the machine: devices, names of processes and threads, the clock, its own version.
//
// The environment of the program stands in an export too (META_DATA_CAPTURE, TARGET_INFO_SYSTEM_ENV) and may hold keys
// and passwords: only the few facts named here are taken from it.
#include <algorithm>
#include <map>
#include <set>

#include "read/nsys_sqlite/parts.h"
#include "run/json_text.h"

namespace stepscope::read::nsys {
namespace {

using Facts = std::map<std::string, std::string, std::less<>>;

Facts facts_of(Export& file, std::string_view table) {
  Facts facts;
  Scan row(file, table, {"name", "value"}, 2);
  while (row.next()) facts.try_emplace(std::string(row.text(0)), row.text(1));
  return facts;
}

std::string_view fact(const Facts& facts, std::string_view name) {
  const auto found = facts.find(name);
  return found == facts.end() ? std::string_view() : found->second;
}

std::int64_t known(std::int64_t number) { return number < 0 ? 0 : number; }

// By nsys's own number of the GPU.
std::map<std::int64_t, DeviceInfo> devices_of(Export& file) {
  std::map<std::int64_t, DeviceInfo> devices;
  enum { id, name, sms, warps, threads, memory, major, minor };
  Scan row(file, "TARGET_INFO_GPU",
           {"id", "name", "smCount", "maxWarpsPerSm", "threadsPerWarp", "totalMemory", "computeMajor", "computeMinor"},
           1);
  while (row.next()) {
    DeviceInfo info;
    info.id = row[id];
    info.name = std::string(row.text(name));
    info.sm_count = known(row[sms]);
    info.warp_size = known(row[threads]);
    if (info.warp_size < 1024 && known(row[warps]) < 1024) info.max_threads_per_sm = info.warp_size * known(row[warps]);
    info.memory_bytes = known(row[memory]);
    info.compute_major = known(row[major]);
    info.compute_minor = known(row[minor]);
    devices[info.id] = std::move(info);
  }
  return devices;
}

// A process may see its GPUs under other numbers than nsys (CUDA_VISIBLE_DEVICES).
void give_devices(Export& file, Traces& traces) {
  const auto devices = devices_of(file);
  std::map<std::pair<std::int64_t, std::int64_t>, std::int64_t> seen;  // (pid, number in the process) → nsys's number
  Scan row(file, "TARGET_INFO_CUDA_DEVICE", {"gpuId", "cudaId", "pid"}, 3);
  while (row.next()) seen[{row[2], row[1]}] = row[0];
  for (const auto& each : traces.all()) {
    TraceBuilder& out = *each;
    const auto span = out.trace.device.device.span();
    const std::set<std::int64_t> used(span.begin(), span.end());
    const std::int64_t pid = out.process() == kAbsent ? kAbsent : out.process() & 0xffffff;
    for (const std::int64_t number : used) {
      const auto mapped = seen.find({pid, number});
      const auto found = devices.find(mapped == seen.end() ? number : mapped->second);
      if (found == devices.end()) continue;
      out.trace.devices.push_back(found->second);
      out.trace.devices.back().id = number;
    }
  }
}

void name_tracks(Export& file, Traces& traces) {
  std::unordered_map<std::int64_t, std::string> processes;
  std::unordered_map<std::int64_t, std::int64_t> threads;
  Scan process(file, "PROCESSES", {"globalPid", "name"}, 2);
  while (process.next()) processes[process_of(process[0])] = std::string(process.text(1));
  Scan thread(file, "ThreadNames", {"globalTid", "nameId"}, 2);
  while (thread.next()) threads[thread[0]] = thread[1];
  for (const auto& out : traces.all()) out->finish(processes, threads);
}

// Times count from the start of the session, unless the export was asked for times since 1970.
std::int64_t clock_base(Export& file, const Facts& about) {
  if (fact(about, "EXPORT_PARAM_TIME_NORMALIZE") == "true") return 0;
  const std::string_view shift = fact(about, "EXPORT_PARAM_TIME_SHIFT");
  if (!shift.empty() && shift != "0") return kAbsent;
  Scan row(file, "TARGET_INFO_SESSION_START_TIME", {"utcEpochNs"}, 1);
  return row.next() ? row[0] : kAbsent;
}

}  // namespace

void read_about(Export& file, Traces& traces) {
  Facts about = facts_of(file, "META_DATA_EXPORT");
  about.merge(facts_of(file, "EXPORT_META_DATA"));  // its name before 2023.2
  const Facts system = facts_of(file, "TARGET_INFO_SYSTEM_ENV");
  const std::int64_t base = clock_base(file, about);
  give_devices(file, traces);
  name_tracks(file, traces);
  for (const auto& out : traces.all()) {
    Trace& trace = out->trace;
    trace.clock_base_ns = base;
    const auto add = [&](const char* key, std::string_view value) {
      if (!value.empty()) trace.metadata.push_back({key, run::json_string(value)});
    };
    add("nsys_version", fact(about, "EXPORT_PRODUCT_VERSION"));
    add("nsys_schema", fact(about, "EXPORT_SCHEMA_VERSION"));
    add("hostname", fact(system, "Hostname"));
    add("cuda_driver_version", fact(system, "CudaDriverVersion"));
  }
}

}  // namespace stepscope::read::nsys
