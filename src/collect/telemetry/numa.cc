// The memory of each NUMA node, and where the kernel found memory that was asked for. Allocations are not traffic:
// where nothing counts bandwidth between nodes they are a weak stand-in for it, and the series' meaning says so.
#include <unistd.h>

#include <algorithm>
#include <array>
#include <filesystem>

#include "collect/telemetry/collector.h"
#include "collect/telemetry/kept_file.h"
#include "collect/telemetry/kept_series.h"
#include "collect/telemetry/numbers.h"

namespace stepscope::collect::telemetry {
namespace {

namespace fs = std::filesystem;

struct Counted {
  const char *key, *name, *meaning;
};
constexpr std::array<Counted, 3> kCounted{{
    {"local_node", "numa_local_allocations", "Allocations on this node by programs that ran on it"},
    {"other_node", "numa_remote_allocations",
     "Allocations on this node by programs that ran on another; a weak stand-in for bandwidth between nodes, "
     "since memory is allocated once and used often"},
    {"numa_foreign", "numa_missed_allocations",
     "Allocations that were meant for this node and went to another, mostly because it was full"},
}};

class Node {
 public:
  Node(const std::string& folder, const std::string& number)
      : meminfo_(folder + "/meminfo"),
        numastat_(folder + "/numastat"),
        prefix_("Node " + number + " "),
        free_(level("memory_free", number, "Memory of the node that holds nothing")),
        used_(level("memory_used", number, "Memory of the node that is in use, with contents of files")) {
    for (const Counted& one : kCounted) {
      counted_.emplace_back(
          run::SeriesAbout{"numa", one.name, "numa " + number, "count", run::SeriesKind::counter, one.meaning});
    }
  }

  // Some nodes have cores and no memory, others belong to a GPU that gave none.
  bool has_memory() { return number_after(meminfo_.read(), prefix_ + "MemTotal").value_or(0) > 0; }

  void sample(Sink& sink) {
    const std::string_view meminfo = meminfo_.read();
    if (const auto kilobytes = number_after(meminfo, free_key_))
      free_.add(sink, static_cast<double>(*kilobytes) * 1024);
    if (const auto kilobytes = number_after(meminfo, used_key_))
      used_.add(sink, static_cast<double>(*kilobytes) * 1024);
    const std::string_view numastat = numastat_.read();
    for (std::size_t i = 0; i < kCounted.size(); i++) {
      if (const auto count = number_after(numastat, kCounted[i].key)) counted_[i].add(sink, *count);
    }
  }

 private:
  static Level level(const char* name, const std::string& number, const char* meaning) {
    return Level({"numa", name, "numa " + number, "bytes", run::SeriesKind::gauge, meaning});
  }

  KeptFile meminfo_, numastat_;
  std::string prefix_, free_key_ = prefix_ + "MemFree", used_key_ = prefix_ + "MemUsed";
  Level free_, used_;
  std::vector<Growth> counted_;
};

class Numa : public Source {
 public:
  explicit Numa(const Roots& roots) : vmstat_(roots.proc + "/vmstat") {
    constexpr std::size_t kMostNodes = 128;
    std::error_code code;
    std::vector<int> numbers;
    for (fs::directory_iterator entry(roots.sys + "/devices/system/node", code), end; !code && entry != end;
         entry.increment(code)) {
      const std::string name = entry->path().filename().string();
      if (!name.starts_with("node")) continue;
      const auto number = first_number(std::string_view(name).substr(4));
      if (number && *number >= 0 && *number < 1 << 16 && numbers.size() < kMostNodes) {
        numbers.push_back(static_cast<int>(*number));
      }
    }
    std::sort(numbers.begin(), numbers.end());
    for (const int number : numbers) {
      const std::string text = std::to_string(number);
      Node node(roots.sys + "/devices/system/node/node" + text, text);
      if (node.has_memory()) nodes_.push_back(std::move(node));
    }
  }

  std::size_t nodes() const { return nodes_.size(); }

  void sample(Sink& sink) override {
    for (Node& node : nodes_) node.sample(sink);
    if (const auto pages = number_after(vmstat_.read(), "numa_pages_migrated")) migrated_.add_seldom(sink, *pages);
  }

 private:
  KeptFile vmstat_;
  std::vector<Node> nodes_;
  Growth migrated_{{"numa", "numa_migrated", "host", "bytes", run::SeriesKind::counter,
                    "Memory that the kernel moved from one node to another"},
                   {sysconf(_SC_PAGESIZE), 0, 0}};
};

Result<std::unique_ptr<Source>> open(const Roots& roots) {
  auto numa = std::make_unique<Numa>(roots);
  const std::string folder = roots.sys + "/devices/system/node";
  if (numa->nodes() == 0) {
    return fail({ErrorKind::unsupported, "no NUMA node is seen here", folder, std::nullopt,
                 "Mount /sys, on a kernel with CONFIG_NUMA"});
  }
  if (numa->nodes() == 1) {
    return fail({ErrorKind::unsupported, "the machine has one NUMA node, so all of its memory is as near", folder,
                 std::nullopt, "Look at the memory of the whole machine with the collector host"});
  }
  return numa;
}

}  // namespace

Collector numa_collector() {
  return {"numa", "memory of each NUMA node, and allocations that crossed nodes", 200, open};
}

}  // namespace stepscope::collect::telemetry
