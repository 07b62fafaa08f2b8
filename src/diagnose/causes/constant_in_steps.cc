// The same made anew in each step: positions, masks, filters, distances, of which the source says that they never
// change, or not while they are made of the same, as they were seen to be.
#include <algorithm>
#include <cstdint>
#include <map>
#include <set>
#include <string>
#include <string_view>
#include <tuple>
#include <utility>
#include <vector>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "diagnose/gathered.h"
#include "diagnose/noted.h"
#include "diagnose/operators.h"
#include "diagnose/passes.h"
#include "model/lookup.h"
#include "model/settings.h"
#include "model/telemetry.h"
#include "model/windows.h"

namespace stepscope::diagnose::causes {
namespace {

using ConstantFunction = std::tuple<const Trace*, std::string, std::int64_t>;  // file, first line

struct MadeAgain {
  std::vector<Operation> operations;
  std::vector<std::uint32_t> between;                                  // code between two of them
  std::map<StepId, std::vector<std::pair<StringId, StringId>>> calls;  // names and sizes
  Code code;                                                           // of the first
  std::size_t frame = 0;                                               // the function in its stack
  bool changes = false;                                                // of what learns, or of chance
};

// The functions of a program that give the same each time.
class ConstantFunctions {
 public:
  ConstantFunctions(const Run& run, const Trace& trace, const Source& source)
      : source_(source), learns_(!trace.backward.empty()) {
    look_at(trace);
    if (const Trace* history = marks_of_rank(run, trace.rank.rank)) given_ = given_the_same(*history);
    for (const Trace& step : run.stack_steps) {
      if (step.rank.rank == trace.rank.rank) look_at(step);
    }
  }

  // The outermost of them around it; the size of the stack: there is none.
  std::size_t frame(const Code& code) {
    std::size_t at = 0;
    while (at < code.stack.size() && !(code.stack[at].own && has(code.stack[at]))) at++;
    return at;
  }
  bool are_around(const Code& code) { return frame(code) < code.stack.size(); }

 private:
  bool has(const CodeFrame& function) {
    const auto [known, is_new] = known_.try_emplace({function.function, function.file, function.line}, false);
    if (!is_new) return known->second;
    const auto constant = source_.constant(function);
    if (!constant) return false;
    if (constant->is_given && !given_.contains({function.file, source_.first_line(function)})) return false;
    // What other functions change may be learned as well; of a service it is not.
    const bool ran = std::any_of(constant->unless.begin(), constant->unless.end(), [&](std::string_view other) {
      return ran_.contains({function.file, std::string(other)});
    });
    return known->second = constant->unless.empty() || (!learns_ && !ran);
  }

  void look_at(const Trace& trace) {
    for (std::size_t row = 0; row < trace.slices.size(); row++) {
      const auto slice = static_cast<SliceId>(row);
      if (trace.kind(slice) != SliceKind::python_function) continue;
      if (!names_.insert(trace.name(slice)).second) continue;
      PythonFrame frame = read_python_frame(trace.name(slice));
      ran_.emplace(frame.file, frame.function);
    }
  }

  const Source& source_;
  bool learns_ = false;
  std::set<std::string_view> names_;                      // of frames, each read once
  std::set<std::pair<std::string, std::int64_t>> given_;  // the same: file and first line
  std::set<std::pair<std::string, std::string>> ran_;     // file and function
  std::map<std::tuple<std::string, std::string, std::int64_t>, bool> known_;
};

std::map<ConstantFunction, MadeAgain> made_again(const Case& about) {
  std::map<ConstantFunction, MadeAgain> out;
  for (const Trace& trace : timelines(about.run)) {
    const Source& source = about.places.source(trace);
    if (!about.places.known(trace) || !source.has_constants()) continue;
    ConstantFunctions functions(about.run, trace, source);
    MadeAgain* before = nullptr;
    for (const Operation& one : about.operations(trace)) {
      const std::string_view name = trace.name(one.slice);
      Code code = is_backward(name) ? Code() : about.code(trace, one.slice);
      const std::size_t at = functions.frame(code);
      if (at == code.stack.size()) {
        before = nullptr;
        continue;
      }
      MadeAgain& made = out[{&trace, code.stack[at].file, source.first_line(code.stack[at])}];
      if (before == &made) {
        for (const std::uint32_t node : made.operations.back().after) {  // or between two calls of it
          if (functions.are_around(about.code(about.work(node)))) made.between.push_back(node);
        }
      }
      before = &made;
      const std::size_t row = row_of(trace.ops.slice, one.slice);
      const StringId sizes = row < trace.ops.size() ? trace.ops.input_dims[row] : StringId::none;
      made.calls[trace.step_at(trace.slices.start_ns[one.slice])].emplace_back(trace.slices.name[one.slice], sizes);
      made.changes = made.changes || noted(about).has(trace, one.slice) ||
                     !passes(about).backward(trace, one.slice).empty() || is_by_chance(name);
      if (made.operations.empty()) made.code = std::move(code), made.frame = at;
      made.operations.push_back(one);
    }
  }
  return out;
}

// Operators of it in each whole step that has any, since a service has a step for each of its models; 0: they are not
// the same in all, or there is one such step alone.
std::size_t same_in_each_step(const Trace& trace, const MadeAgain& made) {
  const std::vector<std::pair<StringId, StringId>>* first = nullptr;
  std::size_t whole = 0;
  for (std::size_t i = 0; i < trace.steps.size(); i++) {
    if (trace.steps[i].partial) continue;
    const auto calls = made.calls.find(static_cast<StepId>(i));
    if (calls == made.calls.end()) continue;
    if (first != nullptr && calls->second != *first) return 0;
    first = &calls->second;
    whole++;
  }
  return whole > 1 ? first->size() : 0;
}

// Where the function is called, or, where that is torch's doing, where it calls what it makes.
void put_constant(const Source& source, const MadeAgain& made, Place& place) {
  const std::vector<CodeFrame>& stack = made.code.stack;
  const CodeFrame& function = stack[made.frame];
  place.function = function.function;
  place.file = function.file;
  place.line = function.line;
  if (made.frame > 0 && stack[made.frame - 1].own) {
    const CodeFrame& caller = stack[made.frame - 1];
    if (const std::int64_t line = source.call_line(caller, function.function); line > 0) {
      place.function = caller.function;
      place.file = caller.file;
      place.line = line;
    }
  } else if (made.frame + 1 < stack.size()) {
    if (const std::int64_t line = source.call_line(function, stack[made.frame + 1].function); line > 0)
      place.line = line;
  }
}

std::string next_of(const Source::Constant& constant, const std::string& others) {
  if (!others.empty()) return fmt::format("Keep what it gives, and make it anew after {}()", others);
  if (constant.is_given) {
    return "Call it once, before the loop over the steps, and keep what it gives: as a buffer "
           "(register_buffer(..., persistent=False)), or in place of what it is given";
  }
  return "Make it once and keep it: in __init__, as a buffer (register_buffer(..., persistent=False)), or behind "
         "functools.cache";
}

std::string doubt_of(const Source::Constant& constant, const std::string& others) {
  std::string doubt = "that it never changes is read in its source";
  if (!others.empty()) doubt = "that nothing changes it is read in its source";
  if (constant.is_given) {
    doubt = "that it is given the same was seen in two steps, that it gives the same of that is read in its source";
  }
  if (!others.empty()) doubt += fmt::format(", but for {}(), which did not run where frames were recorded", others);
  return doubt;
}

}  // namespace

Cause constant_in_steps_cause() {
  return {
      "constant_in_steps", "The same made in each step", [](const Case& about, std::vector<Diagnosis>& out) {
        for (const auto& [key, made] : made_again(about)) {
          const Trace& trace = *std::get<0>(key);
          const std::size_t count = same_in_each_step(trace, made);
          if (made.changes || count == 0) continue;
          Gathered again(about);
          for (const Operation& one : made.operations) {
            again.add(passes(about).nodes(trace, one.slice), trace.name(one.slice), 0, 0.02);
          }
          for (const std::uint32_t node : made.between) again.add_along(node, 0, 0.02);
          if (!again.worth_saying()) continue;
          const CodeFrame& function = made.code.stack[made.frame];
          const Source::Constant constant = about.places.source(trace).constant(function).value_or(Source::Constant());
          const std::string others = fmt::format("{}", fmt::join(constant.unless, "() or "));
          Diagnosis found =
              again.diagnosis({.cause = "host",
                               .sentence = "The same is made anew in each step: " + function.function + "()",
                               .next = next_of(constant, others),
                               .doubt = doubt_of(constant, others)});
          put_constant(about.places.source(trace), made, found.finding.where);
          found.finding.evidence.push_back(
              {.text = "Operators of it in a step", .value = static_cast<std::int64_t>(count), .unit = Unit::count});
          out.push_back(std::move(found));
        }
      }};
}

}  // namespace stepscope::diagnose::causes
