// What is told of a GPU.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

#include "run/samples.h"

namespace stepscope::collect::telemetry::gpu {

enum Value : std::uint8_t {
  kUtilization,
  kMemoryUtilization,
  kMemoryUsed,
  kMemoryFree,
  kMemoryTotal,
  kEnergy,
  kPower,
  kPowerLimit,
  kSmClock,
  kMemoryClock,
  kTemperature,
  kMemoryTemperature,
  kLimitedByPower,
  kLimitedByHeat,
  kLimitedByHardware,
  kLimitedBySetting,
  kIdle,
  kPowerLimitedTime,
  kHeatLimitedTime,
  kEccUncorrected,
  kPcieReplays,
  kPcieSent,
  kPcieReceived,
  kNvlinkSent,
  kNvlinkReceived,
  kValues,
};

struct About {
  const char *name, *unit;
  run::SeriesKind kind;
  const char* meaning;
};

inline constexpr run::SeriesKind kGauge = run::SeriesKind::gauge, kCounter = run::SeriesKind::counter;
inline constexpr std::array<About, kValues> kAbout{{
    {"gpu_utilization", "ratio", kGauge,
     "Part of the driver's last sampling period (1/6 s to 1 s) in which any kernel ran; not how much of the GPU it "
     "used"},
    {"gpu_memory_utilization", "ratio", kGauge, "Part of that period in which its memory was read or written"},
    {"gpu_memory_used", "bytes", kGauge, "Memory that is allocated on it"},
    {"gpu_memory_free", "bytes", kGauge, "Memory that is left on it"},
    {"gpu_memory_total", "bytes", kGauge, "Memory of it"},
    {"gpu_energy", "uJ", kCounter, "Energy that it used; the driver counts it in mJ"},
    {"gpu_power", "W", kGauge, "Power that it draws at the moment, with its memory"},
    {"gpu_power_limit", "W", kGauge, "Power that it may draw"},
    {"gpu_sm_clock", "hertz", kGauge, "Clock of its multiprocessors"},
    {"gpu_memory_clock", "hertz", kGauge, "Clock of its memory"},
    {"gpu_temperature", "celsius", kGauge, "Temperature of the chip"},
    {"gpu_memory_temperature", "celsius", kGauge, "Temperature of its memory"},
    {"gpu_limited_by_power", "ratio", kGauge, "1 while its clocks are held down by the power limit or a power brake"},
    {"gpu_limited_by_heat", "ratio", kGauge, "1 while its clocks are held down because it is too warm"},
    {"gpu_limited_by_hardware", "ratio", kGauge,
     "1 while the hardware halves its clocks or worse: heat, a power brake, or current that is too high"},
    {"gpu_limited_by_setting", "ratio", kGauge, "1 while its clocks are those that somebody set"},
    {"gpu_idle", "ratio", kGauge, "1 while its clocks are low because nothing runs"},
    {"gpu_power_limited_time", "ns", kCounter, "Time in which the power limit held its clocks down"},
    {"gpu_heat_limited_time", "ns", kCounter, "Time in which its temperature held its clocks down"},
    {"gpu_ecc_uncorrected", "count", kCounter,
     "Memory errors that could not be corrected, since the driver was loaded"},
    {"gpu_pcie_replays", "count", kCounter, "Times that PCIe had to send again"},
    {"gpu_pcie_sent", "bytes", kCounter, "Bytes that it sent over PCIe"},
    {"gpu_pcie_received", "bytes", kCounter, "Bytes that it received over PCIe"},
    {"gpu_nvlink_sent", "bytes", kCounter, "Data that it sent over all its NVLinks"},
    {"gpu_nvlink_received", "bytes", kCounter, "Data that it received over all its NVLinks"},
}};

}  // namespace stepscope::collect::telemetry::gpu
