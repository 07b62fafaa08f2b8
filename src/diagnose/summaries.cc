#include "diagnose/summaries.h"

#include <algorithm>
#include <array>
#include <map>
#include <set>
#include <string>
#include <utility>

#include "diagnose/passes.h"
#include "model/windows.h"

namespace stepscope::diagnose {
namespace {

// What makes few numbers of many, or hands one to Python.
constexpr std::array<std::string_view, 24> kSummaries{"aten::histc",
                                                      "aten::histogram",
                                                      "aten::quantile",
                                                      "aten::nanquantile",
                                                      "aten::aminmax",
                                                      "aten::min",
                                                      "aten::max",
                                                      "aten::amin",
                                                      "aten::amax",
                                                      "aten::mean",
                                                      "aten::sum",
                                                      "aten::std",
                                                      "aten::var",
                                                      "aten::std_mean",
                                                      "aten::var_mean",
                                                      "aten::norm",
                                                      "aten::median",
                                                      "aten::linalg_norm",
                                                      "aten::linalg_vector_norm",
                                                      "aten::bincount",
                                                      "aten::argmax",
                                                      "aten::topk",
                                                      "aten::count_nonzero",
                                                      "aten::item"};

bool is_summary(std::string_view name) {
  return std::find(kSummaries.begin(), kSummaries.end(), name) != kSummaries.end();
}

// Of a tensor that was there before: "aten::copy_".
bool writes(std::string_view name) { return name.ends_with('_') && name != "aten::detach_"; }

struct Candidate {
  CodeFrame function, caller;
  const CodeCall* call = nullptr;
  std::vector<Operation> operations;
  bool is_pure = true;
  std::int64_t ns = 0, summary_ns = 0;
};
using Function = std::pair<std::string, std::int64_t>;  // file and line

class Candidates {
 public:
  Candidates(const Case& about, const Trace& trace) : about_(about), trace_(trace) {}

  // For each function around the operator whose result the program drops.
  void add(const Operation& one) {
    const Code code = about_.code(trace_, one.slice);
    const std::string_view name = trace_.name(one.slice);
    const bool plain = !writes(name) && !is_backward(name) && passes(about_).backward(trace_, one.slice).empty();
    const CodeFrame* caller = nullptr;
    std::vector<Candidate*> around;
    bool module = false;
    for (const CodeFrame& frame : code.stack) {
      module = module || frame.is_module();
      if (!frame.own) continue;
      if (caller != nullptr) {
        if (Candidate* to = dropped(*caller, frame)) around.push_back(to);
      }
      caller = &frame;
    }
    for (Candidate* to : around) {
      to->is_pure = to->is_pure && plain && !module;
      if (!to->is_pure) continue;
      to->ns += one.cost_ns;
      to->summary_ns += is_summary(name) ? one.cost_ns : 0;
      to->operations.push_back(one);
    }
  }

  // The outermost ones have most operators, and come first.
  std::vector<Candidate*> found() {
    std::vector<Candidate*> out;
    for (auto& [function, one] : all_) {
      if (one.call != nullptr && one.is_pure && one.ns > 0 && 2 * one.summary_ns >= one.ns) out.push_back(&one);
    }
    std::stable_sort(out.begin(), out.end(), [](const Candidate* a, const Candidate* b) {
      return a->operations.size() > b->operations.size();
    });
    return out;
  }

 private:
  // nullptr: its result is used, or it sets what stays. The source is asked once for each pair of functions.
  Candidate* dropped(const CodeFrame& caller, const CodeFrame& frame) {
    const auto [at, is_new] =
        known_.try_emplace({Function(caller.file, caller.line), Function(frame.file, frame.line)}, nullptr);
    if (!is_new) return at->second;
    const Source& source = about_.places.source(trace_);
    const CodeCall* call = source.drops(caller, frame.function);
    if (call == nullptr || source.keeps(frame)) return nullptr;
    Candidate& to = all_[{frame.file, frame.line}];
    to.function = frame;
    to.caller = caller;
    to.call = call;
    return at->second = &to;
  }

  const Case& about_;
  const Trace& trace_;
  std::map<Function, Candidate> all_;
  std::map<std::pair<Function, Function>, Candidate*> known_;
};

}  // namespace

std::vector<Summary> summaries(const Case& about) {
  std::map<Function, Summary> by_function;
  for (const Trace& trace : timelines(about.run)) {
    if (!about.places.known(trace)) continue;
    Candidates candidates(about, trace);
    for (const Operation& one : about.operations(trace)) {
      if (trace.step_at(trace.slices.start_ns[one.slice]) != StepId::none) candidates.add(one);
    }
    std::set<SliceId> taken;
    for (Candidate* one : candidates.found()) {
      bool is_inside = false;
      for (const Operation& operation : one->operations) {
        is_inside = !taken.insert(operation.slice).second || is_inside;
      }
      if (is_inside) continue;
      Summary& to = by_function[{one->function.file, one->function.line}];
      to.function = one->function;
      to.caller = one->caller;
      to.call = one->call;
      to.parts.push_back({&trace, std::move(one->operations)});
    }
  }
  std::vector<Summary> out;
  for (auto& [function, one] : by_function) out.push_back(std::move(one));
  return out;
}

}  // namespace stepscope::diagnose
