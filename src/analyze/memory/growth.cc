#include "analyze/memory/growth.h"

#include <algorithm>
#include <map>
#include <set>
#include <tuple>

#include "model/answer_parts.h"

namespace stepscope::analyze::memory {
namespace {

std::int64_t whole_bytes(double value) { return static_cast<std::int64_t>(value); }

// Allocated bytes at an instant: those of the last point at or before it.
std::optional<std::size_t> point_at(const Curve& curve, std::int64_t time) {
  const auto after = std::upper_bound(curve.t_ns.begin(), curve.t_ns.end(), time);
  if (after == curve.t_ns.begin()) return std::nullopt;
  return static_cast<std::size_t>(after - curve.t_ns.begin()) - 1;
}

Table steps_table() {
  return {.name = "steps",
          .columns = {{"rank", ValueType::integer, Unit::none, "Rank"},
                      {"device", ValueType::text, Unit::none, "Device of the allocator"},
                      {"step", ValueType::text, Unit::none, "Step"},
                      {"partial", ValueType::boolean, Unit::none, "Is it cut by the edge of the recording?"},
                      {"start_bytes", ValueType::integer, Unit::bytes,
                       "Allocated when it began; unknown: before the first event"},
                      {"end_bytes", ValueType::integer, Unit::bytes, "Allocated when its host part ended"},
                      {"peak_bytes", ValueType::integer, Unit::bytes, "Most allocated in between"}}};
}

// The bytes at the ends of the whole steps that the events cover.
std::vector<std::int64_t> add_steps(Table& table, const Held& held) {
  std::vector<std::int64_t> ends;
  const Curve& curve = held.memory.allocated;
  for (const Step& step : held.trace->steps) {
    const auto first = point_at(curve, step.start_ns), last = point_at(curve, step.end_ns);
    if (!last) continue;
    const std::size_t from = first.value_or(0);
    const double peak = *std::max_element(curve.v.begin() + static_cast<std::ptrdiff_t>(from),
                                          curve.v.begin() + static_cast<std::ptrdiff_t>(*last) + 1);
    table.rows.push_back({held.rank(), held.memory.name(), text(step.name), step.partial,
                          first ? Value(whole_bytes(curve.v[*first])) : Value(), whole_bytes(curve.v[*last]),
                          whole_bytes(peak)});
    if (!step.partial) ends.push_back(whole_bytes(curve.v[*last]));
  }
  return ends;
}

// ---- who keeps what ----

// One place in the program that allocates: what it gets there in each step is alike.
struct Site {
  StringId op;
  Phase phase;
  std::string stack;
  friend bool operator<(const Site& a, const Site& b) {
    return std::tie(a.op, a.phase, a.stack) < std::tie(b.op, b.phase, b.stack);
  }
};

struct Kept {
  std::set<StepId> steps;  // that left something behind
  std::int64_t bytes = 0, allocations = 0;
  MemoryCategory category = MemoryCategory::unknown;
};

// What was allocated in a whole step and not freed in the recording. The last step still holds what it works with.
std::map<Site, Kept> kept_by_site(const Held& held) {
  std::map<Site, Kept> sites;
  const auto& steps = held.trace->steps;
  for (std::size_t at = 0; at < held.memory.allocations.size(); at++) {
    if (held.memory.allocations[at].freed != Allocation::never) continue;
    const StepId step = held.trace->step_at(held.start_ns(at));
    if (step == StepId::none || static_cast<std::size_t>(step) + 1 >= steps.size()) continue;
    if (steps[static_cast<std::size_t>(step)].partial) continue;
    Kept& kept = sites[{held.op_name(at), held.phase(at), stack_of(*held.trace, held.around[at])}];
    kept.steps.insert(step);
    kept.bytes += held.bytes(at);
    kept.allocations++;
    kept.category = held.use[at].category;
  }
  return sites;
}

// A place that leaves something behind again and again; what only the first step keeps (states, caches) is no growth.
bool grows(const Kept& kept) { return kept.steps.size() >= 3; }

// From where an operator is called in a phase, by the step recorded with stacks: of the largest allocation.
class OtherStacks {
 public:
  explicit OtherStacks(const std::vector<Trace>& traces) {
    for (const Trace& trace : traces) {
      for (const Held& held : held_memory(trace)) add(held);
    }
  }

  std::string of(std::int64_t rank, std::string_view op, Phase phase) const {
    const auto found = stacks_.find({rank, std::string(op), phase});
    return found == stacks_.end() ? "" : found->second.second;
  }

 private:
  void add(const Held& held) {
    for (std::size_t at = 0; at < held.memory.allocations.size(); at++) {
      auto& [bytes, stack] = stacks_[{held.rank(), std::string(held.trace->strings[held.op_name(at)]), held.phase(at)}];
      if (held.bytes(at) <= bytes) continue;
      bytes = held.bytes(at);
      stack = stack_of(*held.trace, held.around[at]);
    }
  }

  std::map<std::tuple<std::int64_t, std::string, Phase>, std::pair<std::int64_t, std::string>> stacks_;
};

Table growth_table() {
  return {.name = "growth",
          .columns = {{"rank", ValueType::integer, Unit::none, "Rank"},
                      {"device", ValueType::text, Unit::none, "Device of the allocator"},
                      {"op", ValueType::text, Unit::none, "Operator or range that allocated it"},
                      {"phase", ValueType::text, Unit::none, "Phase of the allocations"},
                      {"category", ValueType::text, Unit::none, "What they are used for"},
                      {"steps", ValueType::integer, Unit::count,
                       "Whole steps, but for the last one, in which it allocated what was not freed in the recording"},
                      {"bytes_per_step", ValueType::integer, Unit::bytes, "Bytes left behind in one of these steps"},
                      {"bytes", ValueType::integer, Unit::bytes, "Bytes left behind in all of them"},
                      {"allocations", ValueType::integer, Unit::count, "Allocations left behind"},
                      {"stack", ValueType::text, Unit::none,
                       "Python frames, innermost first; of the step recorded with stacks where the others have none; "
                       "unknown: not recorded"}}};
}

void add_sites(Table& table, const Held& held, const OtherStacks& others) {
  const std::size_t first = table.rows.size();
  for (const auto& [site, kept] : kept_by_site(held)) {
    if (!grows(kept)) continue;
    const std::string_view op = held.trace->strings[site.op];
    const std::string stack = site.stack.empty() ? others.of(held.rank(), op, site.phase) : site.stack;
    const auto steps = static_cast<std::int64_t>(kept.steps.size());
    table.rows.push_back({held.rank(), held.memory.name(), text(op), text(to_string(site.phase)),
                          text(to_string(kept.category)), steps, kept.bytes / steps, kept.bytes, kept.allocations,
                          text(stack)});
  }
  std::stable_sort(
      table.rows.begin() + static_cast<std::ptrdiff_t>(first), table.rows.end(),
      [](const auto& a, const auto& b) { return std::get<std::int64_t>(a[7]) > std::get<std::int64_t>(b[7]); });
}

// The end of nearly every step lies above the one before, and the sum is worth a look.
void find_growth(Answer& answer, const Held& held, const std::vector<std::int64_t>& ends, const Table& sites,
                 std::size_t first_site) {
  if (ends.size() < 4) return;
  std::size_t up = 0;
  for (std::size_t i = 2; i < ends.size(); i++) up += ends[i] > ends[i - 1];  // the first may fill caches
  const std::int64_t grown = ends.back() - ends[1];
  if (up * 10 < (ends.size() - 2) * 9 || grown < 1 << 20 || grown * 1000 < ends.back()) return;
  Finding finding{
      .id = "memory_growth",
      .cause = "memory",
      .sentence = "Memory of " + held.memory.name() + " grows from step to step, as with a leak",
      .where = {.rank = held.rank()},
      .evidence = {{.text = "Growth of a step",
                    .value = grown / static_cast<std::int64_t>(ends.size() - 2),
                    .unit = Unit::bytes},
                   {.text = "Steps in which it grew", .value = count(up), .unit = Unit::count},
                   {.text = "Steps compared", .value = count(ends.size() - 2), .unit = Unit::count}},
      .gain_reason = "It is about memory, not time.",
      .confidence = ends.size() >= 8 ? "medium" : "low",
      .next =
          "Look for tensors that are kept with their graph (loss instead of loss.item() in a list, hooks, caches); "
          "memory.growth says which operators left memory behind in many steps, and from where they are called"};
  if (first_site < sites.rows.size()) {
    const auto& row = sites.rows[first_site];
    if (const auto* op = std::get_if<std::string>(&row[2])) finding.where.op = *op;
    finding.where.phase = std::get<std::string>(row[3]);
    finding.evidence.push_back(
        {.text = "Of it, left behind by this operator in a step", .value = row[6], .unit = Unit::bytes});
    if (const auto* stack = std::get_if<std::string>(&row[9])) {
      finding.evidence.push_back({.text = "It is called from", .value = *stack, .unit = Unit::none});
    }
  }
  answer.findings.push_back(std::move(finding));
}

}  // namespace

void add_growth(Answer& answer, const std::vector<Held>& all, const std::vector<Trace>& stack_steps) {
  Table steps = steps_table(), sites = growth_table();
  const OtherStacks others(stack_steps);
  for (const Held& held : all) {
    const std::vector<std::int64_t> ends = add_steps(steps, held);
    const std::size_t first = sites.rows.size();
    add_sites(sites, held, others);
    find_growth(answer, held, ends, sites, first);
  }
  answer.tables.push_back(std::move(steps));
  answer.tables.push_back(std::move(sites));
}

}  // namespace stepscope::analyze::memory
