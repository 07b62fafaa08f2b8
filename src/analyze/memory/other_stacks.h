// Python stacks for recordings that have none: those of the step that was recorded with them.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <tuple>
#include <utility>
#include <vector>

#include "analyze/memory/held.h"

namespace stepscope::analyze::memory {

// From where an operator is called in a phase: of several places the one with the largest allocation.
class OtherStacks {
 public:
  explicit OtherStacks(const std::vector<Trace>& stack_steps);

  // "": not known.
  std::string of(std::int64_t rank, std::string_view op, Phase phase) const;
  // The stack of an allocation as recorded, else the one that its operator has here.
  std::string of(const Held& held, std::size_t at) const;

 private:
  void add(const Held& held);

  std::map<std::tuple<std::int64_t, std::string, Phase>, std::pair<std::int64_t, std::string>> stacks_;
};

}  // namespace stepscope::analyze::memory
