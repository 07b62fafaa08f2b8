// The products of a trace: which operators multiplied, how much, in which phase; and what stays uncounted.
//
// The outermost operator with a formula counts, what runs below it does not. A formula is one of torch's operators
// (formulas.h), of a table of rules, or what a range says in its name (rules.h); the last two may also say what the
// backward pass of the operator takes, which then counts for its nodes of autograd, whatever runs in them. Two kinds
// are in a trace and did not run: what torch.compile tried out below a range of its own ("… (dynamo_timed)"), and the
// last operator of a checkpointed block, which a forward that runs again begins and leaves before its kernel.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string_view>
#include <vector>

#include "costs/cost_tables.h"
#include "model/trace.h"

namespace stepscope::costs {

enum class Part : std::uint8_t { forward, backward, recompute };  // recompute: forward that ran again in backward
inline constexpr std::size_t kParts = 3;

struct Product {
  static constexpr std::uint32_t no_row = 0xffffffff;

  SliceId slice;
  std::string_view op;         // its name; of a backward pass that a rule tells: that of the forward operator
  std::uint32_t row = no_row;  // of Trace::ops: whose input `operand` has the element type of the product
  std::size_t operand = 0;
  std::string_view said_type;         // without a row: the type, as far as it was said
  std::optional<std::int64_t> bytes;  // moved, where a rule or a range says it
  bool custom = false;                // counted by a rule or a range
  std::int64_t flop;
  std::int64_t masked;  // of these, what a causal mask hides
  Part part;
  // The innermost node of autograd that it ran in; none: not in a backward pass.
  SliceId node;
};

// What is known of the arithmetic of a slice, itself or what it runs within.
enum class Known : std::uint8_t {
  nothing,     // no operator
  no_formula,  // no product, or one that nobody wrote a formula for
  no_shapes,   // it has a formula, but what this needs was not recorded
  counted,
  not_run,  // tried out by the compiler, or left before it ran
};

struct Products {
  static constexpr std::uint32_t none = 0xffffffff;

  std::vector<Product> all;               // by track and time
  std::vector<Known> known;               // per slice
  std::vector<std::uint32_t> product_at;  // per slice: the product that it is or runs within, an index of all, or none
  // Calls with a formula that needs what was not recorded.
  struct WithoutShapes {
    SliceId slice;
    Part part;
  };
  std::vector<WithoutShapes> without_shapes;
  bool masks_known = true;  // false: of an attention it was not recorded whether its mask is causal
};

Products products_of(const Trace& trace, const CostTables& tables);

}  // namespace stepscope::costs
