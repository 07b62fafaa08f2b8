// SQL that shows a number of evidence: `stepscope query PATH "…"` (docs/tables.md has the tables).
#pragma once

#include <fmt/format.h>

#include <string>
#include <string_view>

namespace stepscope::diagnose {

// A text in quotes.
inline std::string in_quotes(std::string_view text) {
  std::string out = "'";
  for (const char c : text) out += c == '\'' ? "''" : std::string(1, c);
  return out + "'";
}

// Each call of an operator.
inline std::string calls_of(std::string_view name) {
  return fmt::format("select rank, start_ns, dur_ns, phase from slices where name = {}", in_quotes(name));
}
inline std::string samples_of(std::string_view name) {
  return fmt::format("select time_ns, target, value, rate from samples where name = {}", in_quotes(name));
}
// What the hooks noted of torch and the machine.
inline std::string setting_of(std::string_view name) {
  return fmt::format("select rank, key, json from metadata where key = {}",
                     in_quotes(fmt::format("stepscope_{}", name)));
}
inline std::string collectives_of(std::string_view group = {}) {
  std::string out = "select rank, start_ns, dur_ns, collective, in_elements, dtype, group_name from collectives";
  if (!group.empty()) out += fmt::format(" where group_name = {}", in_quotes(group));
  return out;
}
inline std::string marks_of_steps() { return "select rank, step, dur_ns from marks where phase is null"; }

}  // namespace stepscope::diagnose
