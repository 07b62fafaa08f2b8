// Memory bandwidth of the whole machine, and what of it goes to other NUMA nodes: from resctrl where it is mounted,
// else from the counters of the memory controllers. Both are bytes that moved; numastat (collector numa) counts where
// pages were allocated, which tells little of that.
#include <map>

#include "collect/telemetry/bandwidth/resctrl.h"
#include "collect/telemetry/bandwidth/uncore.h"
#include "collect/telemetry/collector.h"

namespace stepscope::collect::telemetry {
namespace {

using bandwidth::L3Traffic, bandwidth::Traffic;

// Groups of control have their programs to themselves; only together they are the machine.
class Resctrl : public Source {
 public:
  explicit Resctrl(std::vector<L3Traffic> files) {
    for (L3Traffic& file : files) domains_[file.domain()].files.push_back({std::move(file), {}, false});
  }

  void sample(Sink& sink) override {
    for (auto& [name, domain] : domains_) {
      Traffic sum{0, 0};
      bool is_whole = true, any = false;
      for (Part& part : domain.files) {
        if (const auto traffic = part.file.read()) {
          part.last = *traffic;
          part.is_known = any = true;
        } else {
          is_whole = is_whole && part.file.is_gone();  // what it counted stays
        }
        if (!part.is_known) continue;
        sum.all += part.last.all;
        if (sum.remote && part.last.remote) {
          *sum.remote += *part.last.remote;
        } else {
          sum.remote.reset();
        }
      }
      if (is_whole && any) put(sink, name, domain, sum);
    }
  }

 private:
  struct Part {
    L3Traffic file;
    Traffic last;
    bool is_known;
  };
  struct Domain {
    std::vector<Part> files;
    std::uint32_t all = 0, remote = 0;
  };

  static void put(Sink& sink, const std::string& name, Domain& domain, const Traffic& sum) {
    const auto series = [&](const char* value, const char* meaning) {
      const std::size_t digit = name.find_first_not_of('0');
      const std::string number = digit == name.npos ? "0" : name.substr(digit);
      return sink.series({"bandwidth", value, "L3 " + number, "bytes", run::SeriesKind::counter, meaning});
    };
    if (domain.all == 0) domain.all = series("memory_traffic", "Bytes between this L3 cache and memory");
    sink.add(domain.all, sum.all);
    if (!sum.remote) return;
    if (domain.remote == 0) {
      domain.remote = series("memory_traffic_remote", "Bytes of these that went to memory of other NUMA nodes");
    }
    sink.add(domain.remote, *sum.remote);
  }

  std::map<std::string, Domain> domains_;
};

Result<std::unique_ptr<Source>> open(const Roots& roots) {
  const std::string root = roots.sys + "/fs/resctrl";
  std::vector<L3Traffic> files = bandwidth::traffic_of(root);
  if (!files.empty()) {
    for (const std::string& group : bandwidth::folders_in(root)) {
      if (group == "info" || group == "mon_data" || group == "mon_groups") continue;
      for (L3Traffic& file : bandwidth::traffic_of(root + "/" + group)) files.push_back(std::move(file));
    }
    return std::make_unique<Resctrl>(std::move(files));
  }
  auto uncore = bandwidth::open_uncore(roots);
  if (uncore || !uncore.error().message.empty()) return uncore;
  return fail({ErrorKind::unsupported,
               "neither resctrl nor counters of the memory controllers are here (virtual machines rarely have them)",
               "", std::nullopt,
               "Mount resctrl as root where the CPUs have it: mount -t resctrl resctrl /sys/fs/resctrl; the collector "
               "numa counts pages that were allocated on other nodes, a weak stand-in"});
}

}  // namespace

Collector bandwidth_collector() {
  return {"bandwidth", "bytes between CPUs and memory, and what of it crosses NUMA nodes or sockets", 200, open};
}

}  // namespace stepscope::collect::telemetry
