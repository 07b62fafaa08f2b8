#include <algorithm>
#include <cmath>
#include <string>

#include "analyze/snapshot/parts.h"
#include "model/answer_parts.h"
#include "snapshot/byte_sums.h"
#include "snapshot/curve.h"
#include "snapshot/growth.h"
#include "snapshot/growth_table.h"
#include "snapshot/stack_text.h"

namespace stepscope::analyze::device_memory {

using namespace snapshot;

namespace {

constexpr std::size_t kRows = 30;         // of a device
constexpr std::size_t kLeastMoments = 4;  // fewer tell no trend
constexpr double kLeastShare = 0.01;      // of the peak that a growth must be to be told
constexpr std::size_t kMostSteps = 1000;

Table steps_table() {
  return table_of("steps", {{"step", ValueType::text, Unit::none, "Step"},
                            {"end_bytes", ValueType::integer, Unit::bytes, "Held at its end, static blocks left out"},
                            {"peak_bytes", ValueType::integer, Unit::bytes, "Most held within it"},
                            {"peak_event", ValueType::integer, Unit::none, "Number of the event that reached it"},
                            {"events", ValueType::integer, Unit::count, "Events of the allocator within it"}});
}

void add_steps(Table& table, const View& view) {
  if (view.device->steps.empty()) return;
  const std::vector<std::int64_t> held = held_by_moment(view.history(), *view.device);
  const auto& steps = view.device->steps;
  for (std::size_t i = steps.size() - std::min(steps.size(), kMostSteps); i < steps.size(); i++) {
    const auto first = held.begin() + steps[i].begin, last = held.begin() + steps[i].end;
    const auto peak = std::max_element(first, last + 1);
    table.rows.push_back(
        row_of(view, {steps[i].name, *last, *peak, moment_event(view, static_cast<std::uint32_t>(peak - held.begin())),
                      static_cast<std::int64_t>(last - first)}));
  }
}

// Bytes of the whole device at each moment.
std::vector<std::int64_t> totals_of(const std::vector<StackGrowth>& all, std::size_t moments) {
  std::vector<std::int64_t> totals(moments);
  for (const StackGrowth& one : all) {
    for (std::size_t i = 0; i < moments; i++) totals[i] = plus(totals[i], one.bytes[i]);
  }
  return totals;
}

bool rises(const std::vector<std::int64_t>& totals) {
  std::size_t up = 0;
  for (std::size_t i = 1; i < totals.size(); i++) up += totals[i] > totals[i - 1] ? 1 : 0;
  return 5 * up >= 4 * (totals.size() - 1);
}

void find_leak(Parts& parts, const View& view, const GrowthMoments& when, const std::vector<StackGrowth>& all) {
  if (when.moments.size() < kLeastMoments) return;
  const std::vector<std::int64_t> totals = totals_of(all, when.moments.size());
  const std::int64_t growth = totals.back() - totals.front();
  const auto least = static_cast<std::int64_t>(kLeastShare * static_cast<double>(view.device->peak_bytes));
  if (!rises(totals) || growth < std::max<std::int64_t>(least, 1)) return;
  const auto steady = std::find_if(all.begin(), all.end(), [](const StackGrowth& one) { return one.steady(); });
  if (steady == all.end() || 4 * steady->growth() < growth) return;
  const std::string who = where_text(view.snapshot(), steady->stack);
  Finding finding{
      .id = "snapshot_growth",
      .cause = "memory",
      .sentence = when.are_steps ? "Held memory grows from step to step" : "Held memory grows over the whole recording",
      .where = {.rank = view.trace->rank.rank},
      .evidence = {{.text = "Grown", .value = growth, .unit = Unit::bytes},
                   {.text = "Of that by one stack that never shrinks", .value = steady->growth(), .unit = Unit::bytes},
                   {.text = "Moments looked at", .value = count(when.moments.size()), .unit = Unit::count}},
      .gain_reason = "It is about memory, not time.",
      .confidence = when.are_steps ? "high" : "low",
      .next =
          "See snapshot.growth for the stacks, and look for what keeps tensors with their graph (loss instead "
          "of loss.item() in a list, hooks, caches)"};
  if (!who.empty()) {
    finding.where.function = who;
    finding.evidence.push_back({.text = "Allocated by " + who, .value = {}, .unit = Unit::none});
  }
  parts.answer.findings.push_back(std::move(finding));
}

}  // namespace

void add_growth(Parts& parts) {
  Table growth = growth_table("growth"), steps = steps_table();
  std::set<std::string> sources;
  for (const View& view : parts.views) {
    add_steps(steps, view);
    const GrowthMoments when = growth_moments(*view.device);
    if (when.moments.size() < 2) continue;
    const std::vector<StackGrowth> all = growth_by_stack(view.history(), *view.device, when.moments);
    add_growth_rows(growth, view, when.moments, all, kRows, parts.told);
    find_leak(parts, view, when, all);
    sources.insert(when.source);
  }
  for (const std::string& source : sources) parts.answer.notes.push_back("Growth is between " + source + ".");
  parts.answer.tables.push_back(std::move(steps));
  parts.answer.tables.push_back(std::move(growth));
}

}  // namespace stepscope::analyze::device_memory
