#include "analyze/memory/other_stacks.h"

namespace stepscope::analyze::memory {

OtherStacks::OtherStacks(const std::vector<Trace>& stack_steps) {
  for (const Trace& trace : stack_steps) {
    for (const Held& held : held_memory(trace)) add(held);
  }
}

std::string OtherStacks::of(std::int64_t rank, std::string_view op, Phase phase) const {
  const auto found = stacks_.find({rank, std::string(op), phase});
  return found == stacks_.end() ? "" : found->second.second;
}

std::string OtherStacks::of(const Held& held, std::size_t at) const {
  std::string own = stack_of(*held.trace, held.around[at]);
  return own.empty() ? of(held.rank(), held.trace->strings[held.op_name(at)], held.phase(at)) : own;
}

void OtherStacks::add(const Held& held) {
  for (std::size_t at = 0; at < held.memory.allocations.size(); at++) {
    auto& [bytes, stack] = stacks_[{held.rank(), std::string(held.trace->strings[held.op_name(at)]), held.phase(at)}];
    if (held.bytes(at) <= bytes) continue;
    bytes = held.bytes(at);
    stack = stack_of(*held.trace, held.around[at]);
  }
}

}  // namespace stepscope::analyze::memory
