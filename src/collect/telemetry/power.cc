// Energy of packages and memory from the RAPL counters of Intel and AMD (powercap), in uJ: the difference of two
// samples is exact, whatever happened between them. Where there is no RAPL, ACPI power meters (on Grace: of each socket
// and module), which tell the mean power over an interval of their own. Other hwmon sensors do not say what they
// measure.
#include <algorithm>
#include <array>
#include <filesystem>
#include <set>

#include "collect/telemetry/collector.h"
#include "collect/telemetry/kept_file.h"
#include "collect/telemetry/kept_series.h"
#include "collect/telemetry/numbers.h"

namespace stepscope::collect::telemetry {
namespace {

namespace fs = std::filesystem;

constexpr std::size_t kMostZones = 256;

// One line of a file, without its end; "" where there is none.
std::string line_of(const std::string& path) {
  KeptFile file(path);
  const std::string_view text = file.read();
  return std::string(text.substr(0, std::min<std::size_t>(text.find('\n'), 64)));
}

std::vector<std::string> entries_of(const std::string& folder) {
  std::vector<std::string> names;
  std::error_code code;
  for (fs::directory_iterator entry(folder, code), end; !code && entry != end; entry.increment(code)) {
    names.push_back(entry->path().filename().string());
  }
  std::sort(names.begin(), names.end());
  return names;
}

struct Zone {
  KeptFile file;
  Growth series;
};

struct Meter {
  KeptFile file;
  Level series;
};

class Power : public Source {
 public:
  explicit Power(const Roots& roots) {
    find_zones(roots.sys + "/class/powercap");
    if (zones_.empty() && !refused_) find_meters(roots.sys + "/class/hwmon");
  }

  bool is_any() const { return !zones_.empty() || !meters_.empty(); }
  bool was_refused() const { return refused_; }

  void sample(Sink& sink) override {
    for (Zone& zone : zones_) {
      if (const auto energy = first_number(zone.file.read())) zone.series.add(sink, *energy);
    }
    for (Meter& meter : meters_) {
      const auto microwatts = first_number(meter.file.read());
      if (microwatts && *microwatts >= 0) meter.series.add(sink, static_cast<double>(*microwatts) / 1e6);
    }
  }

 private:
  // intel-rapl:0 is a package (or psys), intel-rapl:0:1 a part of it. The same packages stand again as intel-rapl-mmio.
  void find_zones(const std::string& folder) {
    for (const std::string& entry : entries_of(folder)) {
      constexpr std::string_view kPrefix = "intel-rapl:";
      if (!entry.starts_with(kPrefix) || zones_.size() == kMostZones) continue;
      const std::string zone = folder + "/" + entry;
      const std::string name = line_of(zone + "/name");
      KeptFile file(zone + "/energy_uj");
      refused_ = refused_ || file.error() == EACCES || file.error() == EPERM;
      if (name.empty() || !first_number(file.read())) continue;
      const std::size_t part = entry.find(':', kPrefix.size());
      std::string target = named(name);
      if (part != entry.npos) target = named(line_of(folder + "/" + entry.substr(0, part) + "/name")) + " " + target;
      if (!is_new(target)) continue;  // nobody could tell the two apart
      const auto range = first_number(line_of(zone + "/max_energy_range_uj"));
      Growth series({"power", "energy", target, "uJ", run::SeriesKind::counter, meaning(name)},
                    {1, std::max<std::int64_t>(0, range.value_or(0)), 0});
      zones_.push_back({std::move(file), std::move(series)});
    }
  }

  bool is_new(const std::string& target) { return targets_.insert(target).second; }

  // "package-0" is "package 0"; "package-0-die-1" is "package 0 die 1".
  static std::string named(std::string name) {
    std::replace(name.begin(), name.end(), '-', ' ');
    return name;
  }

  static const char* meaning(std::string_view name) {
    if (name.starts_with("package")) return "Energy that the package used: its cores, caches and memory controllers";
    if (name == "dram") return "Energy that the memory at the package used";
    if (name == "core") return "Energy that the package's cores used; part of the package's";
    if (name == "uncore") return "Energy of the package's graphics or other parts; part of the package's";
    if (name == "psys") return "Energy of the whole board, as its maker wired it";
    return "Energy that this part used";
  }

  void find_meters(const std::string& folder) {
    int number = 0;
    for (const std::string& entry : entries_of(folder)) {
      const std::string sensor = folder + "/" + entry;
      if (line_of(sensor + "/name") != "power_meter" || meters_.size() == kMostZones) continue;
      for (const std::string& in : {sensor, sensor + "/device"}) {  // older kernels have it there
        KeptFile file(in + "/power1_average");
        if (!first_number(file.read())) continue;
        std::string target = line_of(in + "/power1_oem_info");
        while (!target.empty() && (target.back() == ' ' || target.back() == '\0')) target.pop_back();
        if (target.empty()) target = "power meter " + std::to_string(number);
        number++;
        if (!is_new(target)) break;
        meters_.push_back({std::move(file), Level({"power", "power", target, "W", run::SeriesKind::gauge,
                                                   "Mean power over the meter's own interval"})});
        break;
      }
    }
  }

  std::vector<Zone> zones_;
  std::vector<Meter> meters_;
  std::set<std::string> targets_;
  bool refused_ = false;
};

Result<std::unique_ptr<Source>> open(const Roots& roots) {
  auto power = std::make_unique<Power>(roots);
  const std::string folder = roots.sys + "/class/powercap";
  if (!power->is_any() && power->was_refused()) {
    return fail({ErrorKind::unreadable, "only root may read the energy counters of this machine", folder, std::nullopt,
                 "Allow it: sudo chmod a+r /sys/class/powercap/intel-rapl:*/energy_uj (until the next start)"});
  }
  if (!power->is_any()) {
    return fail({ErrorKind::unsupported, "no energy counter of the CPU is seen here", folder, std::nullopt,
                 "Load the driver: sudo modprobe intel_rapl_msr (Intel and AMD; not in virtual machines)"});
  }
  return power;
}

}  // namespace

Collector power_collector() { return {"power", "energy of CPU packages and memory", 100, open}; }

}  // namespace stepscope::collect::telemetry
