#include "diagnose/loops.h"

#include <algorithm>
#include <map>
#include <set>
#include <string_view>
#include <unordered_map>
#include <utility>

#include "diagnose/code_between.h"
#include "diagnose/device_work.h"
#include "diagnose/inputs.h"
#include "diagnose/operators.h"
#include "diagnose/passes.h"
#include "diagnose/queries.h"
#include "model/answer_parts.h"
#include "model/lookup.h"
#include "model/windows.h"

namespace stepscope::diagnose {
namespace {

constexpr std::size_t kLeastTurns = 8, kLongestTurn = 256;
// No source calls an operator so often, one by one.
constexpr std::size_t kOften = 32;
// What calling an operator costs, whatever it is given.
constexpr std::int64_t kLeastCallNs = 2'000, kMostCallNs = 20'000;

// Operators of one step that are no part of a backward pass, cut where one is.
struct Row {
  std::vector<Operation> operations;
  std::vector<StringId> names;
};

// Per operator of a backward pass: the code behind it.
using BehindBackward = std::unordered_map<SliceId, std::vector<std::uint32_t>>;

std::vector<Row> rows_of(const Case& about, const Trace& trace, BehindBackward& behind) {
  std::vector<Row> rows(1);
  StepId step = StepId::none;
  for (Operation& one : about.operations(trace)) {
    const StepId at = trace.step_at(trace.slices.start_ns[one.slice]);
    const bool backward = is_backward(trace.name(one.slice));
    if ((backward || at != step) && !rows.back().operations.empty()) rows.emplace_back();
    step = at;
    if (backward) {
      behind[one.slice] = std::move(one.after);
      continue;
    }
    rows.back().names.push_back(trace.slices.name[one.slice]);
    rows.back().operations.push_back(std::move(one));
  }
  return rows;
}

// The modules that the program was in, outermost first.
std::vector<std::string_view> modules_of(const Code& code) {
  std::vector<std::string_view> out;
  for (const CodeFrame& frame : code.stack) {
    if (frame.is_module()) out.push_back(frame.function);
  }
  return out;
}

// The range that is innermost around an operator: of a module, where the hooks recorded them.
std::string_view range_around(const Trace& trace, SliceId slice) {
  for (SliceId at = trace.slices.parent[slice]; at != SliceId::none; at = trace.slices.parent[at]) {
    if (trace.kind(at) == SliceKind::user_annotation) return trace.name(at);
  }
  return {};
}

// Two turns in modules of their own are two layers.
bool is_layers(const Case& about, const Trace& trace, const Loop& loop) {
  for (std::size_t i = 0; i < loop.period; i++) {
    if (range_around(trace, loop.operations[i].slice) != range_around(trace, loop.operations[i + loop.period].slice)) {
      return true;
    }
    const Code first = about.code(trace, loop.operations[i].slice);
    const Code second = about.code(trace, loop.operations[i + loop.period].slice);
    if (first.stack.empty() || second.stack.empty()) return true;  // what it is cannot be told
    if (modules_of(first) != modules_of(second)) return true;
  }
  return false;
}

void find_in(const Case& about, const Trace& trace, const Row& row, std::vector<bool>& used, std::vector<Loop>& out) {
  const std::size_t size = row.names.size();
  for (std::size_t period = 1; period <= std::min(kLongestTurn, size / kLeastTurns); period++) {
    for (std::size_t begin = 0; begin + period < size;) {
      std::size_t end = begin + period;
      while (end < size && !used[end] && !used[end - period] && row.names[end] == row.names[end - period]) end++;
      const std::size_t turns = (end - begin) / period;
      if (turns < kLeastTurns) {
        begin = end - period + 1;
        continue;
      }
      Loop loop{.trace = &trace, .period = period};
      for (std::size_t i = begin; i < begin + turns * period; i++) {
        used[i] = true;
        loop.operations.push_back(row.operations[i]);
      }
      begin = end;
      if (!is_layers(about, trace, loop)) out.push_back(std::move(loop));
    }
  }
}

// Turns that differ, since a condition decides what they call: operators that one call of a function calls itself, one
// of them so often that no source has them one by one, the others beside it. No model is called meanwhile: what a
// program does between layers, or from word to word, is no such loop.
void find_varied(const Case& about, const Trace& trace, const Row& row, const std::vector<bool>& used,
                 std::vector<Loop>& out) {
  struct Called {
    std::vector<std::size_t> places;
    std::set<SliceId> known;  // by the operators with frames that tell where they come from
  };
  std::vector<SliceId> frames;  // that call the operators of the row
  std::map<SliceId, std::map<StringId, Called>> by_call;
  for (std::size_t i = 0; i < row.names.size(); i++) {
    const CodePlaces::FunctionCall call = about.places.call_around(trace, row.operations[i].slice);
    frames.push_back(call.frame);
    if (used[i] || call.frame == SliceId::none) continue;
    Called& of = by_call[call.frame][row.names[i]];
    of.places.push_back(i);
    of.known.insert(call.operation);
  }
  for (const auto& [frame, names] : by_call) {
    const auto most = std::max_element(names.begin(), names.end(), [](const auto& a, const auto& b) {
      return a.second.known.size() < b.second.known.size();
    });
    if (most->second.known.size() < kOften) continue;
    const std::size_t first = most->second.places.front(), last = most->second.places.back();
    const auto begin = frames.begin() + static_cast<std::ptrdiff_t>(first);
    const auto end = frames.begin() + static_cast<std::ptrdiff_t>(last);
    if (std::find(begin, end, SliceId::none) != end) continue;
    if (about.places.source(trace).loop_around(about.code(trace, row.operations[first].slice)) == nullptr) continue;
    const std::string_view range = range_around(trace, row.operations[first].slice);
    for (const auto& [name, called] : names) {
      if (called.known.size() < kLeastTurns) continue;
      Loop loop{.trace = &trace, .varied = true};
      for (const std::size_t i : called.places) {
        const bool beside = i >= first && i <= last && range_around(trace, row.operations[i].slice) == range;
        if (beside) loop.operations.push_back(row.operations[i]);
      }
      if (loop.turns() >= kLeastTurns) out.push_back(std::move(loop));
    }
  }
}

void add_code(const Case& about, Loop& loop) {
  std::vector<const Operation*> turn;
  for (std::size_t i = 0; i < loop.period; i++) turn.push_back(&loop.operations[i]);
  std::stable_sort(turn.begin(), turn.end(),
                   [](const Operation* a, const Operation* b) { return a->cost_ns > b->cost_ns; });
  // The function whose loop it is, and where it calls most; what calls nothing, as slicing does, shows no line.
  for (const Operation* one : turn) {
    Code code = about.places.around(*loop.trace, one->slice, one[loop.period].slice);
    const bool says_more = loop.code.stack.empty() || (loop.code.call_line == 0 && code.call_line > 0);
    if (says_more && code.own() != nullptr) loop.code = std::move(code);
    if (loop.code.call_line > 0) break;
  }
  const SliceId longest = turn.front()->slice;
  if (loop.code.own() == nullptr) loop.code = about.code(*loop.trace, longest);  // the loop is a library's
  loop.phase = static_cast<Phase>(loop.trace->slices.phase[longest]);
}

// The nodes of the backward operators that belong to the operators of the loop.
void add_backward(const Case& about, const BehindBackward& behind, Loop& loop) {
  const Passes& of = passes(about);
  loop.backward.resize(loop.period);
  loop.behind_backward.resize(loop.period);
  std::set<SliceId> seen;
  for (std::size_t i = 0; i < loop.operations.size(); i++) {
    for (const SliceId operation : of.backward(*loop.trace, loop.operations[i].slice)) {
      if (!seen.insert(operation).second) continue;
      const std::vector<std::uint32_t>& nodes = of.nodes(*loop.trace, operation);
      std::vector<std::uint32_t>& all = loop.backward[i % loop.period];
      all.insert(all.end(), nodes.begin(), nodes.end());
      const auto code = behind.find(operation);
      if (code == behind.end()) continue;
      std::vector<std::uint32_t>& after = loop.behind_backward[i % loop.period];
      after.insert(after.end(), code->second.begin(), code->second.end());
    }
  }
}

}  // namespace

std::vector<std::vector<std::uint32_t>> Loop::by_place(bool after) const {
  std::vector<std::vector<std::uint32_t>> out(period);
  const std::size_t end = after && !operations.empty() ? operations.size() - 1 : operations.size();
  for (std::size_t i = 0; i < end; i++) {
    const auto& nodes = after ? operations[i].after : operations[i].nodes;
    out[i % period].insert(out[i % period].end(), nodes.begin(), nodes.end());
  }
  return out;
}

std::vector<Loop> loops(const Case& about) {
  std::vector<Loop> out;
  for (const Trace& trace : timelines(about.run)) {
    if (!about.places.known(trace)) continue;  // what is a layer and what a loop cannot be told
    BehindBackward behind;
    for (const Row& row : rows_of(about, trace, behind)) {
      std::vector<bool> used(row.names.size(), false);
      find_in(about, trace, row, used, out);
      find_varied(about, trace, row, used, out);
    }
    for (Loop& loop : out) {
      if (loop.trace != &trace) continue;
      add_code(about, loop);
      add_backward(about, behind, loop);
    }
  }
  return out;
}

namespace {

// What calling an operator costs on a rank in this recording: the median of those that are given next to nothing.
std::int64_t find_usual_call_ns(const Case& about, const Trace& trace) {
  constexpr std::int64_t kNextToNothing = 256, kNotKnownNs = 8'000;
  constexpr std::size_t kFewest = 20;
  std::vector<std::int64_t> costs;
  for (const Operation& one : about.operations(trace)) {
    const std::string_view name = trace.name(one.slice);
    const std::int64_t elements = inputs(about).of(trace, one.slice).elements();
    if (elements > 0 && elements <= kNextToNothing && !is_backward(name) && !is_view(name))
      costs.push_back(one.cost_ns);
  }
  if (costs.size() < kFewest) return kNotKnownNs;
  return std::clamp(median(std::move(costs)).value_or(kNotKnownNs), kLeastCallNs, kMostCallNs);
}

struct UsualCalls {
  std::map<const Trace*, std::int64_t> ns;
};

}  // namespace

std::int64_t usual_call_ns(const Case& about, const Trace& trace) {
  return about
      .shared<UsualCalls>([](const Case& of) {
        UsualCalls out;
        for (const Trace& one : timelines(of.run)) out.ns[&one] = find_usual_call_ns(of, one);
        return out;
      })
      .ns.at(&trace);
}

namespace {

// What a turn's call of the operator at that place costs at most whatever it is given: of turns over many sizes that of
// the smallest. Turns that are alike do not tell.
std::int64_t call_of_smallest(const Case& about, const Loop& loop, std::size_t place) {
  constexpr std::size_t kOneInTen = 10;
  std::vector<std::int64_t> costs;
  for (std::size_t i = place; i < loop.operations.size(); i += loop.period) {
    std::int64_t ns = 0;
    for (const std::uint32_t node : loop.operations[i].nodes) ns += about.cost_ns(node);
    costs.push_back(ns);
  }
  const auto at = costs.begin() + static_cast<std::ptrdiff_t>(costs.size() / kOneInTen);
  std::nth_element(costs.begin(), at, costs.end());
  return *at;
}

// Rewrites the loop as one turn over all of it.
void as_one_call(const Case& about, const Loop& loop, const OneCall& how, const std::set<std::uint32_t>& others,
                 simulate::Rewrite& out) {
  const auto turns = static_cast<std::int64_t>(loop.turns());
  constexpr double kKept = 0.8;  // of what gains nothing by being one call
  const std::int64_t call_ns = usual_call_ns(about, *loop.trace);
  // On a device one kernel takes hundreds of tensors; on the host such an operator goes through them one by one.
  constexpr double kCallPartOfDevice = 0.05;
  const bool on_device = device_work(about).uses_device(*loop.trace, loop.operations.front().slice);
  const double call_part = on_device ? std::min(how.call_part, kCallPartOfDevice) : how.call_part;
  const auto join = [&](std::vector<std::uint32_t> nodes, bool is_code, bool gains, std::int64_t smallest_ns = 0) {
    if (is_code) std::erase_if(nodes, [&](std::uint32_t node) { return others.contains(node); });
    if (nodes.empty()) return;
    std::int64_t total = 0;
    for (const std::uint32_t node : nodes) total += about.cost_ns(node);
    // Of a turn, whatever it works on. Code between operators is there for each turn; a backward operator calls two.
    const std::int64_t most_call_ns = is_code ? kMostCallNs : std::max(2 * call_ns, smallest_ns);
    const std::int64_t least = std::min(total / turns, most_call_ns);
    const std::int64_t work = is_code ? 0 : total - least * turns;
    // Where all of a turn becomes one operator that takes lists, it calls that once: of each of its operators one part.
    const double calls_ns = call_part * static_cast<double>(call_ns * turns);
    const auto left = [&](double part, double called_ns) {
      const double ns = static_cast<double>(least) + called_ns + part * static_cast<double>(work);
      return total > 0 ? std::min(1.0, ns / static_cast<double>(total)) : 1.0;
    };
    const double low =
        left(gains ? how.least : std::max(how.least, kKept), calls_ns / static_cast<double>(loop.period));
    const double high = left(how.most, calls_ns);
    for (const std::uint32_t node : nodes) {
      out.nodes.push_back({node, static_cast<std::int64_t>(low * static_cast<double>(about.cost_ns(node))),
                           static_cast<std::int64_t>(high * static_cast<double>(about.cost_ns(node)))});
    }
  };
  // Products of larger matrices are faster for their size; what goes through memory element by element is not.
  const auto gains = [&](std::size_t place) {
    return how.fused || is_product(loop.trace->name(loop.operations[place].slice));
  };
  const auto forward = loop.by_place(false);
  const bool varies = is_over_parameters(loop);
  for (std::size_t i = 0; i < loop.period; i++)
    join(forward[i], false, gains(i), varies ? call_of_smallest(about, loop, i) : 0);
  for (const auto& nodes : loop.by_place(true)) join(nodes, true, false);
  for (std::size_t i = 0; i < loop.period; i++) {
    join(loop.backward[i], false, gains(i));
    join(loop.behind_backward[i], true, false);
  }
}

}  // namespace

namespace {

// Weights and biases differ in their dimensions, and by far in how large they are. Samples differ in one dimension,
// their length, and not by that much.
bool are_of_parameters(const std::vector<Sizes>& all) {
  constexpr std::int64_t kFarLarger = 16;
  std::set<std::size_t> varied;  // dimensions
  std::int64_t least = elements(all.front()), most = least;
  for (const Sizes& one : all) {
    if (one.size() != all.front().size()) return true;
    for (std::size_t d = 0; d < one.size(); d++) {
      if (one[d] != all.front()[d]) varied.insert(d);
    }
    least = std::min(least, elements(one)), most = std::max(most, elements(one));
  }
  return varied.size() > 1 || least <= most / kFarLarger;
}

}  // namespace

bool is_over_parameters(const Loop& loop) {
  constexpr std::size_t kSizes = 3;
  const Trace& trace = *loop.trace;
  for (std::size_t place = 0; place < loop.period; place++) {
    std::set<StringId> texts;
    for (std::size_t i = place; i < loop.operations.size(); i += loop.period) {
      const std::size_t row = row_of(trace.ops.slice, loop.operations[i].slice);
      if (row < trace.ops.size() && trace.ops.input_dims[row] != StringId::none)
        texts.insert(trace.ops.input_dims[row]);
    }
    if (texts.size() < kSizes) continue;
    std::vector<Sizes> first;  // tensors that it was given
    for (const StringId text : texts) {
      for (Shape& shape : parse_shapes(trace.strings[text])) {
        if (shape.sizes.empty()) continue;
        first.push_back(std::move(shape.sizes));
        break;
      }
    }
    if (first.size() >= kSizes && are_of_parameters(first)) return true;
  }
  return false;
}

namespace {

// Turns that call a module and learn nothing: text that is generated, moves in a game, batches that are evaluated. Each
// needs what the one before it made, or is a batch already.
bool calls_modules_without_learning(const Case& about, const Loop& loop) {
  const Trace& trace = *loop.trace;
  bool calls = false;
  for (std::size_t i = 0; i < loop.period; i++) {
    const SliceId slice = loop.operations[i].slice;
    if (!passes(about).backward(trace, slice).empty()) return false;
    const Code code = about.code(trace, slice);
    for (std::size_t frame = loop.code.stack.size(); frame < code.stack.size() && !calls; frame++) {
      calls = code.stack[frame].is_module();
    }
  }
  // Frames of another moment may be of another turn: the ranges of modules are of this one.
  const Interval turn{trace.slices.start_ns[loop.operations.front().slice],
                      trace.slices.start_ns[loop.operations[loop.period].slice]};
  return calls || std::any_of(trace.modules.begin(), trace.modules.end(), [&](const ModuleCall& call) {
           return trace.slices.track[call.slice] == trace.slices.track[loop.operations.front().slice] &&
                  trace.slices.start_ns[call.slice] >= turn.start && trace.slices.end_ns(call.slice) <= turn.end;
         });
}

// By the program's source: a recurrent network, a walk, layers.
bool needs_the_turn_before(const Case& about, const Loop& loop) {
  const Source& source = about.places.source(*loop.trace);
  const CodeCall* begins = source.loop_around(loop.code);
  return begins != nullptr && source.carries(*begins, std::max(loop.code.call_line, begins->line));
}

// Is most of its time in these nodes?
bool is_mostly(const Case& about, const Loop& loop, const std::set<std::uint32_t>& nodes) {
  std::int64_t in_nodes_ns = 0, all_ns = 0;
  const auto add = [&](const std::vector<std::vector<std::uint32_t>>& places) {
    for (const auto& place : places) {
      for (const std::uint32_t node : place) {
        all_ns += about.cost_ns(node);
        if (nodes.contains(node)) in_nodes_ns += about.cost_ns(node);
      }
    }
  };
  add(loop.by_place(false));
  add(loop.by_place(true));
  add(loop.backward);
  add(loop.behind_backward);
  return 2 * in_nodes_ns > all_ns;
}

}  // namespace

void find_loops(const Case& about, bool (*is_meant)(const Loop& loop), const WordsOfLoop& words,
                std::vector<Diagnosis>& out) {
  struct Found {
    Diagnosis diagnosis;
    const Loop* longest = nullptr;
    std::int64_t time_ns = 0;
  };
  std::map<std::pair<std::string, std::int64_t>, Found> places;
  const auto& all = about.shared<std::vector<Loop>>(loops);
  // Code behind a call that saves or reads is no matter of how often it is called; nor is what works out so much itself
  // that the operators are the lesser part.
  std::set<std::uint32_t> others, and_computing;
  for (const BetweenOperators& one : about.shared<std::vector<BetweenOperators>>(code_between)) {
    if (one.doing == Doing::unknown) continue;
    and_computing.insert(one.node);
    if (one.doing != Doing::computing) others.insert(one.node);
  }
  for (const Loop& loop : all) {
    // These are unfused_optimizer's, and those of the data loader: samples are made one by one there.
    if (loop.phase == Phase::optimizer || loop.phase == Phase::dataloader || !is_meant(loop)) continue;
    if (needs_the_turn_before(about, loop) != words.carried) continue;
    if (calls_modules_without_learning(about, loop)) continue;
    const CodeFrame* own = loop.code.own();
    Found& found = places[own == nullptr ? std::pair(std::string(), std::int64_t{0}) : std::pair(own->file, own->line)];
    const bool computes = is_mostly(about, loop, and_computing);
    as_one_call(about, loop, words.how, computes ? and_computing : others, found.diagnosis.rewrite);
    if (found.longest == nullptr || loop.turns() > found.longest->turns()) found.longest = &loop;
  }
  for (auto& [place, found] : places) {
    for (const simulate::Rewrite::Node& node : found.diagnosis.rewrite.nodes) found.time_ns += about.on_path(node.node);
    if (about.share(found.time_ns) < kWorthSaying) continue;
    const Loop& loop = *found.longest;
    Finding& finding = found.diagnosis.finding;
    finding.cause = std::string(words.cause);
    finding.where.rank = loop.trace->rank.rank;
    finding.where.t_ns = loop.trace->slices.start_ns[loop.operations.front().slice];
    // What nothing goes back through may as well be behind the optimizer's step: until the next one begins, all is
    // before a backward pass.
    const bool learns = std::any_of(loop.backward.begin(), loop.backward.end(),
                                    [](const std::vector<std::uint32_t>& nodes) { return !nodes.empty(); });
    const bool is_inferred = loop.phase == Phase::forward && !learns && goes_back(*loop.trace);
    if (loop.phase != Phase::other && !is_inferred) finding.where.phase = std::string(to_string(loop.phase));
    loop.code.put_into(finding.where);
    finding.sentence = std::string(words.sentence);
    finding.evidence = {{.text = "Of the steps", .value = about.share(found.time_ns), .unit = Unit::ratio},
                        {.text = "Turns of a loop",
                         .value = static_cast<std::int64_t>(loop.turns()),
                         .unit = Unit::count,
                         .query = calls_of(loop.trace->name(loop.operations.front().slice))}};
    if (!loop.varied) {
      finding.evidence.push_back(
          {.text = "Operators in a turn", .value = static_cast<std::int64_t>(loop.period), .unit = Unit::count});
    }
    put_doubt(finding, words.doubt);
    finding.next = std::string(words.next);
    out.push_back(std::move(found.diagnosis));
  }
}

}  // namespace stepscope::diagnose
