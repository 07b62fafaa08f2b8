// On which NUMA node the memory of each rank lies, from /proc/PID/numa_maps. The kernel walks all page tables for it
// and holds a lock that page faults need: seconds for a trainer of hundreds of GB, so it is sampled only when asked
// for.
#include <map>
#include <set>

#include "collect/telemetry/collector.h"
#include "collect/telemetry/kept_file.h"
#include "collect/telemetry/kept_series.h"
#include "collect/telemetry/lines.h"
#include "collect/telemetry/numbers.h"

namespace stepscope::collect::telemetry {
namespace {

constexpr std::size_t kMostNodes = 128;

using BytesOfNodes = std::map<std::int64_t, double>;

// "7f00 default anon=3 dirty=3 N0=1 N1=2 kernelpagesize_kB=4": pages of the size that stands last.
bool add_line(std::string_view line, BytesOfNodes& bytes) {
  std::array<std::pair<std::int64_t, std::int64_t>, kMostNodes> found;
  std::size_t count = 0;
  std::int64_t page_kilobytes = 0;
  for (std::string_view word = next_word(line); !word.empty(); word = next_word(line)) {
    constexpr std::string_view kSize = "kernelpagesize_kB=";
    const std::size_t equals = word.find('=');
    if (word.starts_with(kSize)) {
      page_kilobytes = first_number(word.substr(kSize.size())).value_or(0);
    } else if (word[0] == 'N' && equals != word.npos && count < found.size()) {
      const auto node = first_number(word.substr(1, equals - 1)), pages = first_number(word.substr(equals + 1));
      if (node && pages && *node >= 0 && *pages >= 0) found[count++] = {*node, *pages};
    }
  }
  if (page_kilobytes <= 0) return false;
  for (std::size_t i = 0; i < count; i++) {
    if (bytes.size() == kMostNodes && !bytes.contains(found[i].first)) continue;
    bytes[found[i].first] += static_cast<double>(found[i].second) * static_cast<double>(page_kilobytes) * 1024;
  }
  return count > 0;
}

class NumaMaps : public Source {
 public:
  explicit NumaMaps(const Roots& roots) : proc_(roots.proc) {}

  void follow(const std::vector<Group>& groups) override {
    watched_.clear();
    for (const Group& group : groups) {
      auto& files = watched_.emplace_back(group.target, std::vector<KeptFile>()).second;
      for (const Member& member : group.members) {
        files.emplace_back(proc_ + "/" + std::to_string(member.pid) + "/numa_maps");
      }
    }
  }

  void sample(Sink& sink) override {
    for (auto& [target, files] : watched_) {
      BytesOfNodes bytes;
      bool is_any = false;
      for (KeptFile& file : files) for_each_line(file, [&](std::string_view line) { is_any |= add_line(line, bytes); });
      if (!is_any) continue;  // all have ended, or we may not read them
      for (const auto& [node, of_node] : bytes) series(target, node).add(sink, of_node);
      // A node that all memory has left is at nothing now, which is known.
      for (auto& [key, one] : series_) {
        if (key.first == target && !bytes.contains(key.second)) one.add(sink, 0.0);
      }
    }
  }

 private:
  Level& series(const std::string& target, std::int64_t node) {
    const auto known = series_.find({target, node});
    if (known != series_.end()) return known->second;
    const std::string number = std::to_string(node);
    Level level({"numa_maps", "memory_on_numa_" + number, target, "bytes", run::SeriesKind::gauge,
                 "Memory of the rank and its children on NUMA node " + number + "; shared pages are in each"});
    return series_.try_emplace({target, node}, std::move(level)).first->second;
  }

  std::string proc_;
  std::vector<std::pair<std::string, std::vector<KeptFile>>> watched_;
  std::map<std::pair<std::string, std::int64_t>, Level> series_;
};

Result<std::unique_ptr<Source>> open(const Roots& roots) {
  KeptFile own(roots.proc + "/self/numa_maps");
  if (for_each_line(own, [](std::string_view) {}) == 0) {
    return fail({ErrorKind::unsupported, "the kernel does not say on which NUMA node memory lies", own.path(),
                 std::nullopt, "Start a kernel with CONFIG_NUMA"});
  }
  return std::make_unique<NumaMaps>(roots);
}

}  // namespace

Collector numa_maps_collector() {
  return {"numa_maps", "on which NUMA node the memory of each rank lies (stops its page faults while it reads)", 10'000,
          open, true};
}

}  // namespace stepscope::collect::telemetry
