// Memory of each rank where shared pages count in part: each process has its share of them (PSS), so that the sum over
// a rank's data loading workers is what they really hold. From /proc/PID/smaps_rollup, for which the kernel walks all
// page tables and holds a lock of the process: milliseconds and more for a large one, so only when asked for.
#include <array>

#include "collect/telemetry/collector.h"
#include "collect/telemetry/kept_file.h"
#include "collect/telemetry/kept_series.h"
#include "collect/telemetry/numbers.h"

namespace stepscope::collect::telemetry {
namespace {

struct Summed {
  const char *name, *meaning;
  std::array<const char*, 3> keys;
};
constexpr std::array<Summed, 4> kSummed{{
    {"pss", "Memory of the rank and its children, each shared page by its share", {"Pss"}},
    {"private_memory",
     "Memory that belongs to one process of the rank alone",
     {"Private_Clean", "Private_Dirty", "Private_Hugetlb"}},
    {"shared_memory",
     "Memory that several processes hold, counted in each",
     {"Shared_Clean", "Shared_Dirty", "Shared_Hugetlb"}},
    {"swap_share", "Memory of the rank that is in swap, by its share", {"SwapPss"}},
}};

struct Watched {
  std::vector<KeptFile> files;  // of its members
  std::vector<Level> series;
};

class Pss : public Source {
 public:
  explicit Pss(const Roots& roots) : proc_(roots.proc) {}

  void follow(const std::vector<Group>& groups) override {
    watched_.clear();
    for (const Group& group : groups) {
      Watched& one = watched_.emplace_back();
      for (const Member& member : group.members) {
        one.files.emplace_back(proc_ + "/" + std::to_string(member.pid) + "/smaps_rollup");
      }
      for (const Summed& sum : kSummed) {
        one.series.emplace_back(
            run::SeriesAbout{"pss", sum.name, group.target, "bytes", run::SeriesKind::gauge, sum.meaning});
      }
    }
  }

  void sample(Sink& sink) override {
    for (Watched& one : watched_) {
      std::array<std::optional<double>, kSummed.size()> bytes;
      for (KeptFile& file : one.files) {
        const std::string_view text = file.read();
        for (std::size_t i = 0; i < kSummed.size(); i++) {
          for (const char* key : kSummed[i].keys) {
            const auto kilobytes = key == nullptr ? std::nullopt : number_after(text, key);
            if (kilobytes) bytes[i] = bytes[i].value_or(0) + static_cast<double>(*kilobytes) * 1024;
          }
        }
      }
      for (std::size_t i = 0; i < kSummed.size(); i++) {
        if (bytes[i]) one.series[i].add(sink, *bytes[i]);
      }
    }
  }

 private:
  std::string proc_;
  std::vector<Watched> watched_;
};

Result<std::unique_ptr<Source>> open(const Roots& roots) {
  KeptFile own(roots.proc + "/self/smaps_rollup");
  if (!number_after(own.read(), "Pss")) {
    return fail({ErrorKind::unsupported, "the kernel does not sum up the memory of a process", own.path(), std::nullopt,
                 "Start a kernel of version 4.14 or later, with CONFIG_PROC_PAGE_MONITOR"});
  }
  return std::make_unique<Pss>(roots);
}

}  // namespace

Collector pss_collector() {
  return {"pss", "memory of each rank with shared pages by their share (stops its page faults while it reads)", 5000,
          open, true};
}

}  // namespace stepscope::collect::telemetry
