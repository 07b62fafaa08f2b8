#include "session/shared_time.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "diagnose/diagnosis.h"
#include "model/answer_parts.h"
#include "model/finding_order.h"

namespace stepscope::session {
namespace {

namespace part = diagnose::part;

// Rows of the partition from which a change takes time.
struct Changed {
  std::vector<std::string_view> parts;
  std::optional<std::int64_t> rank = {};  // none: of all

  bool has(const std::vector<Value>& row) const {
    const auto* name = std::get_if<std::string>(&row[diagnose::partition::kPart]);
    return name != nullptr && std::find(parts.begin(), parts.end(), *name) != parts.end() &&
           (!rank || row[diagnose::partition::kRank] == Value(*rank));
  }
  std::string query() const {
    return fmt::format("select * from advice_partition where part in ('{}'){}", fmt::join(parts, "', '"),
                       rank ? fmt::format(" and rank = {}", *rank) : "");
  }
};

// Nothing: of that change it is not known.
Changed changed_by(const Change& change) {
  switch (change.kind) {
    case ChangeKind::data_loader: return {.parts = {part::kDataLoader}};
    case ChangeKind::overlap:
    case ChangeKind::bandwidth: return {.parts = {part::kCommunication}};
    // A wait in which the device works costs what the thread does behind it, until the device has work again.
    case ChangeKind::no_waits:
      return {.parts = {part::kWait, part::kOperators, part::kLaunches, part::kBetweenOperators, part::kToDevice}};
    case ChangeKind::level_rank:
      return {.parts = {part::kOperators, part::kLaunches, part::kBetweenOperators, part::kDataLoader,
                        part::kDeviceCompute},
              .rank = change.rank};
    case ChangeKind::scale:
      if (change.target == "host:*")
        return {.parts = {part::kOperators, part::kLaunches, part::kBetweenOperators}, .rank = change.rank};
      return {};
    case ChangeKind::set_duration:
    case ChangeKind::ranks:
    case ChangeKind::fuse: return {};
  }
  return {};
}

void say_of(const Table& partition, const Changed& changed, const Answer& advice, Finding& finding) {
  // Less than this of the time of either is no reason to doubt the sum of their gains.
  constexpr double kShared = 0.1;
  std::int64_t own_ns = 0;
  std::map<std::string, std::int64_t> theirs_ns, both_ns;
  for (const auto& row : partition.rows) {
    const auto time_ns = std::get<std::int64_t>(row[diagnose::partition::kTime]);
    const auto* explained_by = std::get_if<std::string>(&row[diagnose::partition::kExplainedBy]);
    const bool is_own = changed.has(row);
    if (is_own) own_ns += time_ns;
    for (const Finding& explained : advice.findings) {
      // Names stand between blanks.
      if (explained_by == nullptr || (" " + *explained_by + " ").find(" " + explained.id + " ") == std::string::npos)
        continue;
      theirs_ns[explained.id] += time_ns;
      if (is_own) both_ns[explained.id] += time_ns;
    }
  }
  for (const Finding& explained : advice.findings) {
    const std::int64_t both = both_ns[explained.id];
    both_ns.erase(explained.id);  // of two findings with one name once
    const double smaller = static_cast<double>(std::min(own_ns, theirs_ns[explained.id]));
    if (both == 0 || static_cast<double>(both) < kShared * smaller) continue;
    finding.evidence.push_back({.text = "Of the time that this takes from also explained by " + explained.id,
                                .value = share(both, own_ns),
                                .unit = Unit::ratio,
                                .query = changed.query()});
  }
}

}  // namespace

void say_what_is_shared(Report& report) {
  const Answer* advice = report.answer(kAdvice);
  const Table* partition = advice == nullptr ? nullptr : advice->table("partition");
  if (partition == nullptr) return;
  for (Answer& answer : report.answers) {
    if (answer.name == kAdvice) continue;
    for (Finding& finding : answer.findings) {
      if (finding.changes.size() != 1 || !finding.gain) continue;  // what promises nothing shares nothing
      const Changed changed = changed_by(finding.changes.front());
      if (!changed.parts.empty()) say_of(*partition, changed, *advice, finding);
    }
  }
}

}  // namespace stepscope::session
