#include "diff/diff.h"

#include <algorithm>
#include <cctype>
#include <cmath>
#include <map>

#include "diff/explain.h"
#include "diff/pairs.h"
#include "diff/rows.h"
#include "model/answer_parts.h"
#include "model/windows.h"

namespace stepscope::diff {
namespace {

constexpr std::string_view kSummary = "What changed between two runs, and is it more than noise?";
constexpr std::string_view kCannotTell =
    "One of the runs has fewer than three whole steps: it cannot be told whether a change is more than noise. Record "
    "at least three, better twenty.";

Value ns_of(double value) { return static_cast<std::int64_t>(std::llround(value)); }
Value ratio_of(double part, double whole) { return whole > 0 ? Value(part / whole) : Value(); }

// "runs/before.json.gz" → "runs/before".
std::string without_ending(const std::string& name) {
  const std::size_t slash = name.rfind('/');
  return name.substr(0, name.find('.', slash == name.npos ? 1 : slash + 2));
}

// What the two runs are called. Names that would burst a heading are told in a note; there they are A and B.
class Sides {
 public:
  explicit Sides(const Options& options)
      : name_a_(without_ending(options.name_a)), name_b_(without_ending(options.name_b)) {
    constexpr std::size_t kLongest = 16;
    if (name_a_ == name_b_) name_a_ = options.name_a, name_b_ = options.name_b;
    const auto fits = [](const std::string& name) { return !name.empty() && name.size() <= kLongest; };
    known_ = !name_a_.empty() && name_a_ != name_b_;
    named_ = known_ && fits(name_a_) && fits(name_b_);
    a = named_ ? "'" + name_a_ + "'" : "A";
    b = named_ ? "'" + name_b_ + "'" : "B";
  }

  std::string a, b;  // in a sentence

  // "time before" of time_a_ns; empty: the column's own name says it.
  std::string label_a(std::string_view what) const { return labelled(what, name_a_); }
  std::string label_b(std::string_view what) const { return labelled(what, name_b_); }
  std::string match(Match match) const {
    if (match != Match::only_a && match != Match::only_b) return std::string(to_string(match));
    return "only in " + (match == Match::only_a ? a : b);
  }
  std::optional<std::string> note() const {
    if (!known_ || named_) return std::nullopt;
    return "A is '" + name_a_ + "', B is '" + name_b_ + "'.";
  }

 private:
  std::string labelled(std::string_view what, const std::string& name) const {
    return named_ ? std::string(what) + (what.empty() ? "" : " ") + name : "";
  }

  std::string name_a_, name_b_;
  bool known_ = false, named_ = false;
};

struct Compared {
  explicit Compared(const Options& options) : sides(options) {}

  Sides sides;
  StringPool names;
  Side a, b;
  std::vector<Row> rows;
  Explanation explanation;
  std::size_t repeats = 0;  // of A, from which the noise is known
  bool can_tell = false;

  const Row& step() const { return rows.front(); }
};

// The kind of step with most time on both sides; nullopt: they have none in common.
std::optional<std::string> common_kind(const Run& a, const Run& b) {
  const auto in_a = step_kinds(a), in_b = step_kinds(b);
  std::optional<std::string> best;
  std::int64_t most = -1;
  for (const auto& [kind, time] : in_a) {
    const auto found = in_b.find(kind);
    if (found == in_b.end() || std::min(time, found->second) <= most) continue;
    most = std::min(time, found->second);
    best = kind;
  }
  return best;
}

std::string main_kind(const Run& run) {
  const auto kinds = step_kinds(run);
  const auto most =
      std::max_element(kinds.begin(), kinds.end(), [](const auto& x, const auto& y) { return x.second < y.second; });
  return most == kinds.end() ? "" : most->first;
}

void compare_runs(const Run& a, const Run& b, std::span<const Run* const> repeats, Compared& out) {
  const auto kind = common_kind(a, b);
  out.a = side_of(a, out.names, kind.value_or(main_kind(a)));
  out.b = side_of(b, out.names, kind.value_or(main_kind(b)));
  out.a.kinds = {kind.value_or(main_kind(a))};
  out.b.kinds = {kind.value_or(main_kind(b))};
  out.can_tell = out.a.walls.size() >= kFewestSamples && out.b.walls.size() >= kFewestSamples;
  std::vector<Side> again;
  for (const Run* repeat : repeats) again.push_back(side_of(*repeat, out.names, out.a.kinds.front()));
  std::erase_if(again, [](const Side& side) { return side.walls.size() < kFewestSamples; });  // says nothing of noise
  out.repeats = again.size();
  out.rows = compare_rows(out.a, out.b, pair_up(out.a, out.b, out.names), again);
  out.explanation = explain(out.a, out.b, out.rows, out.names);
}

void add_step_scalars(Answer& answer, const Compared& all) {
  const Change& change = all.step().change;
  const bool known = !all.a.walls.empty() && !all.b.walls.empty();
  const auto scalar = [&](std::string_view name, Value value, Unit unit, std::string_view meaning) {
    add_scalar(answer, name, known ? std::move(value) : Value(), unit, known ? meaning : kNoSteps);
  };
  const Sides& sides = all.sides;
  const auto labelled = [&](std::string label) { answer.scalars.back().label = std::move(label); };
  add_scalar(answer, "steps_a", count(all.a.walls.size()), Unit::count, "Whole steps compared, all ranks");
  labelled(sides.label_a("steps of"));
  add_scalar(answer, "steps_b", count(all.b.walls.size()), Unit::count, "Whole steps compared, all ranks");
  labelled(sides.label_b("steps of"));
  scalar("step_a_ns", ns_of(change.a), Unit::ns, "Median step");
  labelled(sides.label_a("step of"));
  scalar("step_b_ns", ns_of(change.b), Unit::ns, "Median step");
  labelled(sides.label_b("step of"));
  scalar("step_delta_ns", ns_of(change.delta()), Unit::ns, sides.b + " less " + sides.a);
  scalar("step_change", ratio_of(change.delta(), change.a), Unit::ratio, "Of the step of " + sides.a);
  const auto tested = [&](std::string_view name, Value value, Unit unit, std::string_view meaning) {
    add_scalar(answer, name, all.can_tell ? std::move(value) : Value(), unit, all.can_tell ? meaning : kCannotTell);
  };
  tested("step_change_low", ratio_of(change.low, change.a), Unit::ratio, "Lower end of its 95 % interval");
  tested("step_change_high", ratio_of(change.high, change.a), Unit::ratio, "Upper end of its 95 % interval");
  tested("step_noise", ratio_of(change.noise, change.a), Unit::ratio,
         (all.repeats > 0 ? "What the medians of " + sides.a + " and its repeats differ by, over the step of "
                          : "What medians of the quarters of one run differ by, over the step of ") +
             sides.a + ": changes below it are noise");
  tested("step_significant", all.step().significant, Unit::none,
         "More than max(1 % of the step, the noise), at a false-discovery rate of 5 % over all rows");
  const auto changed = std::count_if(all.rows.begin() + 1, all.rows.end(), [](const Row& r) { return r.significant; });
  tested("rows_changed", static_cast<std::int64_t>(changed), Unit::count, "Rows of all tables that changed so");
  add_scalar(answer, "rows_compared", static_cast<std::int64_t>(all.rows.size()), Unit::count, "Rows of all tables");
  const bool explained = all.can_tell && all.step().significant;
  add_scalar(answer, "attributed_share", explained ? Value(all.explanation.attributed) : Value(), Unit::ratio,
             explained      ? "Share of the change of the step that the named rows of the waterfall have"
             : all.can_tell ? "The step did not change by more than noise: there is nothing to explain"
                            : kCannotTell);
}

std::string whole_class(PathClass what) { return std::string(words_of(what)) + ", all together"; }
const std::string& name_of(const Part& part) { return part.name_a.empty() ? part.name_b : part.name_a; }

Table waterfall_table(const Compared& all) {
  const Sides& sides = all.sides;
  Table table{
      .name = "waterfall",
      .columns = {{"level", ValueType::text, Unit::none,
                   "step: all of it; class: of its critical path, they add up to the step; part: of the class "
                   "above, with rest they add up to it"},
                  {"class", ValueType::text, Unit::none, "Class of the critical path; of the step: all"},
                  {"name", ValueType::text, Unit::none, "What it is"},
                  {"name_b", ValueType::text, Unit::none, "Its name in " + sides.b + ", where it is another",
                   sides.label_b("name in")},
                  {"a_ns", ValueType::integer, Unit::ns, "Time on the path of a step of " + sides.a, sides.label_a("")},
                  {"b_ns", ValueType::integer, Unit::ns, "Time on the path of a step of " + sides.b, sides.label_b("")},
                  {"delta_ns", ValueType::integer, Unit::ns, sides.b + " less " + sides.a},
                  {"share", ValueType::real, Unit::ratio, "Of the change of the step"}}};
  const Explanation& explanation = all.explanation;
  const double change = explanation.b - explanation.a;
  // Whole ns, so that what stands under a row adds up to it to the digit.
  struct Times {
    std::int64_t a = 0, b = 0;
  };
  const auto times_of = [](const Part& part) { return Times{std::llround(part.a), std::llround(part.b)}; };
  const auto add = [&](std::string_view level, std::string_view of, std::string name, Value name_b, Times times) {
    const std::int64_t delta = times.b - times.a;
    table.rows.push_back({std::string(level), std::string(of), std::move(name), std::move(name_b), times.a, times.b,
                          delta, change == 0 ? Value() : Value(static_cast<double>(delta) / change)});
  };
  Times step;
  for (const Part& whole : explanation.classes) step.a += times_of(whole).a, step.b += times_of(whole).b;
  if (!explanation.classes.empty()) add("step", "all", "The step", {}, step);
  for (const Part& whole : explanation.classes) {
    if (whole.a == 0 && whole.b == 0) continue;
    const std::string_view of = to_string(whole.what);
    Times rest = times_of(whole);
    add("class", of, whole_class(whole.what), {}, rest);
    bool has_parts = false;
    for (const Part& part : explanation.parts) {
      if (part.what != whole.what) continue;
      const bool same = part.name_a == part.name_b || part.name_a.empty() || part.name_b.empty();
      const Times times = times_of(part);
      add("part", of, name_of(part), same ? Value() : text(part.name_b), times);
      rest.a -= times.a;
      rest.b -= times.b;
      has_parts = true;
    }
    if (has_parts && (rest.a != 0 || rest.b != 0)) add("rest", of, "The rest of it", {}, rest);
  }
  return table;
}

void add_times(Table& table, const Sides& sides, const std::string& what, const std::string& meaning) {
  const auto column = [&](const char* end, const std::string& side, std::string label) {
    table.columns.push_back(
        {what + end, ValueType::integer, Unit::ns, meaning + ", median step of " + side, std::move(label)});
  };
  column("_a_ns", sides.a, sides.label_a(what));
  column("_b_ns", sides.b, sides.label_b(what));
}

Table empty_table(Level level, std::string_view name, const Sides& sides) {
  const bool is_op = level == Level::op, counts = level != Level::phase;
  Table table{.name = std::string(name),
              .columns = {{"name", ValueType::text, Unit::none,
                           "Name in " + sides.a + ", in " + sides.b + " if it is only there"},
                          {"name_b", ValueType::text, Unit::none, "Name in " + sides.b + ", where it is another",
                           sides.label_b("name in")},
                          {"detail", ValueType::text, Unit::none,
                           level == Level::phase    ? "On the host or on the device"
                           : level == Level::op     ? "Shapes of the inputs, where recorded"
                           : level == Level::kernel ? "The operator that launched it"
                                                    : "Size and group, where recorded"},
                          {"match", ValueType::text, Unit::none, "How the rows of the runs were paired"}}};
  const std::string tested = is_op ? "self time" : "time";
  table.columns.push_back(
      {"delta_ns", ValueType::integer, Unit::ns, sides.b + " less " + sides.a + ", of the " + tested});
  table.columns.push_back({"change", ValueType::real, Unit::ratio, "delta_ns over the " + tested + " in " + sides.a});
  table.columns.push_back({"step_share", ValueType::real, Unit::ratio, "delta_ns over the median step of " + sides.a});
  table.columns.push_back({"significant", ValueType::boolean, Unit::none,
                           "More than noise: see step_significant; unknown with fewer than three steps"});
  if (counts) {
    const std::string calls = "Calls in the median step of ";
    table.columns.push_back({"count_a", ValueType::real, Unit::count, calls + sides.a, sides.label_a("count")});
    table.columns.push_back({"count_b", ValueType::real, Unit::count, calls + sides.b, sides.label_b("count")});
  }
  add_times(table, sides, "time", is_op ? "Duration with all inside" : "Time");
  if (is_op) {
    add_times(table, sides, "self", "Host time without the operators inside");
    add_times(table, sides, "device", "Time of the device work that it launched itself");
  }
  table.columns.push_back({"low_ns", ValueType::integer, Unit::ns, "Lower end of the 95 % interval of delta_ns"});
  table.columns.push_back({"high_ns", ValueType::integer, Unit::ns, "Upper end of it"});
  return table;
}

std::vector<const Row*> rows_of(const Compared& all, Level level) {
  std::vector<const Row*> rows;
  for (const Row& row : all.rows) {
    if (row.pair.level == level) rows.push_back(&row);
  }
  std::stable_sort(rows.begin(), rows.end(), [](const Row* x, const Row* y) {
    if (x->significant != y->significant) return x->significant;
    return std::abs(x->change.delta()) > std::abs(y->change.delta());
  });
  return rows;
}

Table level_table(const Compared& all, Level level, std::string_view name) {
  const bool is_op = level == Level::op, counts = level != Level::phase;
  Table table = empty_table(level, name, all.sides);
  for (const Row* row : rows_of(all, level)) {
    const Pair& pair = row->pair;
    const std::string name_a = names_of(all.a, pair.a, all.names), name_b = names_of(all.b, pair.b, all.names);
    const Entity& example = pair.a.empty() ? all.b.entities[pair.b.front()] : all.a.entities[pair.a.front()];
    const Sums a = sums_of(all.a, pair.a), b = sums_of(all.b, pair.b);
    std::vector<Value> cells{
        pair.a.empty() ? name_b : name_a, pair.a.empty() || pair.b.empty() || name_a == name_b ? Value() : text(name_b),
        text(all.names[level == Level::kernel ? example.context : example.detail]), all.sides.match(pair.match)};
    const Change& change = row->change;
    const bool tested = all.can_tell && change.p < 1;
    cells.insert(cells.end(),
                 {ns_of(change.delta()), ratio_of(change.delta(), change.a),
                  ratio_of(change.delta(), all.step().change.a), all.can_tell ? Value(row->significant) : Value()});
    if (counts) cells.insert(cells.end(), {a.count, b.count});
    cells.insert(cells.end(), {ns_of(a.time), ns_of(b.time)});
    if (is_op) cells.insert(cells.end(), {ns_of(a.self), ns_of(b.self), ns_of(a.device), ns_of(b.device)});
    cells.insert(cells.end(), {tested ? ns_of(change.low) : Value(), tested ? ns_of(change.high) : Value()});
    table.rows.push_back(std::move(cells));
  }
  return table;
}

// A class is told where it is this part of the change at least.
constexpr double kTold = 0.1;

void add_findings(Answer& answer, const Compared& all) {
  if (!all.can_tell || !all.step().significant) return;
  const Change& step = all.step().change;
  Finding finding{.id = step.delta() > 0 ? "step_slower" : "step_faster",
                  .cause = "change",
                  .sentence = "The step of " + all.sides.b + " is " + (step.delta() > 0 ? "slower" : "faster") +
                              " than that of " + all.sides.a + ", by more than noise",
                  .evidence = {{.text = "Change", .value = ratio_of(step.delta(), step.a), .unit = Unit::ratio},
                               {.text = "Noise", .value = ratio_of(step.noise, step.a), .unit = Unit::ratio}},
                  .gain_reason = "It has been measured: see step change.",
                  .confidence = "high",
                  .next = "See the waterfall: which parts of the critical path the change consists of"};
  // The classes that made it so, each with the name in it that did most.
  const auto same_way = [&](const Part& part) { return (part.delta() > 0) == (step.delta() > 0); };
  for (const Part& whole : all.explanation.classes) {
    if (finding.evidence.size() >= 6 || !same_way(whole) || std::abs(whole.delta()) < kTold * std::abs(step.delta()))
      continue;
    finding.evidence.push_back({.text = whole_class(whole.what), .value = ns_of(whole.delta()), .unit = Unit::ns});
    for (const Part& part : all.explanation.parts) {
      if (part.what != whole.what || !same_way(part)) continue;
      finding.evidence.push_back({.text = std::string(words_of(part.what)) + ": " + name_of(part),
                                  .value = ns_of(part.delta()),
                                  .unit = Unit::ns});
      break;
    }
  }
  answer.findings.push_back(std::move(finding));
}

std::string ranks_of(const Run& run) {
  std::string text;
  std::int64_t world_size = 0;
  std::size_t shown = 0;
  for (const Trace& trace : timelines(run)) {
    if (shown++ < 8) text += (text.empty() ? "" : ", ") + std::to_string(trace.rank.rank);
    world_size = std::max(world_size, trace.rank.world_size);
  }
  if (shown > 8) text += ", …";
  return "rank " + text + (world_size > 0 ? " of " + std::to_string(world_size) : "");
}

void add_notes(Answer& answer, const Compared& all, const Run& a, const Run& b) {
  if (auto note = all.sides.note()) answer.notes.push_back(*std::move(note));
  if (!all.can_tell) answer.notes.emplace_back(kCannotTell);
  if (const std::string ranks_a = ranks_of(a), ranks_b = ranks_of(b); ranks_a != ranks_b) {
    answer.notes.push_back("Not the same ranks: " + all.sides.a + " is " + ranks_a + ", " + all.sides.b + " is " +
                           ranks_b + ". What differs may be the ranks and not the change.");
  }
  if (all.a.kinds != all.b.kinds) {
    answer.notes.push_back("The steps of the two runs are of different kinds ('" + all.a.kinds.front() + "' and '" +
                           all.b.kinds.front() + "'): what a step is may differ.");
  }
  if (all.a.left_out + all.b.left_out > 0) {
    answer.notes.push_back("Left out: " + std::to_string(all.a.left_out) + " steps of " + all.sides.a + " and " +
                           std::to_string(all.b.left_out) + " of " + all.sides.b +
                           " that are cut or of another kind than '" + all.a.kinds.front() + "'.");
  }
  if (all.a.has_device_work != all.b.has_device_work) {
    answer.notes.emplace_back("Only one of the runs has device work: kernels and collectives cannot be compared.");
  }
  answer.notes.emplace_back(
      "Times are medians over steps. The waterfall is of the middle half of the steps by length: parts of their "
      "critical paths, which add up to them.");
}

bool contains(std::string_view text, std::string_view part) {
  const auto same = [](char x, char y) {
    return std::tolower(static_cast<unsigned char>(x)) == std::tolower(static_cast<unsigned char>(y));
  };
  return std::search(text.begin(), text.end(), part.begin(), part.end(), same) != text.end();
}

GateResult judge(const Gate& gate, const Compared& all) {
  GateResult result{.gate = gate};
  if (!all.can_tell) {
    result.sentence = kCannotTell;
    return result;
  }
  const Row* worst = nullptr;
  double most = 0;
  std::size_t seen = 0;
  for (const Row& row : all.rows) {
    if (to_string(row.pair.level) != gate.level) continue;
    if (!contains(names_of(all.a, row.pair.a, all.names), gate.name) &&
        !contains(names_of(all.b, row.pair.b, all.names), gate.name))
      continue;
    seen++;
    const double base = gate.relative ? row.change.a : 1;
    const double size = base > 0 ? row.change.delta() / base : row.change.delta() > 0 ? HUGE_VAL : 0;
    if (!row.alone || size <= gate.limit || (worst != nullptr && size <= most)) continue;
    worst = &row;
    most = size;
  }
  if (seen == 0) {
    result.sentence = "no row of the " + gate.level + " table has '" + gate.name + "' in its name";
    return result;
  }
  result.failed = worst != nullptr;
  if (worst == nullptr) {
    result.sentence = "no change above the limit that is more than noise";
  } else {
    const Pair& pair = worst->pair;
    result.sentence =
        "it grew: " + (pair.a.empty() ? names_of(all.b, pair.b, all.names) : names_of(all.a, pair.a, all.names));
  }
  return result;
}

Table gates_table(const std::vector<GateResult>& results) {
  Table table{.name = "gates",
              .columns = {{"gate", ValueType::text, Unit::none, "As given with --fail-on"},
                          {"failed", ValueType::boolean, Unit::none, "Unknown: it cannot be told"},
                          {"why", ValueType::text, Unit::none, "What decided"}}};
  for (const GateResult& result : results) {
    table.rows.push_back({result.gate.text, result.failed ? Value(*result.failed) : Value(), result.sentence});
  }
  return table;
}

}  // namespace

Result<Difference> diff(const Run& a, const Run& b, const Options& options) {
  for (const Run* run : {&a, &b}) {
    if (auto derived = require_derived(*run); !derived) return fail(derived.error());
  }
  Compared all(options);
  compare_runs(a, b, options.again, all);
  Difference out{.answer = {.name = "diff", .summary = std::string(kSummary)}, .gates = {}};
  add_step_scalars(out.answer, all);
  for (const Gate& gate : options.gates) out.gates.push_back(judge(gate, all));
  if (!out.gates.empty()) out.answer.tables.push_back(gates_table(out.gates));
  out.answer.tables.push_back(waterfall_table(all));
  constexpr std::array<std::pair<Level, std::string_view>, 5> kTables{{{Level::phase, "phases"},
                                                                       {Level::module, "modules"},
                                                                       {Level::op, "operators"},
                                                                       {Level::kernel, "kernels"},
                                                                       {Level::collective, "collectives"}}};
  for (const auto& [level, name] : kTables) {
    const bool wanted = options.levels.empty() || std::find(options.levels.begin(), options.levels.end(),
                                                            to_string(level)) != options.levels.end();
    if (wanted) out.answer.tables.push_back(level_table(all, level, name));
  }
  add_findings(out.answer, all);
  add_notes(out.answer, all, a, b);
  return out;
}

}  // namespace stepscope::diff
