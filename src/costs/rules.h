// Formulas that come from tables: the user's own and those shipped for libraries (rules.txt, docs/flop-rules.md), and
// what the program says itself in the names of its ranges.
//
// A row is NAME | PATTERN | FLOP | BACKWARD | HINTS | WHY. PATTERN fits names of operators (base/name_pattern.h), FLOP
// and BACKWARD are formulas over the sizes of the forward operator's inputs (expression.h). What BACKWARD says goes to
// the autograd node of the operator, found by its sequence number; "-": the operators in the node count.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/name_pattern.h"
#include "base/result.h"
#include "costs/expression.h"

namespace stepscope::costs {

struct FlopRule {
  std::string name;
  NamePattern pattern;
  Expression flop;
  std::optional<Expression> backward;  // nothing: what runs in the node counts
  std::optional<Expression> bytes;     // moved in forward; nothing: each operand once
  std::size_t operand = 0;             // the input whose element type is that of the product
  std::optional<std::size_t> causal;   // the input that says whether a causal mask hides half of it
  bool unless_below = false;           // counts where nothing below it does
  std::string why;
};

class FlopRules {
 public:
  // Appends the rows of `text`. `file` is named in errors; empty: the built-in table.
  Result<void> add(std::string_view text, const std::string& file);
  // The first that fits; nullptr: none.
  const FlopRule* match(std::string_view op) const;
  const std::vector<FlopRule>& all() const { return rules_; }

 private:
  Result<void> add_row(std::span<const std::string_view> row, std::size_t first_own);

  std::vector<FlopRule> rules_;
};

std::string_view built_in_rules();  // rules.txt, compiled in

// What a range says in its name of the work in it: "my_kernel [flop=1200 backward_flop=2400 bytes=96 type=bfloat16]",
// as stepscope.flops.counts writes it. Nothing: it says nothing, or no whole numbers.
struct SaidWork {
  std::string_view name;
  std::int64_t flop = 0;
  std::optional<std::int64_t> backward_flop, bytes;
  std::string_view type;
};
std::optional<SaidWork> said_work(std::string_view range);

}  // namespace stepscope::costs
