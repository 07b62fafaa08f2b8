// The whole machine: who has its cores, how much memory is left, and whether it swaps. In a container too these are the
// machine's numbers (what the container may use is of the cgroup collector). /proc/stat is long on machines with many
// cores and slow on old kernels, so it is read more seldom than what is about ranks.
#include <unistd.h>

#include <array>

#include "collect/telemetry/collector.h"
#include "collect/telemetry/kept_file.h"
#include "collect/telemetry/kept_series.h"
#include "collect/telemetry/lines.h"
#include "collect/telemetry/numbers.h"

namespace stepscope::collect::telemetry {
namespace {

constexpr std::int64_t kMostTicks = std::int64_t{1} << 60;  // sums of a few still fit
constexpr std::size_t kCpuFields = 8;  // user nice system idle iowait irq softirq steal; guests are within user

Level level(const char* name, const char* unit, const char* meaning) {
  return Level({"host", name, "host", unit, run::SeriesKind::gauge, meaning});
}

Growth growth(const char* name, const char* unit, const char* meaning, Counting counting = {}) {
  return Growth({"host", name, "host", unit, run::SeriesKind::counter, meaning}, counting);
}

class Host : public Source {
 public:
  explicit Host(const Roots& roots)
      : stat_(roots.proc + "/stat"), meminfo_(roots.proc + "/meminfo"), vmstat_(roots.proc + "/vmstat") {}

  bool is_any() { return !stat_.read().empty() || !meminfo_.read().empty() || !vmstat_.read().empty(); }

  void sample(Sink& sink) override {
    sample_cpu(sink);
    sample_memory(sink);
  }

 private:
  void sample_cpu(Sink& sink) {
    std::array<std::int64_t, kCpuFields> ticks{};
    std::size_t fields = 0;
    int cores = 0;
    for_each_line(stat_, [&](std::string_view line) {
      if (line.starts_with("cpu ")) {
        std::size_t at = 4;
        for (; fields < kCpuFields; fields++) {
          const auto number = next_number(line, at);
          if (!number || *number > kMostTicks) break;
          ticks[fields] = *number;
        }
      } else if (line.starts_with("cpu") && line.size() > 3 && line[3] >= '0' && line[3] <= '9') {
        cores++;
      } else if (const auto switches = number_after(line, "ctxt")) {
        switches_.add(sink, *switches);
      }
    });
    if (fields >= 5) {
      user_.add(sink, ticks[0] + ticks[1]);
      system_.add(sink, ticks[2] + ticks[5] + ticks[6]);
      idle_.add(sink, ticks[3]);
      iowait_.add(sink, ticks[4]);
    }
    if (fields == kCpuFields) steal_.add(sink, ticks[7]);
    if (cores > 0) cores_.add_seldom(sink, cores);
  }

  void sample_memory(Sink& sink) {
    const auto kilobytes = [&](std::string_view text, std::string_view key, Level& series) {
      if (const auto number = number_after(text, key)) series.add(sink, static_cast<double>(*number) * 1024);
    };
    const std::string_view meminfo = meminfo_.read();
    kilobytes(meminfo, "MemAvailable", available_);
    kilobytes(meminfo, "Cached", cached_);
    kilobytes(meminfo, "Dirty", dirty_);
    if (swapping_.now()) sample_swapping(sink);
  }

  void sample_swapping(Sink& sink) {
    const std::string_view vmstat = vmstat_.read();
    if (const auto pages = number_after(vmstat, "pswpin")) swapped_in_.add_seldom(sink, *pages);
    if (const auto pages = number_after(vmstat, "pswpout")) swapped_out_.add_seldom(sink, *pages);
    if (const auto faults = number_after(vmstat, "pgmajfault")) faults_.add_seldom(sink, *faults);
  }

  static Counting ticks_as_ns(std::int64_t slack_s = 0) {
    const std::int64_t per_second = sysconf(_SC_CLK_TCK);
    return {1'000'000'000 / per_second, 0, slack_s * per_second};
  }
  static Counting pages_as_bytes() { return {sysconf(_SC_PAGESIZE), 0, 0}; }

  KeptFile stat_, meminfo_, vmstat_;
  Seldom swapping_{2};  // the longest of the three, and it tells of what should not happen
  Growth user_ = growth("cpu_user", "ns", "CPU time of all programs on the machine, all cores together", ticks_as_ns());
  Growth system_ = growth("cpu_system", "ns", "CPU time of the kernel, with interrupts", ticks_as_ns());
  // These two fall by a little when a core goes to sleep.
  Growth idle_ = growth("cpu_idle", "ns", "Time in which cores had nothing to do", ticks_as_ns(3));
  Growth iowait_ = growth("cpu_iowait", "ns",
                          "Time in which cores had nothing to do while a read or write was waited for", ticks_as_ns(3));
  Growth steal_ = growth("cpu_steal", "ns", "Time that other virtual machines took from this one", ticks_as_ns());
  Level cores_ = level("online_cores", "count", "Cores that can be used, as the kernel counts them");
  Growth switches_ = growth("context_switches", "count", "Switches of cores from one thread to another");
  Level available_ = level("memory_available", "bytes", "Memory that programs can still have without swapping");
  Level cached_ = level("memory_cached", "bytes", "Memory that holds contents of files, shared memory among them");
  Level dirty_ = level("memory_dirty", "bytes", "What was written to files and is not yet on its device");
  Growth swapped_in_ = growth("swapped_in", "bytes", "Memory that came back from swap", pages_as_bytes());
  Growth swapped_out_ = growth("swapped_out", "bytes", "Memory that went out to swap", pages_as_bytes());
  Growth faults_ = growth("major_faults", "count", "Page faults that had to wait for a device");
};

Result<std::unique_ptr<Source>> open(const Roots& roots) {
  auto host = std::make_unique<Host>(roots);
  if (!host->is_any()) {
    return fail({ErrorKind::unsupported, "the numbers of the machine cannot be read", roots.proc + "/stat",
                 std::nullopt, "Mount proc there"});
  }
  return host;
}

}  // namespace

Collector host_collector() { return {"host", "cores, memory and swapping of the whole machine", 500, open}; }

}  // namespace stepscope::collect::telemetry
