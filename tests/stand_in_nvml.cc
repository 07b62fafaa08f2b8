// In place of the NVIDIA driver's library, for tests: what it answers is set by name and GPU through stand_in_set. What
// was not set is not supported. With STAND_IN_OLD it has the entry points of a driver of 2018.
#include <bit>
#include <cstdio>
#include <cstring>
#include <map>
#include <string>

#include "collect/telemetry/nvml.h"

namespace nvml = stepscope::collect::telemetry::nvml;
using nvml::Device;
using nvml::Return;

#define STAND_IN extern "C" __attribute__((visibility("default")))

namespace {

std::map<std::string, long long>& values() {
  static std::map<std::string, long long> all;
  return all;
}

Device handle_of(long long number) { return std::bit_cast<Device>(number); }

// "0", "1"; "0.mig.1" of an instance
std::string name_of(Device device) {
  const auto number = std::bit_cast<long long>(device);
  const std::string gpu = std::to_string(number % 1000 - 1);
  return number < 1000 ? gpu : gpu + ".mig." + std::to_string(number / 1000 - 1);
}

// Answers "NAME.GPU"; a value of "NAME.GPU.error" or "lost.GPU" comes first.
template <class Number>
Return answer(const std::string& name, Device device, Number* into) {
  const std::string key = name + "." + name_of(device);
  if (const auto lost = values().find("lost." + name_of(device)); lost != values().end()) {
    return static_cast<Return>(lost->second);
  }
  if (const auto error = values().find(key + ".error"); error != values().end()) {
    return static_cast<Return>(error->second);
  }
  const auto found = values().find(key);
  if (found == values().end()) return nvml::kNotSupported;
  *into = static_cast<Number>(found->second);
  return nvml::kSuccess;
}

long long plain(const std::string& key, long long otherwise = 0) {
  const auto found = values().find(key);
  return found == values().end() ? otherwise : found->second;
}

Return processes(Device device, unsigned* count, void* infos, std::size_t stride) {
  unsigned running = 0;
  if (const Return result = answer("processes", device, &running); result != nvml::kSuccess) return result;
  const unsigned room = *count;
  *count = running;
  if (running > room) return nvml::kInsufficientSize;
  auto* const bytes = static_cast<unsigned char*>(infos);
  for (unsigned i = 0; i < running; i++) {
    const std::string key = name_of(device) + "." + std::to_string(i);
    const auto pid = static_cast<unsigned>(plain("pid." + key));
    const auto used = static_cast<unsigned long long>(plain("used." + key));
    const unsigned none[2] = {0xFFFFFFFF, 0xFFFFFFFF};
    const unsigned long long guarded = 0;
    std::memcpy(bytes + i * stride, &pid, sizeof pid);
    std::memcpy(bytes + i * stride + 8, &used, sizeof used);
    if (stride >= 24) std::memcpy(bytes + i * stride + 16, none, sizeof none);
    if (stride >= 32) std::memcpy(bytes + i * stride + 24, &guarded, sizeof guarded);
  }
  return nvml::kSuccess;
}

}  // namespace

STAND_IN void stand_in_set(const char* key, long long value) { values()[key] = value; }
STAND_IN void stand_in_unset(const char* key) { values().erase(key); }
STAND_IN void stand_in_clear() { values().clear(); }
STAND_IN long long stand_in_get(const char* key) { return plain(key); }

STAND_IN Return nvmlInit_v2() {
  values()["open"]++;
  return static_cast<Return>(plain("init.error"));
}
STAND_IN Return nvmlShutdown() {
  values()["open"]--;
  return nvml::kSuccess;
}
STAND_IN const char* nvmlErrorString(Return) { return "Stand-in Error"; }
STAND_IN Return nvmlDeviceGetCount_v2(unsigned* count) {
  *count = static_cast<unsigned>(plain("gpus"));
  return nvml::kSuccess;
}
STAND_IN Return nvmlDeviceGetHandleByIndex_v2(unsigned index, Device* device) {
  *device = handle_of(index + 1);
  return static_cast<Return>(plain("handle." + std::to_string(index) + ".error"));
}
STAND_IN Return nvmlDeviceGetName(Device, char* text, unsigned bytes) {
  std::snprintf(text, bytes, "Stand-in H100");
  return nvml::kSuccess;
}
STAND_IN Return nvmlDeviceGetUUID(Device device, char* text, unsigned bytes) {
  std::snprintf(text, bytes, "GPU-%s", name_of(device).c_str());
  return nvml::kSuccess;
}
STAND_IN Return nvmlDeviceGetUtilizationRates(Device device, nvml::Utilization* into) {
  if (const Return result = answer("utilization", device, &into->gpu); result != nvml::kSuccess) return result;
  return answer("memory_utilization", device, &into->memory);
}
STAND_IN Return nvmlDeviceGetMemoryInfo(Device device, nvml::Memory* into) {
  into->total = 1000;
  if (const Return result = answer("used", device, &into->used); result != nvml::kSuccess) return result;
  into->used += 100;  // kept by the driver
  into->free = into->total - into->used;
  return nvml::kSuccess;
}
STAND_IN Return nvmlDeviceGetPowerUsage(Device device, unsigned* into) { return answer("power", device, into); }
STAND_IN Return nvmlDeviceGetTotalEnergyConsumption(Device device, unsigned long long* into) {
  return answer("energy", device, into);
}
STAND_IN Return nvmlDeviceGetEnforcedPowerLimit(Device device, unsigned* into) {
  return answer("power_limit", device, into);
}
STAND_IN Return nvmlDeviceGetClockInfo(Device device, int domain, unsigned* into) {
  return answer("clock" + std::to_string(domain), device, into);
}
STAND_IN Return nvmlDeviceGetTemperature(Device device, int, unsigned* into) {
  return answer("temperature", device, into);
}
STAND_IN Return nvmlDeviceGetTotalEccErrors(Device device, int kind, int counter, unsigned long long* into) {
  return answer("ecc" + std::to_string(kind) + std::to_string(counter), device, into);
}
STAND_IN Return nvmlDeviceGetPcieReplayCounter(Device device, unsigned* into) {
  return answer("replays", device, into);
}

#ifdef STAND_IN_OLD

STAND_IN Return nvmlDeviceGetCurrentClocksThrottleReasons(Device device, unsigned long long* into) {
  return answer("reasons", device, into);
}
STAND_IN Return nvmlDeviceGetComputeRunningProcesses(Device device, unsigned* count, void* infos) {
  return processes(device, count, infos, 16);
}

#else

STAND_IN Return nvmlDeviceGetMemoryInfo_v2(Device device, nvml::Memory2* into) {
  if (into->version != ((2U << 24) | 40)) return 25;  // NVML_ERROR_ARGUMENT_VERSION_MISMATCH
  into->total = 1000;
  into->reserved = 100;
  if (const Return result = answer("used", device, &into->used); result != nvml::kSuccess) return result;
  into->free = into->total - into->used - into->reserved;
  return nvml::kSuccess;
}
STAND_IN Return nvmlDeviceGetCurrentClocksEventReasons(Device device, unsigned long long* into) {
  return answer("reasons", device, into);
}
STAND_IN Return nvmlDeviceGetComputeRunningProcesses_v3(Device device, unsigned* count, void* infos) {
  return processes(device, count, infos, static_cast<std::size_t>(plain("stride", 24)));
}
STAND_IN Return nvmlDeviceGetFieldValues(Device device, int count, nvml::FieldValue* fields) {
  long long here = 0;
  const Return lost = answer("none", device, &here);
  if (nvml::is_gone(lost)) return lost;
  for (int i = 0; i < count; i++) {
    const std::string key = "field" + std::to_string(fields[i].field);
    fields[i].type = static_cast<unsigned>(plain(key + ".type", 3));
    unsigned long long number = 0;
    fields[i].result = answer(key, device, &number);
    if (fields[i].type == 0) {
      fields[i].value.as_double = static_cast<double>(number);
    } else {
      fields[i].value.as_unsigned_long_long = number;
    }
  }
  return nvml::kSuccess;
}
STAND_IN Return nvmlDeviceGetMaxMigDeviceCount(Device device, unsigned* into) {
  return answer("most_mig", device, into);
}
STAND_IN Return nvmlDeviceGetMigDeviceHandleByIndex(Device device, unsigned index, Device* into) {
  const auto number = std::bit_cast<long long>(device);
  if (plain("mig." + name_of(device) + "." + std::to_string(index)) == 0) return 6;  // NVML_ERROR_NOT_FOUND
  *into = handle_of(number + 1000LL * (index + 1));
  return nvml::kSuccess;
}

namespace {
struct Taken {
  Device device;
  long long turn;
};
}  // namespace

STAND_IN Return nvmlGpmQueryDeviceSupport(Device device, nvml::GpmSupport* into) {
  if (into->version != 1) return 25;
  into->is_supported = static_cast<unsigned>(plain("gpm." + name_of(device)));
  return nvml::kSuccess;
}
STAND_IN Return nvmlGpmSampleAlloc(nvml::GpmSample* into) {
  values()["gpm_buffers"]++;
  *into = reinterpret_cast<nvml::GpmSample>(new Taken{});
  return nvml::kSuccess;
}
STAND_IN Return nvmlGpmSampleFree(nvml::GpmSample sample) {
  values()["gpm_buffers"]--;
  delete reinterpret_cast<Taken*>(sample);
  return nvml::kSuccess;
}
STAND_IN Return nvmlGpmSampleGet(Device device, nvml::GpmSample sample) {
  long long allowed = 0;
  if (const Return result = answer("gpm", device, &allowed); result != nvml::kSuccess) return result;
  *reinterpret_cast<Taken*>(sample) = {device, ++values()["gpm_turns"]};
  return nvml::kSuccess;
}
STAND_IN Return nvmlGpmMetricsGet(nvml::GpmMetrics* asked) {
  const auto* const first = reinterpret_cast<const Taken*>(asked->first);
  const auto* const second = reinterpret_cast<const Taken*>(asked->second);
  if (asked->version != 1 || first->device != second->device || first->turn >= second->turn) return 2;
  for (unsigned i = 0; i < asked->count; i++) {
    nvml::GpmMetric& metric = asked->metrics[i];
    long long number = 0;
    metric.result = answer("metric" + std::to_string(metric.metric), first->device, &number);
    metric.value = number == -1 ? __builtin_nan("") : static_cast<double>(number);
  }
  return nvml::kSuccess;
}

#endif
