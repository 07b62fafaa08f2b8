// Pressure stall information: how long some or all of the work had to wait for CPU, memory or devices; of the machine
// and of the ranks' cgroups. The kernel's totals are exact, its averages are not read.
#include <array>
#include <map>

#include "collect/telemetry/cgroup_places.h"
#include "collect/telemetry/collector.h"
#include "collect/telemetry/kept_file.h"
#include "collect/telemetry/kept_series.h"
#include "collect/telemetry/lines.h"
#include "collect/telemetry/numbers.h"

namespace stepscope::collect::telemetry {
namespace {

struct Resource {
  const char *name, *some, *full;
};
constexpr std::array<Resource, 3> kResources{{
    {"cpu", "Time in which some work waited for a core", "Time in which all work waited for a core"},
    {"memory", "Time in which some work waited for memory to be freed or to come back",
     "Time in which all work waited for memory"},
    {"io", "Time in which some work waited for reads and writes of devices",
     "Time in which all work waited for reads and writes of devices"},
}};

std::optional<std::int64_t> total_us(std::string_view text, std::string_view kind) {
  constexpr std::string_view kKey = " total=";
  while (!text.empty()) {
    const std::string_view line = next_line(text);
    const std::size_t at = line.find(kKey);
    if (line.starts_with(kind) && at != line.npos) return first_number(line.substr(at + kKey.size()));
  }
  return std::nullopt;
}

class Stalls {
 public:
  Stalls(const std::string& path, const Resource& resource, const std::string& target)
      : file_(path),
        some_(about(resource, "some", target, resource.some), {1000, 0, 0}),
        full_(about(resource, "full", target, resource.full), {1000, 0, 0}),
        // For all of a machine the kernel defines no such time, though newer ones write a 0.
        has_full_(target != "host" || resource.name != kResources[0].name) {}

  void sample(Sink& sink) {
    const std::string_view text = file_.read();
    if (const auto us = total_us(text, "some ")) some_.add(sink, *us);
    if (!has_full_) return;
    if (const auto us = total_us(text, "full ")) full_.add(sink, *us);
  }

  bool is_there() { return total_us(file_.read(), "some ").has_value(); }

 private:
  static run::SeriesAbout about(const Resource& resource, const char* kind, const std::string& target,
                                const char* meaning) {
    return {"pressure", std::string(resource.name) + "_pressure_" + kind, target, "ns", run::SeriesKind::counter,
            meaning};
  }

  KeptFile file_;
  Growth some_, full_;
  bool has_full_;
};

class Pressure : public Source {
 public:
  explicit Pressure(const Roots& roots) : places_(roots) {
    for (const Resource& resource : kResources) {
      host_.emplace_back(roots.proc + "/pressure/" + resource.name, resource, "host");
    }
    follow({});
  }

  bool is_any() {
    bool any = false;
    for (Stalls& one : host_) any = any || one.is_there();
    for (auto& [folder, one] : cgroups_) {
      for (Stalls& stalls : one.first) any = any || stalls.is_there();
    }
    return any;
  }

  // Only version 2 has it, whatever controllers are there.
  void follow(const std::vector<Group>& groups) override {
    constexpr std::size_t kMostKept = 4 * CgroupPlaces::kMostPlaces;
    for (auto& [folder, one] : cgroups_) one.second = false;
    for (const CgroupPlace& place : places_.find_all(places_.texts_of(groups), "no controller")) {
      const auto known = cgroups_.find(place.folder);
      if (known != cgroups_.end()) {
        known->second.second = true;
      } else if (cgroups_.size() < kMostKept) {
        auto& made = cgroups_[place.folder];
        made.second = true;
        for (const Resource& resource : kResources) {
          made.first.emplace_back(place.folder + "/" + resource.name + ".pressure", resource, names_.of(place));
        }
      }
    }
  }

  void sample(Sink& sink) override {
    for (Stalls& one : host_) one.sample(sink);
    for (auto& [folder, one] : cgroups_) {
      if (!one.second) continue;
      for (Stalls& stalls : one.first) stalls.sample(sink);
    }
  }

 private:
  CgroupPlaces places_;
  CgroupNames names_;
  std::vector<Stalls> host_;
  std::map<std::string, std::pair<std::vector<Stalls>, bool>> cgroups_;  // by folder; whether somebody lives there
};

Result<std::unique_ptr<Source>> open(const Roots& roots) {
  auto pressure = std::make_unique<Pressure>(roots);
  if (!pressure->is_any()) {
    return fail({ErrorKind::unsupported, "the kernel keeps no pressure stall information", roots.proc + "/pressure",
                 std::nullopt, "Start a kernel with CONFIG_PSI (4.20 or later) with psi=1"});
  }
  return pressure;
}

}  // namespace

Collector pressure_collector() {
  return {"pressure", "time in which work waited for CPU, memory or devices", 100, open};
}

}  // namespace stepscope::collect::telemetry
