// Counters of processes that come and go, added up by the group that they work for. What a process counted until it was
// seen last stays in the sum, so that the sum never falls. One that began while we watched counts from 0, one that was
// there before from its first reading on.
//
// Some counters go over to the parent when a child has ended and was waited for. What was counted of the child already
// is taken off the parent's growth then.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "collect/telemetry/collector.h"
#include "collect/telemetry/kept_series.h"

namespace stepscope::collect::telemetry {

class MemberTotals {
 public:
  static constexpr std::size_t kMostCounters = 4;
  using Values = std::array<std::int64_t, kMostCounters>;

  // The counters of each process, in the order of its values; their target is the group's.
  explicit MemberTotals(std::vector<run::SeriesAbout> counters, bool parents_inherit = false)
      : counters_(std::move(counters)), parents_inherit_(parents_inherit) {}

  void follow(const std::vector<Group>& groups);
  // `read` fills the counters of a process, or answers false: it has ended or may not be read.
  void sample(const std::function<bool(const Member&, Values&)>& read);
  // The sums of all groups of which something could be read this time.
  void tell(Sink& sink);

 private:
  struct Total {
    Values values{};
    std::vector<Count> series;
    bool is_read = false;
  };
  struct Known {
    Member member;
    std::string target;
    std::optional<Values> last;  // none: not read yet
    Total* total = nullptr;      // of its group, from the first reading on
    bool ended = false;
  };
  using Key = std::pair<pid_t, std::uint64_t>;  // of a process: its number, and when it began
  void ends(Known& known);
  bool is_new(const Member& member);
  Total* total_of(const std::string& target);

  std::vector<run::SeriesAbout> counters_;
  bool parents_inherit_;
  std::map<pid_t, Values> inherited_;  // by a parent, and counted before
  std::vector<Known> members_;
  std::set<Key> began_;  // of those that count from 0: they do so once, also if they leave and come back
  std::map<std::string, Total> totals_;  // by target
};

}  // namespace stepscope::collect::telemetry
