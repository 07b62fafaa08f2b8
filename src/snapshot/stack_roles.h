// What a stack says of the allocation that it made: the role of its innermost telling frame, by a table of rules over
// the files and functions of torch and of the libraries around it (stack_rules.h).
//
// Expected workload: 10^2 to 10^5 stacks of some 30 frames, of 10^2 to 10^4 distinct frames. Each frame is judged once.
#pragma once

#include <cstdint>
#include <vector>

#include "model/cuda_snapshot.h"

namespace stepscope::snapshot {

enum class Role : std::uint8_t {
  none,
  communication,
  workspace,
  input,
  optimizer_init,  // makes the state of an optimizer
  optimizer,       // elsewhere in an optimizer's step
  zero_grad,
  move,        // Module.to and the like
  init,        // parameters are made
  load,        // a checkpoint is loaded
  accumulate,  // AccumulateGrad
  backward,
  forward,
};

struct StackRole {
  Role role = Role::none;
  std::uint8_t rule = 0;     // that gave it; index into stack_rules()
  bool in_backward = false;  // some frame is of the backward pass: with forward it is run again
  bool in_optimizer = false;
};

// By StackId.
std::vector<StackRole> stack_roles(const CudaSnapshot& snapshot);

}  // namespace stepscope::snapshot
