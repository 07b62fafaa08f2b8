#include "snapshot/passes.h"

#include <algorithm>

#include "snapshot/marks.h"

namespace stepscope::snapshot {

Pass pass_of(Phase phase) {
  switch (phase) {
    case Phase::forward: return Pass::forward;
    case Phase::backward: return Pass::backward;
    case Phase::optimizer: return Pass::optimizer;
    case Phase::zero_grad: return Pass::zero_grad;
    default: return Pass::unknown;
  }
}

Pass pass_of(const StackRole& role) {
  if (role.role == Role::zero_grad) return Pass::zero_grad;
  if (role.in_backward) return Pass::backward;
  if (role.in_optimizer) return Pass::optimizer;
  return role.role == Role::forward ? Pass::forward : Pass::unknown;
}

Passes::Passes(const CudaSnapshot& snapshot, const SnapshotDevice& device, const std::vector<StackRole>& roles)
    : device_(device),
      mark_(innermost_marks(device, [&](const MarkedRange& mark) { return !is_step_mark(snapshot, mark); })),
      pass_mark_(
          innermost_marks(device, [](const MarkedRange& mark) { return pass_of(mark.phase) != Pass::unknown; })) {
  const std::uint32_t count = device.events.count;
  pass_.resize(count);
  by_mark_.resize(count);
  Pass before = Pass::unknown;
  for (std::uint32_t event = 0; event < count; event++) {
    const StackId stack = snapshot.events.stack[device.events.first + event];
    Pass pass = stack == StackId::none ? Pass::unknown : pass_of(roles[static_cast<std::size_t>(stack)]);
    if (pass == Pass::unknown && pass_mark_[event] != kNoEntry) {
      pass = pass_of(device.marks[pass_mark_[event]].phase);
      by_mark_[event] = true;
    }
    pass_[event] = pass;
    auto& first = first_[static_cast<std::size_t>(pass)];
    auto& last = last_[static_cast<std::size_t>(pass)];
    if (event == 0 || pass != before) {
      first.push_back(event);
      last.push_back(event);
    }
    last.back() = event;
    before = pass;
  }
}

std::uint32_t Passes::next(Pass pass, std::uint32_t event) const {
  const auto& last = last_[static_cast<std::size_t>(pass)];
  const auto at = std::upper_bound(last.begin(), last.end(), event);
  if (at == last.end()) return events();
  return std::max(event + 1, first_[static_cast<std::size_t>(pass)][static_cast<std::size_t>(at - last.begin())]);
}

std::uint32_t Passes::end_of_mark(Pass pass, std::uint32_t event) const {
  const std::uint32_t mark = pass_mark_[event];
  if (mark == kNoEntry || pass_of(device_.marks[mark].phase) != pass) return events();
  return std::min(device_.marks[mark].end, events());
}

std::uint32_t Passes::next_oom(std::uint32_t event) const {
  const auto at = std::upper_bound(device_.ooms.begin(), device_.ooms.end(), event);
  return at == device_.ooms.end() ? events() : *at;
}

}  // namespace stepscope::snapshot
