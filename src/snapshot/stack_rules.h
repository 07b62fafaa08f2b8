// The rules by which a frame tells what memory is for. The first that matches counts.
#pragma once

#include <span>
#include <string_view>

#include "snapshot/stack_roles.h"

namespace stepscope::snapshot {

enum class Match : std::uint8_t { whole, start, part };

struct StackRule {
  Role role;
  std::string_view file;  // a part of the path, with / as separator; empty: any file
  Match how;
  std::string_view function;  // empty: any function
  std::string_view evidence;  // in words, behind "stack: "
  bool weak = false;          // only where no frame further out says something better
};

std::span<const StackRule> stack_rules();

// Index of the rule; 0, which is no rule: none matches.
std::uint8_t rule_of(std::string_view file, std::string_view function);

}  // namespace stepscope::snapshot
