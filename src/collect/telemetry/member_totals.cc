#include "collect/telemetry/member_totals.h"

#include <algorithm>

namespace stepscope::collect::telemetry {

void MemberTotals::follow(const std::vector<Group>& groups) {
  std::vector<Known> members;
  for (const Group& group : groups) {
    for (const Member& member : group.members) {
      const auto known = std::find_if(members_.begin(), members_.end(), [&](const Known& one) {
        return one.member == member && one.target == group.target;
      });
      members.push_back(known == members_.end() ? Known{member, group.target} : *known);
    }
  }
  for (Known& known : members_) {
    const bool stays = std::any_of(members.begin(), members.end(), [&](const Known& one) {
      return one.member == known.member && one.target == known.target;
    });
    if (!stays) ends(known);
  }
  members_ = std::move(members);
}

void MemberTotals::ends(Known& known) {
  if (known.ended || !known.last) return;
  known.ended = true;
  if (!parents_inherit_) return;
  Values& inherited = inherited_[known.member.parent];
  for (std::size_t i = 0; i < inherited.size(); i++) inherited[i] += (*known.last)[i];
}

MemberTotals::Total* MemberTotals::total_of(const std::string& target) {
  const auto [total, is_new] = totals_.try_emplace(target);
  if (is_new) {
    for (run::SeriesAbout about : counters_) {
      about.target = target;
      total->second.series.emplace_back(std::move(about));
    }
  }
  return &total->second;
}

void MemberTotals::sample(const std::function<bool(const Member&, Values&)>& read) {
  for (auto known = members_.rbegin(); known != members_.rend(); ++known) {  // children before their parents
    Values values{};
    if (!read(known->member, values)) {
      ends(*known);
      continue;
    }
    if (known->total == nullptr) known->total = total_of(known->target);
    if (known->last) {
      const auto inherited = inherited_.find(known->member.pid);
      for (std::size_t i = 0; i < values.size(); i++) {
        std::int64_t grown = std::max<std::int64_t>(0, values[i] - (*known->last)[i]);
        if (inherited != inherited_.end()) {
          const std::int64_t known_before = std::min(grown, inherited->second[i]);
          inherited->second[i] -= known_before;
          grown -= known_before;
        }
        known->total->values[i] += grown;
      }
    }
    known->last = values;
  }
}

void MemberTotals::tell(Sink& sink) {
  for (auto& [target, total] : totals_) {
    for (std::size_t i = 0; i < total.series.size(); i++) total.series[i].add(sink, total.values[i]);
  }
}

}  // namespace stepscope::collect::telemetry
