// Issue: what was odd, repaired or lost in an input. Issues are rows, shown at every door; nothing is lost silently.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace stepscope {

enum class Severity : std::uint8_t {
  info,      // odd, nothing was changed
  repaired,  // read with a harmless repair; no data lost
  lost,      // data is missing from the model
};

std::string_view to_string(Severity severity);

struct Issue {
  std::string code;  // stable snake_case id, such as "cut_inside_event"
  Severity severity = Severity::info;
  std::string sentence;                 // what is wrong, one sentence
  std::string advice;                   // what to do about it, starts with a verb; may be empty
  std::uint64_t count = 1;              // occurrences
  std::string file;                     // where it was first seen
  std::optional<std::uint64_t> offset;  // byte offset of the first one in the uncompressed text
  std::optional<std::uint64_t> event;   // index of the first event concerned, in file order
};

// Adds `issue`, or adds its count to the one with the same code and file; the first place is kept.
void add_issue(std::vector<Issue>& issues, Issue issue);

}  // namespace stepscope
