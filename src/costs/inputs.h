// What operators were given, from the texts that the profiler wrote: sizes of tensors, types, values of the rest.
//
// Expected workload: 10^5 to 10^7 operators with 10^2 to 10^4 different texts; each text is parsed once.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "model/trace.h"

namespace stepscope::costs {

using Sizes = std::vector<std::int64_t>;

// One input of an operator: the sizes of a tensor (none for a number), or those of each tensor of a list.
struct Shape {
  Sizes sizes;
  std::vector<Sizes> list;
};

struct Inputs {
  const std::vector<Shape>& shapes;        // empty: not recorded
  const std::vector<std::string>& values;  // of what is no tensor, "" for tensors; empty: not recorded

  // nullptr: no such input, or no tensor.
  const Sizes* tensor(std::size_t at) const {
    return at < shapes.size() && !shapes[at].sizes.empty() ? &shapes[at].sizes : nullptr;
  }
  std::string_view value(std::size_t at) const { return at < values.size() ? values[at] : std::string_view(); }
};

// [[8,64],[],[[4],[4]]]; what is no such text has no shapes.
std::vector<Shape> parse_shapes(std::string_view json);
// ["", "[1, 1]", "True"]; empty for a text that is none.
std::vector<std::string> parse_texts(std::string_view json);
// "[1, 1]" → 1, 1.
std::optional<Sizes> parse_sizes(std::string_view text);
// "True", "False" and lists of them: the truths in order.
std::optional<std::vector<bool>> parse_truths(std::string_view text);

// The inputs of the operators of one trace.
class TraceInputs {
 public:
  explicit TraceInputs(const Trace& trace) : trace_(trace) {}
  Inputs of(std::uint32_t ops_row);
  // "float32", "bfloat16" …: torch's name for the element type of an input; "" where it is not recorded.
  std::string_view type(std::uint32_t ops_row, std::size_t at);

 private:
  const Trace& trace_;
  std::unordered_map<StringId, std::vector<Shape>> shapes_;
  std::unordered_map<StringId, std::vector<std::string>> texts_;
};

}  // namespace stepscope::costs
