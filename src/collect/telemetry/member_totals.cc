#include "collect/telemetry/member_totals.h"

#include <algorithm>
#include <set>
#include <utility>

namespace stepscope::collect::telemetry {

void MemberTotals::follow(const std::vector<Group>& groups) {
  const auto key = [](const Member& member) { return Key(member.pid, member.start_ticks); };
  std::multimap<Key, Known*> before;
  for (Known& known : members_) before.emplace(key(known.member), &known);
  std::vector<Known> members;
  std::set<const Known*> stay;
  std::set<pid_t> stay_pids;
  for (const Group& group : groups) {
    for (const Member& member : group.members) {
      Known one{member, group.target};
      if (is_new(member)) one.last = Values{};
      const auto [first, last] = before.equal_range(key(member));
      for (auto at = first; at != last; ++at) {
        stay.insert(at->second);
        stay_pids.insert(member.pid);
        if (at->second->target == group.target) {
          one = *at->second;
          break;
        }
        one.last = at->second->last;  // it works for another group now, which has its growth from here on
      }
      members.push_back(std::move(one));
    }
  }
  for (Known& known : members_) {
    if (!stay.contains(&known)) ends(known);
  }
  std::erase_if(inherited_, [&](const auto& one) { return !stay_pids.contains(one.first); });
  members_ = std::move(members);
}

bool MemberTotals::is_new(const Member& member) {
  constexpr std::size_t kMost = 10'000;  // jobs may start processes all day; who left long ago does not come back
  if (!member.began_watched) return false;
  if (began_.size() >= kMost) {
    std::erase_if(began_, [&](const Key& key) {
      return std::none_of(members_.begin(), members_.end(),
                          [&](const Known& known) { return Key(known.member.pid, known.member.start_ticks) == key; });
    });
  }
  return began_.insert({member.pid, member.start_ticks}).second;
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
  for (auto& [target, total] : totals_) total.is_read = false;
  for (auto known = members_.rbegin(); known != members_.rend(); ++known) {  // children before their parents
    if (known->ended) continue;                                              // its number may name another one
    Values values{};
    if (!read(known->member, values)) {
      ends(*known);
      continue;
    }
    if (known->total == nullptr) known->total = total_of(known->target);
    known->total->is_read = true;
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
    if (!total.is_read) continue;
    for (std::size_t i = 0; i < total.series.size(); i++) total.series[i].add(sink, total.values[i]);
  }
}

}  // namespace stepscope::collect::telemetry
