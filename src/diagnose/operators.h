// The operators that the thread of the steps calls one after the other, with what they were given: where chains of them
// are looked for.
#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

#include "costs/traffic.h"
#include "diagnose/case.h"
#include "diagnose/inputs.h"

namespace stepscope::diagnose {

struct Operator {
  const Trace* trace = nullptr;
  SliceId slice = SliceId::none;  // outermost
  std::string_view name;
  const OperatorInputs* inputs = nullptr;
  Phase phase = Phase::other;
  StepId step = StepId::none;
  std::vector<std::uint32_t> after;  // nodes of the code behind it
};

// Of one rank, in one step?
inline bool is_same_place(const Operator& a, const Operator& b) { return a.trace == b.trace && a.step == b.step; }

// What a call is made of, as far as it matters to whether it could be one with its neighbors.
bool is_view(std::string_view name);            // costs nothing but the call: another look at the same memory
bool is_without_values(std::string_view name);  // gives memory that nobody has written to: empty, resize_ …
bool is_elementwise(std::string_view name);     // each element of the output by those at its place
bool is_linear(std::string_view name);          // elementwise, of sums and multiples: add, mul, lerp …
bool is_put_elsewhere(std::string_view name);  // the same elements at another place, or of another type: copy_, cat …
bool is_reduction(std::string_view name);      // sums up over a dimension: mean, var, amax …
bool is_product(std::string_view name);        // of matrices: mm, bmm, linear, einsum …
// Costs arithmetic on each element, and not only its way through memory: tanh, exp …
bool is_transcendental(std::string_view name);

// That of Python's operators as which a program writes it: "@" of aten::matmul, "[]" of aten::index; empty: none.
std::string_view symbol_of(std::string_view name);

// Draws numbers, as dropout that is on does. A library may do so whatever the source calls it.
bool is_by_chance(std::string_view name);

// The class of the optimizer that steps, of several the first: "AdamW"; empty: none is marked.
std::string_view optimizer_class(const Trace& trace);

// Of all ranks, each rank's in the order in which it called them; without those of backward passes.
const std::vector<Operator>& forward_operators(const Case& about);

}  // namespace stepscope::diagnose
