// Functions of the program that make a few numbers of many, for nothing but to look at them: statistics of weights,
// gradients or results.
#pragma once

#include <vector>

#include "diagnose/cause.h"

namespace stepscope::diagnose {

// Nothing in it learns, writes to a tensor or calls a module; most of its operators' time is in sums, means, histograms
// and reads; the program does not use what it gives back, and it sets nothing that stays.
struct Summary {
  struct Part {
    const Trace* trace = nullptr;
    std::vector<Operation> operations;  // in all steps
  };
  CodeFrame function, caller;
  const CodeCall* call = nullptr;  // of the one by the other
  std::vector<Part> parts;         // of each rank
};

// Those of the outermost functions. Without frames, or where the source is not recorded, none is known.
std::vector<Summary> summaries(const Case& about);

}  // namespace stepscope::diagnose
