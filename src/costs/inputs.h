// What the operators of a trace were given: sizes of tensors, types, values of the rest.
//
// Expected workload: 10^5 to 10^7 operators with 10^2 to 10^4 different texts; each text is parsed once.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "model/input_text.h"
#include "model/trace.h"

namespace stepscope::costs {

struct Inputs {
  const std::vector<Shape>& shapes;        // empty: not recorded
  const std::vector<std::string>& values;  // of what is no tensor, "" for tensors; empty: not recorded

  // nullptr: no such input, or no tensor.
  const Sizes* tensor(std::size_t at) const {
    return at < shapes.size() && !shapes[at].sizes.empty() ? &shapes[at].sizes : nullptr;
  }
  std::string_view value(std::size_t at) const { return at < values.size() ? values[at] : std::string_view(); }
};

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
