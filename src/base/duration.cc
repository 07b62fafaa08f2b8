#include "base/duration.h"

#include <array>
#include <charconv>
#include <cmath>

namespace stepscope {
namespace {

struct TimeUnit {
  std::string_view name;
  double seconds;
};
constexpr std::array kTimeUnits{TimeUnit{"us", 1e-6}, TimeUnit{"ms", 1e-3}, TimeUnit{"s", 1}, TimeUnit{"m", 60},
                                TimeUnit{"h", 3600}};

}  // namespace

std::optional<double> read_duration(std::string_view text, BareNumber bare) {
  if (text.starts_with('-')) return std::nullopt;  // -0 too
  double number = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (error != std::errc() || !std::isfinite(number)) return std::nullopt;
  const std::string_view unit = text.substr(static_cast<std::size_t>(end - text.data()));
  if (unit.empty()) return bare == BareNumber::seconds ? std::optional(number) : std::nullopt;
  for (const TimeUnit& one : kTimeUnits) {
    if (unit == one.name)
      return std::isfinite(number * one.seconds) ? std::optional(number * one.seconds) : std::nullopt;
  }
  return std::nullopt;
}

}  // namespace stepscope
