// Contract of the collectors: one file per source of telemetry, one line in collectors.list.
//
// A collector opens its source once; what it opened is sampled again and again, so files stay open (kept_file.h). Where
// the source is not there, the error says in one sentence why, and its hint what would make it so. Nothing is invented:
// a value that cannot be read has no sample.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "run/samples.h"

struct perf_event_attr;  // of the kernel

namespace stepscope::collect::telemetry {

// Nanoseconds of CPU time of a process, all threads; nullopt: it has ended.
std::optional<std::int64_t> process_cpu_ns(pid_t pid);

std::int64_t monotonic_ns();

// Where the kernel and the drivers show themselves; tests put others in their place.
struct Roots {
  std::string proc = "/proc", sys = "/sys";
  std::function<std::optional<std::int64_t>(pid_t)> cpu_ns = process_cpu_ns;
  std::string nvml = "libnvidia-ml.so.1";  // the library of the NVIDIA driver
  std::function<std::int64_t()> now_ns = monotonic_ns;
  // A counter of a whole CPU or of its socket: a file, or less than 0 and errno. Empty: the system call.
  std::function<int(perf_event_attr&, int cpu)> perf_event;
};

struct Member {
  pid_t pid = 0;
  std::uint64_t start_ticks = 0;  // with the PID it names a process for good
  pid_t parent = 0;
  bool began_watched = false;  // it was not there yet when the watch began: nothing of it is old
  bool operator==(const Member&) const = default;
};

// A rank (or another process that somebody asked for) and what works for it: data loading workers, launched children.
struct Group {
  std::string target;           // "rank 0", "pid 4711": as it was called first, which stays, so that its series go on
  std::vector<Member> members;  // the process itself first
  std::string name;             // as it is called now; empty: as ever
  bool operator==(const Group&) const = default;
};

class Sink {
 public:
  virtual ~Sink() = default;
  // The number of a series; the same for the same name and target.
  virtual std::uint32_t series(const run::SeriesAbout& about) = 0;
  // Both take the time of the call, so call them right after the reading.
  virtual void add(std::uint32_t series, std::int64_t count) = 0;  // of a counter
  virtual void add(std::uint32_t series, double level) = 0;        // of a gauge
};

class Source {
 public:
  virtual ~Source() = default;
  // Which processes are watched from now on.
  virtual void follow(const std::vector<Group>&) {}
  virtual void sample(Sink& sink) = 0;
};

struct Collector {
  std::string_view name;     // cpu, io …; the word of --collectors
  std::string_view summary;  // what it tells, one line
  int interval_ms = 100;     // at least so long between two samples
  Result<std::unique_ptr<Source>> (*open)(const Roots&);
  bool on_request = false;  // costs too much, or tells too little, to be sampled unless it is named
  bool own_thread = false;  // it asks a driver, which may hang: sampled apart from those that ask the kernel
};

std::span<const Collector> collectors();  // from collectors.list

}  // namespace stepscope::collect::telemetry
