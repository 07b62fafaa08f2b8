// What each rank reads and writes, from /proc/PID/io: by system calls (with caches, pipes and network file systems) and
// at block devices. The kernel adds what a child did to its parent once it was waited for.
#include <array>
#include <map>

#include "collect/telemetry/collector.h"
#include "collect/telemetry/kept_file.h"
#include "collect/telemetry/member_totals.h"
#include "collect/telemetry/numbers.h"

namespace stepscope::collect::telemetry {
namespace {

struct Counter {
  const char *key, *name, *meaning;
};
constexpr std::array<Counter, 4> kCounters{{
    {"rchar", "read", "Bytes that system calls read: files, caches, pipes, network file systems"},
    {"wchar", "written", "Bytes that system calls wrote"},
    {"read_bytes", "read_from_devices", "Bytes that block devices had to read for it; not of network file systems"},
    {"write_bytes", "written_to_devices", "Bytes that it made block devices write"},
}};

std::vector<run::SeriesAbout> counters() {
  std::vector<run::SeriesAbout> all;
  for (const Counter& one : kCounters) {
    all.push_back({"io", one.name, {}, "bytes", run::SeriesKind::counter, one.meaning});
  }
  return all;
}

class Io : public Source {
 public:
  explicit Io(const Roots& roots) : roots_(roots) {}

  void follow(const std::vector<Group>& groups) override {
    totals_.follow(groups);
    std::map<pid_t, std::pair<std::uint64_t, KeptFile>> files;
    for (const Group& group : groups) {
      for (const Member& member : group.members) {
        const auto known = files_.find(member.pid);
        if (known != files_.end() && known->second.first == member.start_ticks) {
          files.insert(files_.extract(known));
        } else {
          files.try_emplace(member.pid, member.start_ticks,
                            KeptFile(roots_.proc + "/" + std::to_string(member.pid) + "/io"));
        }
      }
    }
    files_ = std::move(files);
  }

  void sample(Sink& sink) override {
    totals_.sample([&](const Member& member, MemberTotals::Values& values) {
      const auto file = files_.find(member.pid);
      if (file == files_.end()) return false;
      const std::string_view text = file->second.second.read();
      for (std::size_t i = 0; i < kCounters.size(); i++) {
        const auto number = number_after(text, kCounters[i].key);
        if (!number) return false;
        values[i] = *number;
      }
      return true;
    });
    totals_.tell(sink);
  }

 private:
  Roots roots_;
  MemberTotals totals_{counters(), true};
  std::map<pid_t, std::pair<std::uint64_t, KeptFile>> files_;
};

Result<std::unique_ptr<Source>> open(const Roots& roots) {
  KeptFile own(roots.proc + "/self/io");
  if (!number_after(own.read(), "rchar")) {
    return fail({ErrorKind::unsupported, "the kernel keeps no account of reads and writes per process", own.path(),
                 std::nullopt, "A kernel built with CONFIG_TASK_IO_ACCOUNTING has it"});
  }
  return std::make_unique<Io>(roots);
}

}  // namespace

Collector io_collector() { return {"io", "bytes that each rank reads and writes", 100, open}; }

}  // namespace stepscope::collect::telemetry
