// The rule table of device classes: text → rules, and the question "which rule fits this piece of work?".
//
// A line is NAME | CLASS | FAMILY | PATTERN | WHY. Beside text to look for (base/name_pattern.h) a pattern may ask for
// @memcpy, @memset and @collective: what the profiler recorded. docs/class-rules.md is the user's description.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/name_pattern.h"
#include "base/result.h"
#include "model/trace.h"

namespace stepscope::derive {

// What a rule may ask about a piece of work.
struct WorkName {
  std::string_view name;
  SliceKind kind = SliceKind::kernel;
  bool collective = false;  // it carries the metadata of a collective
};

class RuleTable {
 public:
  RuleTable();  // rule 0 stands for "no rule matched"

  // Appends the rules in `text`. `file` is named in errors; empty: the built-in table.
  Result<void> add(std::string_view text, const std::string& file);
  // Index of the first rule that fits; 0: none.
  std::uint16_t match(const WorkName& work) const;
  const std::vector<ClassRule>& rules() const { return rules_; }

 private:
  Result<void> add_row(std::span<const std::string_view> row, std::size_t first_own);

  std::vector<ClassRule> rules_;
  std::vector<NamePattern> patterns_;
};

// The user's table (empty path: none), then the built-in one.
Result<RuleTable> load_rules(const std::string& users_path);

std::string_view built_in_rules();  // class_rules.txt, compiled in

}  // namespace stepscope::derive
