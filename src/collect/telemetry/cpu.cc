// CPU time of each rank with all that works for it, and of its main thread alone: one core is all that a Python program
// has there. From the kernel's process clocks and /proc/PID/task/PID/schedstat, both in ns; the ticks of /proc/PID/stat
// are too coarse.
#include <ctime>
#include <map>

#include "collect/telemetry/collector.h"
#include "collect/telemetry/kept_file.h"
#include "collect/telemetry/member_totals.h"
#include "collect/telemetry/numbers.h"

namespace stepscope::collect::telemetry {
namespace {

using run::SeriesKind;

class Cpu : public Source {
 public:
  explicit Cpu(const Roots& roots) : roots_(roots) {}

  void follow(const std::vector<Group>& groups) override {
    totals_.follow(groups);
    main_.clear();
    for (const Group& group : groups) {
      const std::string pid = std::to_string(group.members.front().pid);
      main_.emplace_back(group.target, KeptFile(roots_.proc + "/" + pid + "/task/" + pid + "/schedstat"));
    }
  }

  void sample(Sink& sink) override {
    totals_.sample([&](const Member& member, MemberTotals::Values& values) {
      const auto ns = roots_.cpu_ns(member.pid);
      if (ns) values = {*ns};
      return ns.has_value();
    });
    for (const auto& [target, values] : totals_.all()) {
      sink.add(sink.series({"cpu", "cpu_time", target, "ns", SeriesKind::counter,
                            "CPU time of all threads of the rank, its data loading workers and other children"}),
               values[0]);
    }
    for (auto& [target, file] : main_) {
      const std::string_view text = file.read();
      std::size_t at = 0;
      const auto ran = next_number(text, at), waited = next_number(text, at);
      if (!ran || !waited) continue;
      sink.add(sink.series({"cpu", "main_thread_time", target, "ns", SeriesKind::counter,
                            "CPU time of the main thread of the rank, which is one core at most"}),
               *ran);
      sink.add(sink.series({"cpu", "main_thread_wait", target, "ns", SeriesKind::counter,
                            "Time in which the main thread could have run and had no core"}),
               *waited);
    }
  }

 private:
  Roots roots_;
  MemberTotals totals_{1};
  std::vector<std::pair<std::string, KeptFile>> main_;
};

Result<std::unique_ptr<Source>> open(const Roots& roots) { return std::make_unique<Cpu>(roots); }

}  // namespace

std::optional<std::int64_t> process_cpu_ns(pid_t pid) {
  clockid_t clock = 0;
  timespec time{};
  if (clock_getcpuclockid(pid, &clock) != 0 || clock_gettime(clock, &time) != 0) return std::nullopt;
  return std::int64_t{time.tv_sec} * 1'000'000'000 + time.tv_nsec;
}

Collector cpu_collector() { return {"cpu", "CPU time of each rank and of its main thread", 100, open}; }

}  // namespace stepscope::collect::telemetry
