// What the name of an NVTX or ROCTx range says. torch writes its operators as "aten::linear, seq = 45, op_id = 12,
// sizes = [[8, 64], [64]]": the name, the autograd sequence number, the number of the call, the shapes of its inputs.
// Taken as a whole every call would have a name of its own; here it is taken apart: calls of one operator group.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "model/trace.h"

namespace stepscope {

struct RangeName {
  std::string_view name;
  std::int64_t sequence = kAbsent;
  std::int64_t call = kAbsent;  // op_id: the profiler's record function id
  std::string sizes;            // as JSON without blanks; empty: not given

  bool annotated() const { return sequence != kAbsent || call != kAbsent || !sizes.empty(); }
};

RangeName range_name(std::string_view text);

// Did torch name an operator (or autograd node), not a person a part of the program?
bool is_operator(const RangeName& range);

}  // namespace stepscope
