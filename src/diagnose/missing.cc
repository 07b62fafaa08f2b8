#include "diagnose/missing.h"

#include <fmt/format.h>

#include <algorithm>

#include "model/telemetry.h"
#include "model/windows.h"

namespace stepscope::diagnose {
namespace {

// Fewer say little of what happens every few steps.
constexpr std::int64_t kFewSteps = 3;

bool has_operators(const Trace& trace) {
  const auto kinds = trace.slices.category.span();
  return std::any_of(kinds.begin(), kinds.end(), [&](CategoryId category) {
    return category != CategoryId::none &&
           trace.categories[static_cast<std::size_t>(category)].kind == SliceKind::cpu_op;
  });
}

bool has_sizes(const Trace& trace) {
  for (std::size_t row = 0; row < trace.ops.size(); row++) {
    if (trace.ops.input_dims[row] != StringId::none) return true;
  }
  return false;
}

}  // namespace

std::vector<std::string> missing(const Case& about) {
  std::vector<std::string> out;
  const Trace& trace = about.trace;
  if (!about.places.known(trace)) {
    out.emplace_back(
        "No Python frames are recorded, so no place in the code is known. Record with stepscope run, which adds one "
        "step with them, or with_stack=True.");
  }
  if (!has_operators(trace)) {
    out.emplace_back(
        "No operators are recorded: what the host does, and why, is not known. Record with stepscope run, or "
        "ProfilerActivity.CPU.");
  } else if (!has_sizes(trace)) {
    out.emplace_back(
        "No sizes of inputs are recorded: precision, chains, loops over samples and tensors made anew cannot be told. "
        "Record with stepscope run, or record_shapes=True.");
  }
  if (trace.device.size() == 0 && !idle_cores(about.run)) {
    out.emplace_back(
        "What the processors did was not sampled: idle cores and crowded threads cannot be told. Record with stepscope "
        "run.");
  }
  if (!about.now.window.whole_steps) {
    out.emplace_back(
        "No steps are marked: what happens in each and what in some cannot be told. Record with stepscope run, or call "
        "profiler.step() in the loop.");
  } else if (about.steps < kFewSteps) {
    out.push_back(
        fmt::format("Only {} recorded: what happens every few steps may be missing or look too dear. Record more of "
                    "them with stepscope run --steps 20:30.",
                    about.steps == 1 ? "one step is" : fmt::format("{} steps are", about.steps)));
  }
  const auto ranks = static_cast<std::int64_t>(timelines(about.run).size());
  if (trace.rank.world_size > ranks) {
    out.push_back(fmt::format(
        "{} of {} ranks are here: which rank is slow cannot be told. Give the folder that holds all of their files.",
        ranks, trace.rank.world_size));
  }
  return out;
}

}  // namespace stepscope::diagnose
