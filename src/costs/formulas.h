// How many floating-point operations an operator takes, from the sizes of its inputs: one row of a table for each.
//
// One multiply-add is two FLOP. Products of matrices, convolutions, attention and recurrent cells have a formula; what
// works element by element has none and is told apart as such. Operators that are made of others have none either: they
// are counted by what runs below them. Where one operator with a formula runs below another, the outer one counts.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

#include "costs/inputs.h"

namespace stepscope::costs {

struct Formula {
  std::string_view op;
  // Unknown: sizes or values that it needs were not recorded, or make no sense.
  std::optional<std::int64_t> (*flop)(const Inputs& inputs);
  std::size_t operand = 0;  // the input whose element type is that of the product
  // Attention: the input that says whether a causal mask hides half of it.
  std::optional<std::size_t> causal = {};
  // Counts where nothing below it does: it knows the largest size only.
  bool at_most = false;
};

// nullptr: the operator has none.
const Formula* formula_of(std::string_view op);

// Is the mask that `formula` asks for causal? Unknown where the value was not recorded.
std::optional<bool> is_causal(const Formula& formula, const Inputs& inputs);

// A convolution whose other arguments were not recorded, from the gradient of its output.
std::optional<std::int64_t> convolution_by_gradient(const Inputs& forward, const Sizes& gradient);

}  // namespace stepscope::costs
