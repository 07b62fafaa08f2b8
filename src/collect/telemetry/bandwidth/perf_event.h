// Counters of devices through perf, by what /sys/bus/event_source/devices says of them: which words an event is made
// of, where these go in the request (format), and in what it counts (scale and unit).
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "collect/telemetry/collector.h"

namespace stepscope::collect::telemetry::bandwidth {

// Where to put what: config, config1, config2.
struct EventCode {
  std::uint64_t config[3] = {0, 0, 0};
};

// "event=0x04,umask=0x03" by the files in <device>/format; nullopt: a word that the device does not know.
std::optional<EventCode> event_code(const std::string& device, std::string_view words);

// Bytes of one count: <device>/events/<name>.scale and .unit; nullopt: in none that we know.
std::optional<double> bytes_per_count(const std::string& device, const std::string& name);

// "0,24", "0-3": on which CPUs a device is asked; empty: the file is not there.
std::vector<int> cpus_in(std::string_view list);

// Of one event on one CPU. Counts what passed while it was counting, scaled up for the time in which other events had
// the hardware.
class EventCounter {
 public:
  // The file is -1, and errno says why, where the kernel refuses.
  EventCounter(const Roots& roots, unsigned type, const EventCode& code, int cpu, double bytes_per_count);
  EventCounter(EventCounter&& other) noexcept;
  EventCounter& operator=(EventCounter&&) = delete;
  ~EventCounter();

  bool is_open() const { return file_ >= 0; }
  int cpu() const { return cpu_; }
  // Bytes since it was opened; nullopt: it tells nothing now.
  std::optional<double> read();

 private:
  struct Reading {
    std::uint64_t count, enabled_ns, running_ns;
  };
  int file_, cpu_;
  double bytes_per_count_, bytes_ = 0;
  Reading last_{};
};

}  // namespace stepscope::collect::telemetry::bandwidth
