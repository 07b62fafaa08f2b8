#include "diagnose/summaries.h"

#include <algorithm>
#include <array>
#include <map>
#include <optional>
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
  Summary summary;
  bool is_pure = true;
  std::int64_t ns = 0, summary_ns = 0;
};
using Function = std::pair<std::string, std::int64_t>;  // file and line

// For each function around the operator whose result the program drops.
void add_to_candidates(const Case& about, const Trace& trace, const Operation& one,
                       std::map<Function, Candidate>& candidates) {
  const Code code = about.code(trace, one.slice);
  const std::string_view name = trace.name(one.slice);
  const bool plain = !writes(name) && !is_backward(name) && passes(about).backward(trace, one.slice).empty();
  const CodeFrame* caller = nullptr;
  std::vector<Candidate*> around;
  bool module = false;
  for (const CodeFrame& frame : code.stack) {
    module = module || frame.function.starts_with("nn.Module: ");
    if (!frame.own) continue;
    const CodeCall* call = caller == nullptr ? nullptr : about.places.drops(trace, *caller, frame.function);
    if (call != nullptr) {
      Candidate& to = candidates[{frame.file, frame.line}];
      to.summary.trace = &trace;
      to.summary.function = frame;
      to.summary.caller = *caller;
      to.summary.call = call;
      around.push_back(&to);
    }
    caller = &frame;
  }
  for (Candidate* to : around) {
    to->is_pure = to->is_pure && plain && !module;
    if (!to->is_pure) continue;
    to->ns += one.cost_ns;
    to->summary_ns += is_summary(name) ? one.cost_ns : 0;
    to->summary.operations.push_back(one);
  }
}

}  // namespace

std::vector<Summary> summaries(const Case& about) {
  std::vector<Summary> out;
  for (const Trace& trace : timelines(about.run)) {
    if (!about.places.known(trace)) continue;
    std::map<Function, Candidate> candidates;
    for (const Operation& one : about.operations(trace)) {
      if (trace.step_at(trace.slices.start_ns[one.slice]) == StepId::none) continue;
      add_to_candidates(about, trace, one, candidates);
    }
    std::vector<Candidate*> found;
    for (auto& [function, one] : candidates) {
      if (one.is_pure && 2 * one.summary_ns >= one.ns && one.ns > 0) found.push_back(&one);
    }
    // The outermost ones have most.
    std::stable_sort(found.begin(), found.end(), [](const Candidate* a, const Candidate* b) {
      return a->summary.operations.size() > b->summary.operations.size();
    });
    std::set<SliceId> taken;
    for (Candidate* one : found) {
      bool is_inside = false;
      for (const Operation& operation : one->summary.operations) {
        is_inside = !taken.insert(operation.slice).second || is_inside;
      }
      if (!is_inside) out.push_back(std::move(one->summary));
    }
  }
  return out;
}

}  // namespace stepscope::diagnose
