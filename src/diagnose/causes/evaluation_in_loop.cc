// Evaluation among the steps: operators under no_grad in steps of a job that trains, which other steps do not have; or
// in each of them, where the program sets the model to evaluate the very batch that it learns from.
#include <algorithm>
#include <array>
#include <cstdint>
#include <iterator>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <tuple>
#include <utility>
#include <vector>

#include "diagnose/cause.h"
#include "diagnose/gathered.h"
#include "diagnose/model_calls.h"
#include "diagnose/operators.h"
#include "diagnose/passes.h"
#include "diagnose/source.h"
#include "model/lookup.h"

namespace stepscope::diagnose::causes {
namespace {

// Autograd numbers what it records: an operator without a number ran under no_grad, or is none that has a gradient.
bool has_number(const Trace& trace, SliceId slice) {
  const std::size_t row = row_of(trace.ops.slice, slice);
  return row < trace.ops.size() && is_recorded(trace, row);
}

// Arithmetic that a model is made of.
bool is_of_model(std::string_view name) {
  const costs::TrafficModel* model = costs::traffic_of(name);
  if (is_product(name) || name == "aten::conv2d" || name == "aten::conv1d" || name == "aten::convolution") return true;
  return model != nullptr && (model->family == costs::Family::convolution || model->family == costs::Family::matrices ||
                              model->family == costs::Family::attention || model->family == costs::Family::recurrent);
}

// Where the program has the model evaluated by its source: it calls eval() on the way there, or in a loop. nullopt: it
// calls none.
std::optional<Place> eval_call(const Case& about, const Trace& trace, const Code& code) {
  if (auto way = about.places.way_to(trace, code, "eval")) return way;
  const CodeCall* call = about.places.source(about.trace).call_in_loop("eval");
  if (call == nullptr) return std::nullopt;
  Place place;
  put_call(*call, place);
  return place;
}

// What steps learn from: their arithmetic, by module and operator with the fewest and the most numbers that it was
// given, and the program's functions around. A step that ends with its optimizer begins with what is done for the batch
// before, which is about as large.
struct Learning {
  using Key = std::tuple<const Trace*, std::string_view, std::string_view>;
  std::map<Key, std::pair<std::int64_t, std::int64_t>> arithmetic;
  std::set<std::pair<std::string, std::int64_t>> functions;  // file, line

  bool has(const Key& key, std::int64_t given) const {
    const auto found = arithmetic.find(key);
    return found != arithmetic.end() && given >= found->second.first / 2 && given / 2 <= found->second.second;
  }
};

std::int64_t numbers_given(const Operator& one) {
  const Sizes* first = one.inputs->tensor();
  return first == nullptr ? 0 : elements(*first);
}

// Is it called by a function that sets a model to evaluate, and calls nothing that is learned from?
bool is_below_eval(const Case& about, const Operator& one, const Learning& learning) {
  const Source& source = about.places.source(*one.trace);
  const Code code = about.code(*one.trace, one.slice);
  return std::any_of(code.stack.begin(), code.stack.end(), [&](const CodeFrame& frame) {
    return frame.own && source.calls(frame, "eval") && !learning.functions.contains({frame.file, frame.line});
  });
}

using CallsByStart = std::map<std::pair<const Trace*, std::int64_t>, const ModelCall*>;

CallsByStart calls_by_start(const Case& about) {
  CallsByStart out;
  for (const ModelCall& call : model_calls(about)) out.emplace(std::pair{call.trace, call.start_ns}, &call);
  return out;
}

// The module that is called around it, outermost; nullptr: none.
const ModelCall* call_around(const CallsByStart& calls, const Operator& one) {
  const std::int64_t at = one.trace->slices.start_ns[one.slice];
  const auto after = calls.upper_bound({one.trace, at});
  if (after == calls.begin()) return nullptr;
  const ModelCall* call = std::prev(after)->second;
  return call->trace == one.trace && at < call->end_ns ? call : nullptr;
}

using Stretch = std::vector<const Operator*>;

// Of a stretch what the program evaluates, if all arithmetic of a model in it is also done in the same step to learn
// from, by the same modules and on about as much. Else empty: a teacher, a target network, moves in a game have
// models or batches of their own.
Stretch evaluated_again(const Case& about, const Stretch& stretch, const Learning& learning,
                        const CallsByStart& calls) {
  Stretch out;
  bool has_model = false;
  for (const Operator* one : stretch) {
    if (!is_below_eval(about, *one, learning)) continue;
    if (is_of_model(one->name)) {
      const ModelCall* call = call_around(calls, *one);
      if (call == nullptr || !learning.has({call->trace, call->module, one->name}, numbers_given(*one))) return {};
      has_model = true;
    }
    out.push_back(one);
  }
  return has_model ? out : Stretch();
}

// Is a function on the way there called so? Moves in a game are made without gradients too, and are what it trains on.
bool is_named_so(const Code& code) {
  constexpr std::array<std::string_view, 3> kNames{"eval", "valid", "test"};
  return std::any_of(code.stack.begin(), code.stack.end(), [&](const CodeFrame& frame) {
    return frame.own && std::any_of(kNames.begin(), kNames.end(), [&](std::string_view name) {
             return frame.function.find(name) != std::string::npos;
           });
  });
}

}  // namespace

Cause evaluation_in_loop_cause() {
  return {
      "evaluation_in_loop", "Evaluation among the steps", [](const Case& about, std::vector<Diagnosis>& out) {
        const std::vector<Operator>& all = forward_operators(about);
        const Passes& pass = passes(about);
        Gathered evaluation(about);
        std::map<StepId, std::int64_t> per_step;
        // A stretch of operators under no_grad with the arithmetic of a model in it, and the code between them.
        Stretch stretch;
        bool has_model = false, trains = false;
        std::vector<Stretch> stretches;
        Learning learning;
        const CallsByStart calls = calls_by_start(about);
        const auto learn = [&](const Operator& one) {
          const ModelCall* call = call_around(calls, one);
          if (call == nullptr) return;
          const std::int64_t given = numbers_given(one);
          auto& [least, most] =
              learning.arithmetic.try_emplace({call->trace, call->module, one.name}, given, given).first->second;
          least = std::min(least, given), most = std::max(most, given);
          for (const CodeFrame& frame : about.code(*one.trace, one.slice).stack) {
            learning.functions.insert({frame.file, frame.line});
          }
        };
        const auto close = [&] {
          if (has_model && stretch.size() > 1) stretches.push_back(stretch);
          stretch.clear();
          has_model = false;
        };
        for (const Operator& one : all) {
          if (one.phase == Phase::optimizer || has_number(*one.trace, one.slice) ||
              (!stretch.empty() && (stretch.back()->trace != one.trace || stretch.back()->step != one.step))) {
            const bool goes_back = !pass.backward(*one.trace, one.slice).empty();
            trains = trains || goes_back;
            if (goes_back && is_of_model(one.name)) learn(one);
            close();
            if (one.phase == Phase::optimizer || has_number(*one.trace, one.slice)) continue;
          }
          stretch.push_back(&one);
          has_model = has_model || is_of_model(one.name);
        }
        close();
        if (!trains) return;
        const auto is_in_each = [&] {
          std::set<StepId> steps;
          for (const Stretch& one : stretches) steps.insert(one.front()->step);
          return steps.size() >= static_cast<std::size_t>(about.steps);
        };
        const bool in_each = is_in_each();
        if (in_each) {  // it is part of the method, but for what looks at the very batch again
          for (Stretch& one : stretches) one = evaluated_again(about, one, learning, calls);
          std::erase_if(stretches, [](const Stretch& one) { return one.empty(); });
          if (!is_in_each()) return;
        }
        for (const Stretch& one : stretches) {
          const Trace& trace = *one.front()->trace;
          const std::int64_t from = trace.slices.start_ns[one.front()->slice];
          const std::int64_t until = trace.slices.end_ns(one.back()->slice);
          per_step[one.front()->step] += until - from;
          for (const Operator* each : one) {
            evaluation.add(pass.nodes(trace, each->slice), each->name, 0, 0.1);
            if (each == one.back()) continue;
            for (const std::uint32_t node : each->after) evaluation.add(node, about.work(node), "code", 0, 0.1);
          }
        }
        if (!evaluation.worth_saying()) return;
        const Operator& first = *stretches.front().front();
        const Code code = about.code(*first.trace, first.slice);
        const std::optional<Place> call = eval_call(about, *first.trace, code);
        if (about.places.known(*first.trace) && !call && !is_named_so(code)) return;
        Diagnosis found = evaluation.diagnosis(
            {.cause = "evaluation",
             .sentence = in_each ? "Each step evaluates the model on the batch that it learns from"
                                 : "The model is evaluated among the steps, in some of them",
             .next = in_each ? "Do so in the steps alone whose result is shown, or make it of what the forward pass of "
                               "the step gives anyway"
                             : "Evaluate less often, on part of the data, or in larger batches under "
                               "torch.inference_mode()",
             .doubt = in_each ? "that nothing is learned from what it gives is inferred" : ""});
        // What is evaluated is the model that trains: the place is where the loop has it done.
        Place& where = found.finding.where;
        if (call) {
          where.file = call->file;
          where.line = call->line;
          where.function = call->function;
        }
        found.finding.evidence.push_back({.text = "Steps with evaluation, of those recorded",
                                          .value = static_cast<std::int64_t>(per_step.size()),
                                          .unit = Unit::count});
        out.push_back(std::move(found));
      }};
}

}  // namespace stepscope::diagnose::causes
