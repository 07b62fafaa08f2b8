// Waits for the device and the events that they wait for. Waits are no work; they stand on the lane of their stream,
// named as Kineto names them.
#include <tuple>

#include "read/nsys_sqlite/parts.h"

namespace stepscope::read::nsys {
namespace {

std::string_view wait_name(std::int64_t type) {
  switch (type) {
    case 1: return "Event Sync";
    case 2: return "Stream Wait Event";
    case 3: return "Stream Sync";
    case 4: return "Context Sync";
    default: return "Sync";
  }
}

struct Recorded {
  std::int64_t stream = kAbsent, correlation = kAbsent;
};

// (process, event, how often it had been recorded) → where it was recorded.
using RecordedEvents = std::map<std::tuple<std::int64_t, std::int64_t, std::int64_t>, Recorded>;

std::int64_t device_of(const ContextDevices& devices, std::int64_t global_pid, std::int64_t context,
                       std::int64_t told) {
  const auto found = devices.find({process_of(global_pid), context});
  return found == devices.end() ? told : found->second;
}

RecordedEvents read_events(Export& file, Traces& traces, const ContextDevices& devices) {
  RecordedEvents recorded;
  enum { time, pid, device, context, stream, correlation, event, sync };
  Scan row(file, name_of(Table::cuda_event),
           {"timestamp", "globalPid", "deviceId", "contextId", "streamId", "correlationId", "eventId", "eventSyncId"},
           0);
  while (row.next()) {
    recorded[{process_of(row[pid]), row[event], row[sync]}] = {id_or_absent(row[stream]), row[correlation]};
    if (row[time] == kAbsent) continue;
    TraceBuilder& out = traces.of(row[pid]);
    const std::int64_t on = device_of(devices, row[pid], row[context], row[device]);
    out.add_instant(Table::cuda_event, row.id(), row[time], out.text("CUDA event"),
                    out.stream(on, id_or_absent(row[stream])), out.category("cuda_event"));
  }
  return recorded;
}

}  // namespace

void read_device_waits(Export& file, Traces& traces, const ContextDevices& devices) {
  const RecordedEvents recorded = read_events(file, traces, devices);
  enum { start, end, pid, device, context, stream, correlation, type, event, sync };
  Scan row(file, name_of(Table::synchronization),
           {"start", "end", "globalPid", "deviceId", "contextId", "streamId", "correlationId", "syncType", "eventId",
            "eventSyncId"},
           2);
  while (row.next()) {
    TraceBuilder& out = traces.of(row[pid]);
    const std::int64_t on = device_of(devices, row[pid], row[context], row[device]);
    const std::int64_t lane = id_or_absent(row[stream]);
    const SliceId slice =
        out.add_slice(Table::synchronization, row.id(), row[start], row[end], out.text(wait_name(row[type])),
                      out.stream(on, lane), out.category("cuda_sync"));
    if (slice == SliceId::none) continue;
    DeviceRow about{.correlation = out.owns(row[pid]) ? row[correlation] : kAbsent, .device = on, .stream = lane};
    const auto found = recorded.find({process_of(row[pid]), row[event], row[sync]});
    if (found != recorded.end()) {
      about.wait_stream = found->second.stream;
      about.wait_correlation = found->second.correlation;
    }
    out.add_device_row(slice, about);
  }
}

}  // namespace stepscope::read::nsys
