// Large tensors that are made anew in each step: their memory comes from the system each time, page by page.
#include <algorithm>
#include <array>

#include "diagnose/cause.h"
#include "diagnose/gathered.h"
#include "diagnose/operators.h"
#include "diagnose/passes.h"

namespace stepscope::diagnose::causes {
namespace {

constexpr std::array<std::string_view, 13> kMakers{
    "aten::zeros",     "aten::ones",   "aten::full",      "aten::empty",     "aten::zeros_like",
    "aten::ones_like", "aten::arange", "aten::full_like", "aten::new_zeros", "aten::new_full",
    "aten::new_ones",  "aten::eye",    "aten::new_empty"};
// What is shorter is no large tensor.
constexpr std::int64_t kLongMakeNs = 100'000;

}  // namespace

Cause allocation_in_steps_cause() {
  return {
      "allocation_in_steps", "Large tensors made anew", [](const Case& about, std::vector<Diagnosis>& out) {
        Gathered made(about);
        const Passes& pass = passes(about);
        for (const Operator& one : forward_operators(about)) {
          if (std::find(kMakers.begin(), kMakers.end(), one.name) == kMakers.end()) continue;
          const std::vector<std::uint32_t>& nodes = pass.nodes(*one.trace, one.slice);
          std::int64_t time_ns = 0;
          for (const std::uint32_t node : nodes) time_ns += about.cost_ns(node);
          if (time_ns < kLongMakeNs) continue;
          // Filling memory that is there already takes a third of that, not filling it nothing.
          made.add(nodes, one.name, 0, 0.35);
        }
        if (!made.worth_saying()) return;
        out.push_back(made.diagnosis(
            {.cause = "memory",
             .sentence = "Large tensors are made anew in the steps, and their memory comes from the system each time",
             .next = "Make them once before the loop and write into them: out=, copy_(), zero_()",
             .doubt = "that the memory is new each time is inferred from how long filling it takes"}));
      }};
}

}  // namespace stepscope::diagnose::causes
