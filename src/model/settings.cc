#include "model/settings.h"

#include <charconv>

namespace stepscope {

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

std::optional<double> ratio_set(const Trace& trace, std::string_view name) {
  const auto permille = number_set(trace, name);
  if (!permille) return std::nullopt;
  return static_cast<double>(*permille) / 1000;
}

std::optional<double> batches_ready(const Trace& trace) { return ratio_set(trace, "batches_ready_permille"); }

}  // namespace stepscope
