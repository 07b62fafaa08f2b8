// Every call of an operator whose work is known, FLOP or bytes, with the time it had: what a roofline is drawn of; and
// the time of all else.
//
// A call is a counted product, or an operator with a model of what it moves (traffic.h) that runs in no other call.
// Time is that of its kernels, summed; on a CPU how long the operator took. Kernels that communicate are no work here,
// and copies between host and device are not: they are bound by other things than the device.
#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

#include "costs/rank_costs.h"
#include "costs/traffic.h"

namespace stepscope::costs {

struct WorkCall {
  static constexpr std::uint32_t none = 0xffffffff;

  SliceId slice = SliceId::none;
  std::uint32_t row = none;  // of Trace::ops
  std::string_view op;
  bool backward_of_op = false;  // a rule or range of `op` tells this: its backward pass as a whole
  std::string_view type;        // of the elements, as peaks call it
  Family family = Family::elementwise;
  Work work;
  std::int64_t time_ns = 0;
  std::uint64_t kernels = 0;
  std::uint32_t kernel = none;  // row of Trace::device of the longest
};

enum class NotKnown : std::uint8_t {
  no_operator,  // nobody knows who launched the kernel
  no_model,     // nobody wrote down what the operator does
  no_sizes,     // what its model needs was not recorded
};

struct Unmodelled {
  StringId name = StringId::none;  // the operator; the kernel where no operator is known
  NotKnown why = NotKnown::no_model;
  std::uint64_t calls = 0;
  std::int64_t time_ns = 0;
};

struct WorkCalls {
  std::vector<WorkCall> all;  // by track and start
  // Per row of Trace::device: the call that it works for, an index of all, or WorkCall::none.
  std::vector<std::uint32_t> call_of_kernel;
  std::vector<Unmodelled> unmodelled;  // longest first

  std::int64_t known_ns() const;  // of all calls
  std::int64_t all_ns() const;    // and of all else
};

WorkCalls work_calls(const RankCosts& costs);

}  // namespace stepscope::costs
