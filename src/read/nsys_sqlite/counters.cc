// Sampled values: GPU metrics, network adapters, and each change of device memory.
#include <unordered_map>

#include "read/nsys_sqlite/parts.h"

namespace stepscope::read::nsys {
namespace {

// What a counter is called, by the two numbers that name it.
using MetricNames = std::map<std::pair<std::int64_t, std::int64_t>, std::string>;

MetricNames gpu_metric_names(Export& file) {
  MetricNames names;
  Scan row(file, "TARGET_INFO_GPU_METRICS", {"typeId", "metricId", "metricName"}, 3);
  while (row.next()) names[{row[0], row[1]}] = std::string(row.text(2));
  return names;
}

std::string name_or_number(const MetricNames& names, std::int64_t a, std::int64_t b) {
  const auto found = names.find({a, b});
  return found == names.end() ? "metric " + std::to_string(b) : found->second;
}

// One lane and name of a counter, found once for its many samples.
struct Place {
  TraceBuilder* out = nullptr;
  TrackId track = TrackId::none;
  StringId name = StringId::none, key = StringId::none;
};
using Places = std::map<std::pair<std::int64_t, std::int64_t>, Place>;

void read_gpu_metrics(Export& file, Traces& traces) {
  const MetricNames names = gpu_metric_names(file);
  Places places;
  enum { time, type, metric, value };
  Scan row(file, name_of(Table::gpu_metrics), {"timestamp", "typeId", "metricId", "value"}, 4);
  while (row.next()) {
    Place& at = places[{row[type], row[metric]}];
    if (at.out == nullptr) {
      const std::int64_t device = row[type] & 0xff;
      at.out = &traces.of_device(device);
      at.track = at.out->lane(std::to_string(device), "GPU metrics");
      at.name = at.out->text(name_or_number(names, row[type], row[metric]));
      at.key = at.out->text("value");
    }
    at.out->add_counter(row[time], at.name, at.key, at.track, row.real(value));
  }
}

std::unordered_map<std::int64_t, std::string> adapter_names(Export& file) {
  std::unordered_map<std::int64_t, std::string> by_number, by_id;
  Scan adapter(file, "TARGET_INFO_NIC_INFO", {"nicId", "name"}, 2);
  while (adapter.next()) by_number[adapter[0]] = std::string(adapter.text(1));
  Scan id(file, "NIC_ID_MAP", {"nicId", "globalId"}, 2);
  while (id.next()) by_id[id[1]] = by_number.contains(id[0]) ? by_number[id[0]] : "NIC " + std::to_string(id[0]);
  return by_id;
}

void read_nic_metrics(Export& file, Traces& traces) {
  MetricNames names;
  Scan metric(file, "TARGET_INFO_NETWORK_METRICS", {"metricsListId", "metricsIdx", "name"}, 3);
  while (metric.next()) names[{metric[0], metric[1]}] = std::string(metric.text(2));
  const auto adapters = adapter_names(file);
  std::map<std::tuple<std::int64_t, std::int64_t, std::int64_t>, Place> places;
  enum { start, adapter, list, index, value };
  Scan row(file, name_of(Table::nic_metric), {"start", "globalId", "metricsListId", "metricsIdx", "value"}, 5);
  while (row.next()) {
    Place& at = places[{row[adapter], row[list], row[index]}];
    if (at.out == nullptr) {
      const auto known = adapters.find(row[adapter]);
      at.out = &traces.first();
      at.track = at.out->lane(known == adapters.end() ? "NIC" : known->second, "network metrics");
      at.name = at.out->text(name_or_number(names, row[list], row[index]));
      at.key = at.out->text("value");
    }
    at.out->add_counter(row[start], at.name, at.key, at.track, row.real(value));
  }
}

void read_memory(Export& file, Traces& traces) {
  constexpr std::int64_t kFree = 1, kDeviceMemory = 2;
  constexpr std::int16_t kCuda = 1;  // c10::DeviceType
  enum { time, pid, device, address, bytes, operation, kind };
  Scan row(file, name_of(Table::memory_usage),
           {"start", "globalPid", "deviceId", "address", "bytes", "memoryOperationType", "memKind"}, 1);
  while (row.next()) {
    const bool on_device = row[kind] == kAbsent || row[kind] == kDeviceMemory;
    if (!on_device || row[time] == kAbsent || row[bytes] < 0) continue;
    traces.of(row[pid]).add_memory({.time_ns = row[time],
                                    .bytes = row[operation] == kFree ? -row[bytes] : row[bytes],
                                    .address = row[address],
                                    .device = row[device],
                                    .device_type = kCuda});
  }
}

}  // namespace

void read_counters(Export& file, Traces& traces) {
  read_gpu_metrics(file, traces);
  read_nic_metrics(file, traces);
  read_memory(file, traces);
}

}  // namespace stepscope::read::nsys
