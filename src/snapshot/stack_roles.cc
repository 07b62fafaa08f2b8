#include "snapshot/stack_roles.h"

#include "snapshot/stack_rules.h"

namespace stepscope::snapshot {
namespace {

StackRole role_of(const CudaSnapshot& snapshot, StackId stack, const std::vector<std::uint8_t>& rule_of_frame) {
  StackRole found;
  std::uint8_t weak = 0;
  for (const FrameId frame : snapshot.frames_of(stack)) {
    const std::uint8_t rule = rule_of_frame[static_cast<std::size_t>(frame)];
    if (rule == 0) continue;
    const StackRule& about = stack_rules()[rule];
    found.in_backward |= about.role == Role::backward || about.role == Role::accumulate;
    found.in_optimizer |= about.role == Role::optimizer || about.role == Role::optimizer_init;
    if (about.weak) {
      if (weak == 0) weak = rule;
    } else if (found.rule == 0) {
      found.rule = rule;
    }
  }
  if (found.rule == 0) found.rule = weak;
  found.role = stack_rules()[found.rule].role;
  return found;
}

}  // namespace

std::vector<StackRole> stack_roles(const CudaSnapshot& snapshot) {
  std::vector<std::uint8_t> rule_of_frame(snapshot.frames.size());
  for (std::size_t i = 0; i < rule_of_frame.size(); i++) {
    const SnapshotFrame& frame = snapshot.frames[i];
    rule_of_frame[i] = rule_of(snapshot.strings[frame.file], snapshot.strings[frame.function]);
  }
  std::vector<StackRole> roles(snapshot.stacks());
  for (std::size_t i = 0; i < roles.size(); i++) {
    roles[i] = role_of(snapshot, static_cast<StackId>(i), rule_of_frame);
  }
  return roles;
}

}  // namespace stepscope::snapshot
