// The library that comes with the NVIDIA driver, loaded at run time: one build serves machines with and without GPUs.
//
// What of its binary interface is used is declared here, from NVIDIA's reference manual and the nvml.h of CUDA 13 (API
// version 13; layouts compared by offset). It is stable: what changes gets a new version of the function. A function
// that an older driver lacks is a null pointer here.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "base/result.h"

namespace stepscope::collect::telemetry::nvml {

using Device = struct OpaqueDevice*;
using GpmSample = struct OpaqueGpmSample*;

using Return = int;  // nvmlReturn_t
inline constexpr Return kSuccess = 0, kNotSupported = 3, kNoPermission = 4, kInsufficientSize = 7, kDriverNotLoaded = 9,
                        kGpuIsLost = 15, kResetRequired = 16, kOperatingSystem = 17, kVersionMismatch = 18,
                        kGpuNotFound = 28;

struct Utilization {  // nvmlUtilization_t, percent
  unsigned gpu, memory;
};

struct Memory {  // nvmlMemory_t; `used` is with what the driver keeps for itself
  unsigned long long total, free, used;
};

struct Memory2 {  // nvmlMemory_v2_t
  unsigned version;
  unsigned long long total, reserved, free, used;
};
static_assert(sizeof(Memory2) == 40);

struct Temperature {  // nvmlTemperature_v1_t
  unsigned version;
  int sensor;
  int celsius;
};

// A structure that says its version has its size in the low bytes of it (NVML_STRUCT_VERSION).
constexpr unsigned version_of(std::size_t bytes, unsigned version) {
  return static_cast<unsigned>(bytes) | (version << 24);
}

struct FieldValue {  // nvmlFieldValue_t
  unsigned field, scope;
  long long timestamp_us, latency_us;
  unsigned type;  // nvmlValueType_t
  Return result;
  union {
    double as_double;
    int as_int;
    unsigned as_unsigned;
    unsigned long as_unsigned_long;
    unsigned long long as_unsigned_long_long;
    long long as_long_long;
    unsigned short as_unsigned_short;
  } value;
};
static_assert(sizeof(FieldValue) == 40);

struct GpmMetric {  // nvmlGpmMetric_t
  unsigned metric;
  Return result;
  double value;
  const char *short_name, *long_name, *unit;
};

struct GpmMetrics {  // nvmlGpmMetricsGet_t; the header's array grows with its version, only `count` are looked at
  unsigned version, count;
  GpmSample first, second;
  GpmMetric metrics[333];
};

struct GpmSupport {  // nvmlGpmSupport_t
  unsigned version, is_supported;
};

struct Functions {
  Return (*init)();
  Return (*shutdown)();
  const char* (*error_text)(Return);
  Return (*count)(unsigned*);
  Return (*device)(unsigned index, Device*);
  Return (*name)(Device, char*, unsigned bytes);
  Return (*uuid)(Device, char*, unsigned bytes);
  Return (*utilization)(Device, Utilization*);
  Return (*memory)(Device, Memory*);
  Return (*memory2)(Device, Memory2*);
  Return (*power)(Device, unsigned* milliwatts);
  Return (*energy)(Device, unsigned long long* millijoules);
  Return (*power_limit)(Device, unsigned* milliwatts);
  Return (*clock)(Device, int domain, unsigned* megahertz);  // 1: SM, 2: memory
  Return (*temperature)(Device, int sensor, unsigned* celsius);
  Return (*temperature_of)(Device, Temperature*);
  Return (*reasons)(Device, unsigned long long* bits);
  Return (*ecc)(Device, int kind, int counter, unsigned long long*);  // kind 1: uncorrected; counter 0: volatile
  Return (*replays)(Device, unsigned*);
  Return (*fields)(Device, int count, FieldValue*);
  Return (*most_mig)(Device, unsigned*);
  Return (*mig_device)(Device, unsigned index, Device*);
  Return (*processes)(Device, unsigned* count, void* infos);
  Return (*gpm_alloc)(GpmSample*);
  Return (*gpm_free)(GpmSample);
  Return (*gpm_get)(Device, GpmSample);
  Return (*gpm_metrics)(GpmMetrics*);
  Return (*gpm_support)(Device, GpmSupport*);
};

// A process that computes on a GPU.
struct Process {
  unsigned pid;
  unsigned long long bytes;
};

struct Gpu {
  Device device = nullptr;
  unsigned index = 0;
  std::string target;  // "gpu 0" as NVML counts (by PCI bus, not by CUDA_VISIBLE_DEVICES); "gpu 0 mig 1"
  std::string model;   // "NVIDIA H200, GPU-…"
};

class Library {
 public:
  // Loaded and initialized; the error says what stands in the way.
  static Result<std::shared_ptr<Library>> open(const std::string& path);
  ~Library();
  Library(const Library&) = delete;
  Library& operator=(const Library&) = delete;

  const Functions& call() const { return functions_; }
  // Those that answer now; the error says why none does.
  Result<std::vector<Gpu>> gpus() const;
  std::vector<Gpu> mig_instances(const Gpu& gpu) const;
  // Which processes compute on it and with how much of its memory. False: it does not say.
  bool processes_on(Device device, std::vector<Process>& into, Return& result) const;

 private:
  Library() = default;
  Functions functions_{};
  mutable std::vector<unsigned char> buffer_;
};

// The GPU does not answer any more, and will not before it was reset.
constexpr bool is_gone(Return result) { return result == kGpuIsLost || result == kResetRequired; }

}  // namespace stepscope::collect::telemetry::nvml
