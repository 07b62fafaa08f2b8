#include "session/shared_time.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "diagnose/diagnosis.h"
#include "model/answer_parts.h"
#include "model/finding_order.h"

namespace stepscope::session {
namespace {

namespace part = diagnose::part;

// Rows of the partition in which a change may save time.
struct Changed {
  std::vector<std::string_view> parts;
  bool all_but = false;                   // those parts
  std::optional<std::int64_t> rank = {};  // none: of all

  bool has(const std::vector<Value>& row) const {
    const auto* name = std::get_if<std::string>(&row[diagnose::partition::kPart]);
    return name != nullptr && (std::find(parts.begin(), parts.end(), *name) != parts.end()) != all_but &&
           (!rank || row[diagnose::partition::kRank] == Value(*rank));
  }
  std::string query(std::string_view explained_by) const {
    return fmt::format("select * from advice_partition where part {}in ('{}'){} and {}", all_but ? "not " : "",
                       fmt::join(parts, "', '"), rank ? fmt::format(" and rank = {}", *rank) : "",
                       diagnose::is_explained_by(explained_by));
  }
};

// nullopt: of that change it is not known.
std::optional<Changed> changed_by(const Change& change) {
  switch (change.kind) {
    case ChangeKind::data_loader: return Changed{.parts = {part::kDataLoader}};
    case ChangeKind::overlap:
    case ChangeKind::bandwidth: return Changed{.parts = {part::kCommunication}};
    // A wait in which the device works costs what the thread does behind it, until the device has work again.
    case ChangeKind::no_waits:
      return Changed{
          .parts = {part::kWait, part::kOperators, part::kLaunches, part::kBetweenOperators, part::kToDevice}};
    case ChangeKind::level_rank: return Changed{.parts = {part::kCommunication}, .all_but = true, .rank = change.rank};
    case ChangeKind::scale:
      if (change.target != "host:*") return std::nullopt;
      return Changed{.parts = {part::kOperators, part::kLaunches, part::kBetweenOperators, part::kDataLoader}};
    case ChangeKind::set_duration:
    case ChangeKind::ranks:
    case ChangeKind::fuse: return std::nullopt;
  }
  return std::nullopt;
}

std::int64_t time_of(const std::vector<Value>& row) {
  const auto* time_ns = std::get_if<std::int64_t>(&row[diagnose::partition::kTime]);
  return time_ns == nullptr ? 0 : *time_ns;
}

bool is_explained(const std::vector<Value>& row, const std::string& id) {
  const auto* by = std::get_if<std::string>(&row[diagnose::partition::kExplainedBy]);
  return by != nullptr && (" " + *by + " ").find(" " + id + " ") != std::string::npos;
}

void say_of(const Table& partition, const Changed& changed, const Answer& advice, Finding& finding) {
  std::set<std::string_view> told;  // several findings may have one id
  for (const Finding& explained : advice.findings) {
    if (!told.insert(explained.id).second) continue;
    std::int64_t own_ns = 0, theirs_ns = 0, both_ns = 0;
    for (const auto& row : partition.rows) {
      const std::int64_t time_ns = time_of(row);
      const bool is_own = changed.has(row), is_theirs = is_explained(row, explained.id);
      if (is_own) own_ns += time_ns;
      if (is_theirs) theirs_ns += time_ns;
      if (is_own && is_theirs) both_ns += time_ns;
    }
    const auto smaller = static_cast<double>(std::min(own_ns, theirs_ns));
    if (both_ns == 0 || static_cast<double>(both_ns) < diagnose::kShared * smaller) continue;
    finding.evidence.push_back({.text = "Of where it may save, explained by " + explained.id,
                                .value = share(both_ns, own_ns),
                                .unit = Unit::ratio,
                                .query = changed.query(explained.id)});
  }
}

}  // namespace

void say_what_advice_explains(Report& report) {
  const Answer* advice = report.answer(kAdvice);
  const Table* partition = advice == nullptr ? nullptr : advice->table("partition");
  if (partition == nullptr) return;
  for (Answer& answer : report.answers) {
    if (answer.name == kAdvice) continue;
    for (Finding& finding : answer.findings) {
      if (finding.changes.size() != 1 || !finding.gain) continue;  // what promises nothing contradicts nothing
      if (const auto changed = changed_by(finding.changes.front())) say_of(*partition, *changed, *advice, finding);
    }
  }
}

}  // namespace stepscope::session
