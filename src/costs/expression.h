// The formulas that people write into tables of rules: "2 * prod(d0) * d1[-1]".
//
//   numbers, + - * / ( ), comparisons == < > (1 or 0), min(a, b), max(a, b), if(condition, then, else)
//   d0, d1 …     the sizes of input 0, 1 …; d0[2] one of them, d0[-1] the last, prod(d0) their product, rank(d0) how
//   many last         the last input that is a tensor m0, m1 …     of the inputs behind the first those with two sizes:
//   weights, wherever they stand; m[-1] the last one f0, f1 …     the inputs with four sizes c3           the value of
//   input 3 as recorded: a number, or 1 for True and 0 for False forward      in a formula for backward: what forward
//   took unknown      what cannot be told from sizes
//
// What asks for a size or value that was not recorded is unknown, and so is what is negative or larger than any device
// does.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string_view>

#include "base/result.h"
#include "costs/inputs.h"

namespace stepscope::costs {

class Expression {
 public:
  // Errors say what stands where in the text: a sentence, with no file and line.
  static Result<Expression> parse(std::string_view text);

  std::optional<std::int64_t> value(const Inputs& inputs, std::optional<std::int64_t> forward = {}) const;

  struct Node;  // in expression.cc

 private:
  std::shared_ptr<const Node> root_;
};

}  // namespace stepscope::costs
