#include "session/fixes.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <tuple>
#include <utility>
#include <variant>
#include <vector>

#include "diagnose/diagnosis.h"
#include "model/finding_order.h"
#include "session/player.h"

namespace stepscope::session {
namespace {

// So much of the time that a finding explains has to be gone for it to count as mended.
constexpr double kGone = 0.5;

std::optional<Answer> advice_on(const Run& run) {
  Player player(run, Player::Patience::of_a_report);
  Result<Answer> made = titled_advice(run, player);
  if (!made || made->table("partition") == nullptr) return std::nullopt;
  return *std::move(made);
}

// Time per step that findings explain; of several of one id together.
std::map<std::string, std::int64_t> times_by_id(const Answer& advice) {
  std::map<std::string, std::int64_t> out;
  for (const auto& row : advice.table("partition")->rows) {
    const auto* id = std::get_if<std::string>(&row[diagnose::partition::kFinding]);
    const auto* ns = std::get_if<std::int64_t>(&row[diagnose::partition::kTime]);
    if (id != nullptr && ns != nullptr) out[*id] += *ns;
  }
  return out;
}

// What a finding is about, whatever the line: that moves with each change of the file.
using About = std::tuple<std::string, std::string, std::string>;  // id, file, function or operator

About about(const Finding& finding) {
  const Place& where = finding.where;
  return {finding.id, where.file.value_or(""), where.function.value_or(where.op.value_or(""))};
}

// Time per step that each finding of an advice explains. What findings of one id explain together the partition knows,
// and each one's own part its share of the steps.
class Explained {
 public:
  explicit Explained(const Answer& advice) : by_id_(times_by_id(advice)) {
    const std::int64_t step_ns = advice.whole("step_ns").value_or(0);
    for (const Finding& finding : advice.findings) {
      count_[finding.id]++;
      for (const Evidence& evidence : finding.evidence) {
        const auto* share = std::get_if<double>(&evidence.value);
        if (evidence.text != "Of the steps" || share == nullptr) continue;
        own_[about(finding)] += std::llround(*share * static_cast<double>(step_ns));
      }
    }
  }

  bool has_several(const std::string& id) const {
    const auto at = count_.find(id);
    return at != count_.end() && at->second > 1;
  }
  std::int64_t together(const std::string& id) const { return value(by_id_, id); }
  std::int64_t alone(const Finding& finding) const { return value(own_, about(finding)); }

 private:
  template <class Key>
  static std::int64_t value(const std::map<Key, std::int64_t>& times, const Key& key) {
    const auto at = times.find(key);
    return at == times.end() ? 0 : at->second;
  }

  std::map<std::string, std::int64_t> by_id_;
  std::map<std::string, std::size_t> count_;
  std::map<About, std::int64_t> own_;
};

std::string place_of(const Finding& finding) {
  const Place& where = finding.where;
  if (where.file && where.line) return fmt::format("{}:{}", *where.file, *where.line);
  if (where.op) return *where.op;
  return where.module.value_or("");
}

std::optional<double> real_speedup(const Answer& before, const Answer& after) {
  // By the steps that predictions are about: those that nobody recorded, where they were marked.
  const std::int64_t before_ns = before.whole("step_ns").value_or(0), after_ns = after.whole("step_ns").value_or(0);
  if (before_ns <= 0 || after_ns <= 0) return std::nullopt;
  return static_cast<double>(before_ns) / static_cast<double>(after_ns);
}

// A gain that may be none, since nobody knows what runs there, is no prediction to hold against the second run.
bool promises(const Finding& finding) { return finding.gain && finding.gain->speedup_low > 1; }

Finding what_it_gave(const std::vector<const Finding*>& gone, double real) {
  Finding finding{.id = "finding_gone",
                  .cause = "change",
                  .gain_reason = "It has been measured.",
                  .confidence = "high",
                  .next = "Ask what is worth most now: stepscope advise on the second run"};
  const Finding& first = *gone.front();
  if (gone.size() > 1) {
    std::string ids;
    for (const Finding* one : gone) ids += (ids.empty() ? "" : ", ") + one->id;
    finding.sentence = fmt::format("{} findings of the first run are gone; together they made steps {:.2f}x as fast",
                                   gone.size(), real);
    finding.evidence.push_back({.text = ids, .value = Value()});
    return finding;
  }
  const Gain& gain = *first.gain;
  finding.where = first.where;
  finding.sentence = fmt::format(
      "{} of the first run is gone: {:.2f}x to {:.2f}x as fast were predicted, {:.2f}x is "
      "real ({:+.1f} % of the middle)",
      first.id, gain.speedup_low, gain.speedup_high, real, 100 * (real / worth(first) - 1));
  return finding;
}

}  // namespace

void add_fixes(const Run& a, const Run& b, Answer& comparison) {
  const std::optional<Answer> before = advice_on(a), after = advice_on(b);
  if (!before || !after) return;
  const Explained then(*before), now(*after);
  Table table{
      .name = "fixes",
      .columns = {{"finding", ValueType::text, Unit::none, "What was found in the first run"},
                  {"place", ValueType::text, Unit::none, "Where; unknown: it has no place"},
                  {"before_ns", ValueType::integer, Unit::ns, "Time of a step that it explains there"},
                  {"after_ns", ValueType::integer, Unit::ns, "The same in the second run"},
                  {"mended", ValueType::boolean, Unit::none, "Half of that time or more is gone"},
                  {"predicted_low", ValueType::real, Unit::none, "How many times as fast steps were to be, at least"},
                  {"predicted_high", ValueType::real, Unit::none, "And at most"}}};
  std::vector<const Finding*> gone;
  std::set<std::string> told;
  std::set<About> told_apart;  // functions of one name in a file stand for one another
  for (const Finding& finding : before->findings) {
    if (!promises(finding)) continue;
    const bool apart = then.has_several(finding.id) && then.alone(finding) > 0;
    // The one worth most stands for them.
    if (apart ? !told_apart.insert(about(finding)).second : !told.insert(finding.id).second) continue;
    const std::int64_t then_ns = apart ? then.alone(finding) : then.together(finding.id);
    const std::int64_t left_ns = apart ? now.alone(finding) : now.together(finding.id);
    if (then_ns <= 0) continue;
    // A function of another name may have it now: then there is as much of it as before.
    const std::int64_t less_ns = then.together(finding.id) - now.together(finding.id);
    const double half_ns = kGone * static_cast<double>(then_ns);
    const bool is_less = static_cast<double>(less_ns) >= half_ns;
    const bool is_gone = is_less && static_cast<double>(left_ns) <= half_ns;
    if (is_gone) gone.push_back(&finding);
    const std::string place = place_of(finding);
    table.rows.push_back({finding.id, place.empty() ? Value() : Value(place), then_ns, left_ns, is_gone,
                          finding.gain->speedup_low, finding.gain->speedup_high});
  }
  if (gone.empty()) return;
  // What comes and goes with the machine, and what hardly anything would give, is no fix to speak of beside one.
  const auto small = std::remove_if(gone.begin() + 1, gone.end(),
                                    [](const Finding* finding) { return worth(*finding) < kWorthAdvice; });
  gone.erase(small, gone.end());
  comparison.tables.insert(comparison.tables.begin(), std::move(table));
  if (const std::optional<double> real = real_speedup(*before, *after)) {
    comparison.findings.insert(comparison.findings.begin(), what_it_gave(gone, *real));
  }
}

}  // namespace stepscope::session
