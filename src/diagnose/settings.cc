#include "diagnose/settings.h"

#include <charconv>

namespace stepscope::diagnose {

std::string_view setting(const Trace& trace, std::string_view name) {
  constexpr std::string_view kOurs = "stepscope_";
  for (const Metadata& one : trace.metadata) {
    const std::string_view key = one.key;
    if (key.starts_with(kOurs) && key.substr(kOurs.size()) == name) return one.json;
  }
  return {};
}

std::optional<std::int64_t> number_set(const Trace& trace, std::string_view name) {
  const std::string_view json = setting(trace, name);
  std::int64_t number = 0;
  const auto [end, error] = std::from_chars(json.data(), json.data() + json.size(), number);
  if (error != std::errc() || end != json.data() + json.size()) return std::nullopt;
  return number;
}

}  // namespace stepscope::diagnose
