// All steps of the rank that takes longest, from the marks that are kept of them: how they change as the job goes on,
// and which are far longer than the others. A recording has a handful of them.
#pragma once

#include <cstdint>
#include <optional>

#include "diagnose/case.h"
#include "model/settings.h"

namespace stepscope::diagnose {

// Steps that take longer the longer the job runs. Times per step.
struct GrowingSteps {
  std::int64_t usual_ns = 0;  // median of all
  std::int64_t early_ns = 0;  // median early on
  std::int64_t late_ns = 0;   // median of the last quarter
};

// Every so many steps one that takes far longer.
struct LongSteps {
  std::int64_t every = 0;     // steps from one to the next
  std::int64_t count = 0;     // such steps
  std::int64_t more_ns = 0;   // how much longer each is than the others, as a median
  double share = 0;           // of the time of all steps: what they take more
  std::int64_t usual_ns = 0;  // median of the others
  double waiting = 0;         // of what they take more: waits for the data loader
  double compiling = 0;       // the same of compiling again what had been compiled
  bool is_recorded = false;   // one of them is in the recording
};

// Code that torch.compile compiles again and again when the job is warm.
struct Recompiled {
  std::int64_t count = 0;  // forward passes
  std::int64_t steps = 0;  // in which any was
  double share = 0;        // of the time of all steps
  Compilation newest;      // of the code that takes longest
};

// nullopt: they do not, or too few steps are marked.
std::optional<GrowingSteps> growing_steps(const Case& about);
// Those that grew until what is kept was as much as the program keeps: usual ones are far longer than the recorded
// ones, which are the early ones here, although nobody recorded them, and become no shorter.
std::optional<GrowingSteps> grown_since_recorded(const Case& about);
std::optional<LongSteps> long_steps(const Case& about);
std::optional<Recompiled> recompiled(const Case& about);

// What is compiled again in recorded steps, with its guard: of the code that takes longest; empty: not known.
Compilation guard_in_recording(const Case& about);

}  // namespace stepscope::diagnose
