// Resident memory of each rank with all that works for it, from /proc/PID/statm. Pages that several of these processes
// share are counted in each; what is exact (smaps_rollup) holds a lock of the process for too long.
#include <unistd.h>

#include "collect/telemetry/collector.h"
#include "collect/telemetry/kept_file.h"
#include "collect/telemetry/kept_series.h"
#include "collect/telemetry/numbers.h"

namespace stepscope::collect::telemetry {
namespace {

struct Watched {
  Level rss;
  std::vector<KeptFile> files;  // of its members
};

class Memory : public Source {
 public:
  explicit Memory(const Roots& roots) : roots_(roots) {}

  void follow(const std::vector<Group>& groups) override {
    watched_.clear();
    for (const Group& group : groups) {
      Watched& one = watched_.emplace_back(
          Watched{Level({"memory", "rss", group.target, "bytes", run::SeriesKind::gauge,
                         "Resident memory of the rank and its children; shared pages are in each"}),
                  {}});
      for (const Member& member : group.members) {
        one.files.emplace_back(roots_.proc + "/" + std::to_string(member.pid) + "/statm");
      }
    }
  }

  void sample(Sink& sink) override {
    for (Watched& one : watched_) {
      std::int64_t pages = 0;
      for (KeptFile& file : one.files) {
        const std::string_view text = file.read();
        std::size_t at = 0;
        next_number(text, at);  // what is mapped
        pages += next_number(text, at).value_or(0);
      }
      if (pages == 0) continue;  // all have ended
      one.rss.add(sink, static_cast<double>(pages) * static_cast<double>(page_bytes_));
    }
  }

 private:
  Roots roots_;
  long page_bytes_ = sysconf(_SC_PAGESIZE);
  std::vector<Watched> watched_;
};

Result<std::unique_ptr<Source>> open(const Roots& roots) { return std::make_unique<Memory>(roots); }

}  // namespace

Collector memory_collector() { return {"memory", "resident memory of each rank", 100, open}; }

}  // namespace stepscope::collect::telemetry
