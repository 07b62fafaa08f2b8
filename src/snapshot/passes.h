// Which pass of the training each event of a device belongs to, and when the next one of a kind comes.
//
// By the event's stack where that tells; else by the marks of the program. Python's stacks know nothing of the backward
// pass on a GPU, which runs on a thread of its own: then the marks tell it, or nothing does.
#pragma once

#include <array>
#include <vector>

#include "model/allocator_history.h"
#include "snapshot/stack_roles.h"

namespace stepscope::snapshot {

enum class Pass : std::uint8_t { unknown, forward, backward, optimizer, zero_grad };
inline constexpr std::size_t kPasses = 5;

class Passes {
 public:
  Passes(const CudaSnapshot& snapshot, const SnapshotDevice& device, const std::vector<StackRole>& roles);

  // Of an event by its number in the device's trace.
  Pass of(std::uint32_t event) const { return pass_[event]; }
  bool by_mark(std::uint32_t event) const { return by_mark_[event]; }
  // Index into marks of the innermost one that is of a pass, or of anything but a step; kNoEntry: none.
  std::uint32_t mark_of_pass(std::uint32_t event) const { return pass_mark_[event]; }
  std::uint32_t innermost_mark(std::uint32_t event) const { return mark_[event]; }
  // The first event of that pass behind `event`; the number of events where there is none.
  std::uint32_t next(Pass pass, std::uint32_t event) const;
  // Where the mark of this pass that the event lies in ends (number of the first event behind it); the number of events
  // where no mark tells.
  std::uint32_t end_of_mark(Pass pass, std::uint32_t event) const;
  // The first event behind `event` where memory ran out; the number of events where there is none.
  std::uint32_t next_oom(std::uint32_t event) const;
  std::uint32_t events() const { return static_cast<std::uint32_t>(pass_.size()); }

 private:
  const SnapshotDevice& device_;
  std::vector<Pass> pass_;
  std::vector<bool> by_mark_;
  std::vector<std::uint32_t> mark_, pass_mark_;
  std::array<std::vector<std::uint32_t>, kPasses> first_;  // of each stretch of events of a pass: its first event
  std::array<std::vector<std::uint32_t>, kPasses> last_;   // and its last
};

Pass pass_of(Phase phase);
Pass pass_of(const StackRole& role);

}  // namespace stepscope::snapshot
