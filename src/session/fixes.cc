#include "session/fixes.h"

#include <fmt/format.h>

#include <map>
#include <optional>
#include <set>
#include <string>
#include <variant>

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

// Time per step that each finding explains; of two of one id together.
std::map<std::string, std::int64_t> explained(const Answer& advice) {
  std::map<std::string, std::int64_t> out;
  const Table& partition = *advice.table("partition");
  std::size_t finding = 0, time = 0;
  for (std::size_t i = 0; i < partition.columns.size(); i++) {
    if (partition.columns[i].name == "finding") finding = i;
    if (partition.columns[i].name == "time_ns") time = i;
  }
  for (const auto& row : partition.rows) {
    const auto* id = std::get_if<std::string>(&row[finding]);
    const auto* ns = std::get_if<std::int64_t>(&row[time]);
    if (id != nullptr && ns != nullptr) out[*id] += *ns;
  }
  return out;
}

std::string place_of(const Finding& finding) {
  const Place& where = finding.where;
  if (where.file && where.line) return fmt::format("{}:{}", *where.file, *where.line);
  if (where.op) return *where.op;
  return where.module.value_or("");
}

// By the steps that the predictions are about: those that nobody recorded, where they were marked.
std::optional<double> real_speedup(const Answer& before, const Answer& after) {
  const auto step_ns = [](const Answer& advice) {
    const Scalar* step = advice.scalar("step_ns");
    const auto* ns = step == nullptr ? nullptr : std::get_if<std::int64_t>(&step->value);
    return ns == nullptr ? 0 : *ns;
  };
  if (step_ns(before) <= 0 || step_ns(after) <= 0) return std::nullopt;
  return static_cast<double>(step_ns(before)) / static_cast<double>(step_ns(after));
}

// A gain that may be none, since nobody knows what runs there, is no prediction to hold against the second run.
bool promises(const Finding& finding) { return finding.gain && finding.gain->speedup_low > 1; }

}  // namespace

void add_fixes(const Run& a, const Run& b, Answer& comparison) {
  const std::optional<Answer> before = advice_on(a), after = advice_on(b);
  if (!before || !after) return;
  const std::map<std::string, std::int64_t> then = explained(*before), now = explained(*after);
  Table table{
      .name = "fixes",
      .columns = {{"finding", ValueType::text, Unit::none, "What was found in the first run"},
                  {"place", ValueType::text, Unit::none, "Where; unknown: it has no place"},
                  {"before_ns", ValueType::integer, Unit::ns, "Time of a step that it explains there"},
                  {"after_ns", ValueType::integer, Unit::ns, "The same in the second run"},
                  {"mended", ValueType::boolean, Unit::none, "Half of that time or more is gone"},
                  {"predicted_low", ValueType::real, Unit::none, "How many times as fast steps were to be, at least"},
                  {"predicted_high", ValueType::real, Unit::none, "And at most"}}};
  const Finding* only = nullptr;
  std::size_t mended = 0;
  std::set<std::string> told;  // several of one id explain their time together: the one worth most stands for them
  for (const Finding& finding : before->findings) {
    const auto at = then.find(finding.id);
    if (at == then.end() || !promises(finding) || !told.insert(finding.id).second) continue;
    const auto left = now.find(finding.id);
    const std::int64_t left_ns = left == now.end() ? 0 : left->second;
    const bool gone = static_cast<double>(left_ns) < kGone * static_cast<double>(at->second);
    if (gone && mended++ == 0) only = &finding;
    const std::string place = place_of(finding);
    table.rows.push_back({finding.id, place.empty() ? Value() : Value(place), at->second, left_ns, gone,
                          finding.gain->speedup_low, finding.gain->speedup_high});
  }
  if (mended == 0) return;
  comparison.tables.push_back(std::move(table));
  const std::optional<double> real = real_speedup(*before, *after);
  if (!real) return;
  if (mended > 1) {
    comparison.notes.push_back(
        fmt::format("{} findings of the first run are gone; together they made steps {:.2f}x as fast.", mended, *real));
    return;
  }
  const Gain& gain = *only->gain;
  const double middle = worth(*only);
  comparison.notes.push_back(
      fmt::format("{} is gone: {:.2f}x to {:.2f}x as fast were predicted, {:.2f}x is real ({:+.1f} % of the middle).",
                  only->id, gain.speedup_low, gain.speedup_high, *real, 100 * (*real / middle - 1)));
}

}  // namespace stepscope::session
