#include "report/format.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>

namespace stepscope::report {
namespace {

struct Scale {
  double unit;
  std::string_view suffix;
  int column_decimals;
};

constexpr std::array kTimes{Scale{1, "ns", 0}, Scale{1e3, "µs", 1}, Scale{1e6, "ms", 3}, Scale{1e9, "s", 3}};
constexpr std::array kBytes{Scale{1, "B", 0},        Scale{0x1p10, "KiB", 1}, Scale{0x1p20, "MiB", 1},
                            Scale{0x1p30, "GiB", 2}, Scale{0x1p40, "TiB", 2}, Scale{0x1p50, "PiB", 2}};
constexpr std::array kFlop{Scale{1, "FLOP", 0},    Scale{1e3, "kFLOP", 1},  Scale{1e6, "MFLOP", 2},
                           Scale{1e9, "GFLOP", 2}, Scale{1e12, "TFLOP", 2}, Scale{1e15, "PFLOP", 2},
                           Scale{1e18, "EFLOP", 2}};
constexpr std::array kFlopRates{Scale{1, "FLOP/s", 0},    Scale{1e3, "kFLOP/s", 1},  Scale{1e6, "MFLOP/s", 2},
                                Scale{1e9, "GFLOP/s", 2}, Scale{1e12, "TFLOP/s", 2}, Scale{1e15, "PFLOP/s", 2},
                                Scale{1e18, "EFLOP/s", 2}};

// The largest scale in which `value` is at least 1 after rounding to three digits.
template <std::size_t N>
const Scale& scale_of(const std::array<Scale, N>& scales, double value) {
  const double size = std::abs(value) * 1.0005;
  std::size_t i = N - 1;
  while (i > 0 && size < scales[i].unit) i--;
  return scales[i];
}

template <std::size_t N>
std::string scaled(const std::array<Scale, N>& scales, double value) {
  if (!std::isfinite(value)) return std::string(kUnknown);
  const Scale& scale = scale_of(scales, value);
  const double shown = value / scale.unit;
  const int decimals = scale.unit == 1 ? 0 : std::abs(shown) < 9.995 ? 2 : 1;
  return fmt::format("{:.{}f} {}", shown, decimals, scale.suffix);
}

// Puts commas between thousands of the digits before the point.
std::string grouped(std::string digits) {
  const std::size_t first = digits.starts_with('-') ? 1 : 0;
  const std::size_t point = std::min(digits.find('.'), digits.size());
  for (std::size_t at = point; at > first + 3;) {
    at -= 3;
    digits.insert(at, 1, ',');
  }
  return digits;
}

std::string fixed(double value, int decimals) {
  const double smallest = std::pow(10.0, -decimals);
  if (value != 0 && std::abs(value) < smallest / 2)
    return fmt::format("{}{:.{}f}", value < 0 ? ">-" : "<", smallest, decimals);
  return grouped(fmt::format("{:.{}f}", value, decimals));
}

}  // namespace

std::string format_time(double ns) { return scaled(kTimes, ns); }
std::string format_bytes(double bytes) { return scaled(kBytes, bytes); }

std::string format_flop(double flop) { return scaled(kFlop, flop); }
std::string format_flop_rate(double flop_per_s) { return scaled(kFlopRates, flop_per_s); }

std::string format_percent(double ratio) {
  if (!std::isfinite(ratio)) return std::string(kUnknown);
  const double percent = ratio * 100;
  if (percent == 0) return "0 %";
  if (percent == 100) return "100 %";
  if (percent > 99.95 && percent < 100) return ">99.9 %";
  return fixed(percent, 1) + " %";
}

std::string format_count(std::int64_t count) { return grouped(fmt::format("{}", count)); }

std::string format_real(double value) {
  if (!std::isfinite(value)) return std::string(kUnknown);
  const double size = std::abs(value);
  if (value == std::floor(value) && size < 1e15) return format_count(static_cast<std::int64_t>(value));
  if (size >= 1000) return grouped(fmt::format("{:.0f}", value));
  if (size < 1e-3) return fmt::format("{:.3g}", value);
  return fmt::format("{:.{}f}", value, size >= 100 ? 1 : size >= 1 ? 2 : 4);
}

std::string format_rate(double gb_per_s) {
  return std::isfinite(gb_per_s) ? format_real(gb_per_s) + " GB/s" : std::string(kUnknown);
}

std::optional<double> number_of(const Value& value) {
  if (const auto* whole = std::get_if<std::int64_t>(&value)) return static_cast<double>(*whole);
  if (const auto* real = std::get_if<double>(&value)) return *real;
  return std::nullopt;
}

std::string format_value(const Value& value, Unit unit) {
  if (const auto* text = std::get_if<std::string>(&value)) return *text;
  if (const auto* truth = std::get_if<bool>(&value)) return *truth ? "yes" : "no";
  const auto number = number_of(value);
  if (!number) return std::string(kUnknown);
  switch (unit) {
    case Unit::ns: return format_time(*number);
    case Unit::bytes: return format_bytes(*number);
    case Unit::ratio: return format_percent(*number);
    case Unit::gb_per_s: return format_rate(*number);
    case Unit::flop: return format_flop(*number);
    case Unit::flop_per_s: return format_flop_rate(*number);
    case Unit::count:
      if (const auto* count = std::get_if<std::int64_t>(&value)) return format_count(*count);
      return format_real(*number);
    case Unit::none: break;
  }
  // Without a unit a whole number may be a rank, a line or an id: no separators.
  if (const auto* whole = std::get_if<std::int64_t>(&value)) return fmt::format("{}", *whole);
  return format_real(*number);
}

std::string format_plural(std::uint64_t count, std::string_view singular) {
  const std::string_view ending = count == 1 ? "" : singular.ends_with('s') ? "es" : "s";
  return fmt::format("{} {}{}", format_count(static_cast<std::int64_t>(count)), singular, ending);
}

ColumnFormat column_format(Unit unit, std::span<const double> values) {
  double largest = 0;
  for (const double value : values) {
    if (std::isfinite(value)) largest = std::max(largest, std::abs(value));
  }
  const auto scaled_to = [&](const Scale& s) {
    return ColumnFormat{unit, s.unit, s.column_decimals, std::string(s.suffix)};
  };
  switch (unit) {
    case Unit::ns: {
      ColumnFormat format = scaled_to(scale_of(kTimes, largest));
      if (largest > 1e12) format.decimals = 6;  // no durations: points on a clock, which differ late
      return format;
    }
    case Unit::bytes: return scaled_to(scale_of(kBytes, largest));
    case Unit::flop: return scaled_to(scale_of(kFlop, largest));
    case Unit::flop_per_s: return scaled_to(scale_of(kFlopRates, largest));
    case Unit::ratio: return {unit, 0.01, 1, "%"};
    case Unit::gb_per_s: return {unit, 1, 1, "GB/s"};
    case Unit::count:
    case Unit::none: break;
  }
  return {unit, 1, 0, ""};
}

std::string ColumnFormat::cell(const Value& value) const {
  const auto number = number_of(value);
  if (unit == Unit::none || unit == Unit::count || !number) return format_value(value, unit);
  if (!std::isfinite(*number)) return std::string(kUnknown);
  return fixed(*number / divide_by, decimals);
}

}  // namespace stepscope::report
