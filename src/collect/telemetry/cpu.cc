// CPU time of each rank with all that works for it, and of its main thread alone: one core is all that a Python program
// has there. From the kernel's process clocks and /proc/PID/task/PID/schedstat, both in ns; the ticks of /proc/PID/stat
// are too coarse.
#include <ctime>
#include <map>
#include <vector>

#include "collect/telemetry/collector.h"
#include "collect/telemetry/kept_file.h"
#include "collect/telemetry/kept_series.h"
#include "collect/telemetry/member_totals.h"
#include "collect/telemetry/numbers.h"

namespace stepscope::collect::telemetry {
namespace {

run::SeriesAbout counter(const char* name, const char* meaning, const std::string& target = {}) {
  return {"cpu", name, target, "ns", run::SeriesKind::counter, meaning};
}

class MainThread {
 public:
  explicit MainThread(const std::string& target)
      : ran_(counter("main_thread_time", "CPU time of the main thread of the rank, which is one core at most", target)),
        waited_(counter("main_thread_wait", "Time in which the main thread could have run and had no core", target)) {}

  // Where the rank was started anew, its counters go on.
  void follow(const Roots& roots, const Member& process) {
    if (process == process_) return;
    const std::string pid = std::to_string(process.pid);
    process_ = process;
    file_ = KeptFile(roots.proc + "/" + pid + "/task/" + pid + "/schedstat");
    ran_.begin_anew();
    waited_.begin_anew();
  }

  void sample(Sink& sink) {
    const std::string_view text = file_.read();
    std::size_t at = 0;
    const auto ran = next_number(text, at), waited = next_number(text, at);
    if (!ran || !waited) return;
    ran_.add(sink, *ran);
    waited_.add(sink, *waited);
  }

 private:
  Member process_;
  KeptFile file_{""};
  Growth ran_, waited_;
};

class Cpu : public Source {
 public:
  explicit Cpu(const Roots& roots) : roots_(roots) {}

  void follow(const std::vector<Group>& groups) override {
    totals_.follow(groups);
    followed_.clear();
    for (const Group& group : groups) {
      MainThread& main = main_.try_emplace(group.target, group.target).first->second;
      main.follow(roots_, group.members.front());
      followed_.push_back(&main);
    }
  }

  void sample(Sink& sink) override {
    totals_.sample([&](const Member& member, MemberTotals::Values& values) {
      const auto ns = roots_.cpu_ns(member.pid);
      if (ns) values = {*ns};
      return ns.has_value();
    });
    totals_.tell(sink);
    for (MainThread* const one : followed_) one->sample(sink);
  }

 private:
  Roots roots_;
  MemberTotals totals_{
      {counter("cpu_time", "CPU time of all threads of the rank, its data loading workers and other children")}};
  std::map<std::string, MainThread> main_;  // by target; those that are gone may come again, and go on
  std::vector<MainThread*> followed_;
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
