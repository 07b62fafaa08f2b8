// Counters of processes that come and go, added up by the group that they work for. What a process counted until it was
// seen last stays in the sum, so that the sum never falls. One that comes counts from its first reading on: what it did
// before may be counted elsewhere (a fork), or was before we looked.
//
// Some counters go over to the parent when a child has ended and was waited for. What was counted of the child already
// is taken off the parent's growth then.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "collect/telemetry/collector.h"

namespace stepscope::collect::telemetry {

class MemberTotals {
 public:
  using Values = std::vector<std::int64_t>;

  explicit MemberTotals(std::size_t counters, bool parents_inherit = false)
      : counters_(counters), parents_inherit_(parents_inherit) {}

  void follow(const std::vector<Group>& groups);
  // `read` fills the counters of a process, or answers false: it has ended or may not be read.
  void sample(const std::function<bool(const Member&, Values&)>& read);
  // By target; only groups of which something could be read.
  const std::map<std::string, Values>& all() const { return totals_; }

 private:
  struct Known {
    Member member;
    std::string target;
    Values last;  // empty: not read yet
    bool ended = false;
  };
  void ends(Known& known);

  std::size_t counters_;
  bool parents_inherit_;
  std::map<pid_t, Values> inherited_;  // by a parent, and counted before
  std::vector<Known> members_;
  std::map<std::string, Values> totals_;
};

}  // namespace stepscope::collect::telemetry
