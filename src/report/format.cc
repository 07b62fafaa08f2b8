#include "report/format.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <cmath>
#include <iterator>
#include <vector>

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

using Nanoseconds = std::chrono::sys_time<std::chrono::nanoseconds>;

std::chrono::sys_days day_of(std::int64_t unix_ns) {
  return std::chrono::floor<std::chrono::days>(Nanoseconds(std::chrono::nanoseconds(unix_ns)));
}

std::string date(std::int64_t unix_ns) {
  const std::chrono::year_month_day day(day_of(unix_ns));
  return fmt::format("{:04}-{:02}-{:02}", static_cast<int>(day.year()), static_cast<unsigned>(day.month()),
                     static_cast<unsigned>(day.day()));
}

// Digits behind the point of a second; what follows is cut off.
constexpr int kToMilliseconds = 3, kToMicroseconds = 6;

std::string time_of_day(std::int64_t unix_ns, int decimals) {
  const Nanoseconds moment{std::chrono::nanoseconds(unix_ns)};
  const std::chrono::hh_mm_ss clock(moment - day_of(unix_ns));
  const std::string whole = fmt::format("{:02}:{:02}:{:02}.{:09}", clock.hours().count(), clock.minutes().count(),
                                        clock.seconds().count(), clock.subseconds().count());
  return whole.substr(0, whole.size() - 9 + static_cast<std::size_t>(decimals));
}

// Of a number that was whole, and of one that SQL made real.
std::optional<std::int64_t> moment_of(const Value& value) {
  if (const auto* whole = std::get_if<std::int64_t>(&value)) return *whole;
  const auto* real = std::get_if<double>(&value);
  return real != nullptr && std::abs(*real) < 0x1p63 ? std::optional(static_cast<std::int64_t>(*real)) : std::nullopt;
}

bool are_moments(Unit unit, std::span<const double> values) {
  if (unit == Unit::unix_ns) return true;
  if (unit != Unit::ns || values.empty()) return false;
  return std::all_of(values.begin(), values.end(), [](double v) { return v > static_cast<double>(kUnixFromNs); });
}

// The day where there are several, and as many digits as tell the moments apart.
ColumnFormat moments_format(std::span<const double> values) {
  ColumnFormat format{.unit = Unit::unix_ns, .decimals = kToMilliseconds, .suffix = "UTC"};
  std::vector<double> sorted;
  std::copy_if(values.begin(), values.end(), std::back_inserter(sorted), [](double v) { return std::abs(v) < 0x1p63; });
  std::sort(sorted.begin(), sorted.end());
  for (std::size_t i = 1; i < sorted.size(); i++) {
    if (sorted[i] > sorted[i - 1] && sorted[i] - sorted[i - 1] < 1e6) format.decimals = kToMicroseconds;
  }
  if (sorted.empty()) return format;
  format.dated = day_of(static_cast<std::int64_t>(sorted.front())) != day_of(static_cast<std::int64_t>(sorted.back()));
  return format;
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

std::string format_moment(std::int64_t unix_ns) {
  return date(unix_ns) + " " + time_of_day(unix_ns, kToMilliseconds) + " UTC";
}
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
  switch (are_moments(unit, std::span(&*number, 1)) ? Unit::unix_ns : unit) {
    case Unit::ns: return format_time(*number);
    case Unit::unix_ns:
      if (const auto moment = moment_of(value)) return format_moment(*moment);
      return std::string(kUnknown);
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
  const std::string_view ending = count == 1 ? "" : singular.ends_with('s') || singular.ends_with('x') ? "es" : "s";
  return fmt::format("{} {}{}", format_count(static_cast<std::int64_t>(count)), singular, ending);
}

ColumnFormat column_format(Unit unit, std::span<const double> values) {
  if (are_moments(unit, values)) return moments_format(values);
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
    case Unit::unix_ns:
    case Unit::none: break;
  }
  return {unit, 1, 0, ""};
}

std::string ColumnFormat::cell(const Value& value) const {
  const auto number = number_of(value);
  if (unit == Unit::none || unit == Unit::count || !number) return format_value(value, unit);
  if (unit == Unit::unix_ns) {
    const auto moment = moment_of(value);
    if (!moment) return std::string(kUnknown);
    return (dated ? date(*moment) + " " : "") + time_of_day(*moment, decimals);
  }
  if (!std::isfinite(*number)) return std::string(kUnknown);
  return fixed(*number / divide_by, decimals);
}

}  // namespace stepscope::report
