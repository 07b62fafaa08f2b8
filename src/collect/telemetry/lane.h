// One thread of the sampler: collectors, each on its time, and what else is done again and again.
//
// A driver may hang, and with it the thread that asks. So the thread holds all that it uses, and one that does not come
// to its end is left behind: it has no file any more, and nobody waits for it.
#pragma once

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <thread>
#include <vector>

#include "collect/telemetry/collector.h"
#include "collect/telemetry/sample_file.h"

namespace stepscope::collect::telemetry {

// A collector that is not there, and why.
struct Absent {
  std::string collector;
  Error why;
};

class Lane {
 public:
  using Clock = std::chrono::steady_clock;

  Lane(std::shared_ptr<SampleFile> file, Roots roots) : file_(std::move(file)), roots_(std::move(roots)) {}

  static constexpr int kOnlyOpened = 0;  // in place of an interval: it is closed again, and needs no file

  // Before it begins: what it does. A collector is opened by the thread, since that may hang as well.
  void add(const Collector& collector, int interval_ms) { wanted_.push_back({collector, interval_ms}); }
  void every(std::int64_t interval_ns, std::function<void()> act) {
    chores_.push_back({Due(interval_ns), std::move(act)});
  }

  void at_the_end(std::function<void()> act) { last_ = std::move(act); }

  static void begin(const std::shared_ptr<Lane>& lane);
  bool is_open_by(Clock::time_point deadline);  // waits until all collectors are opened
  std::vector<Absent> absent() const;           // of those that were opened
  void follow(std::vector<Group> groups);       // from any thread; they are followed from the next round on
  std::int64_t cpu_ns() const { return cpu_ns_; }

  void end();                              // asks it to
  bool leave_by(Clock::time_point until);  // waits so long for its end; false: it is left behind

 private:
  // When something is due again: on a grid that all have in common, so that the thread wakes up once for what is due at
  // the same time, and a late sample does not shift all that follow.
  class Due {
   public:
    explicit Due(std::int64_t every_ns) : every_ns_(every_ns) {}
    std::int64_t at() const { return at_ns_; }
    void done(std::int64_t now_ns);

   private:
    std::int64_t every_ns_, at_ns_ = 0;
  };
  struct Wanted {
    Collector collector;
    int interval_ms;
  };
  struct Chore {
    Due due;
    std::function<void()> act;
  };
  struct Running {
    std::unique_ptr<Source> source;
    Due due;
  };

  void run();
  void open();
  std::int64_t round();  // when the next one is due
  void take_groups();
  bool ends_before(std::int64_t next_ns);
  void tell(bool& state);  // that it is so now

  std::shared_ptr<SampleFile> file_;
  Roots roots_;
  std::vector<Wanted> wanted_;
  std::vector<Chore> chores_;
  std::function<void()> last_;
  std::vector<Running> sources_;  // of the thread alone
  std::atomic<std::int64_t> cpu_ns_{0};
  std::thread thread_;

  mutable std::mutex mutex_;  // of what follows
  std::condition_variable changed_;
  std::vector<Absent> absent_;
  std::optional<std::vector<Group>> handed_;
  bool is_open_ = false, ends_ = false, ended_ = false, is_left_ = false;
};

}  // namespace stepscope::collect::telemetry
