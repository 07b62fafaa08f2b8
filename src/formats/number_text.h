// Exact numbers from JSON text: integers as int64, microseconds with a fraction as int64 nanoseconds.
//
// No time goes through a floating type unless its text has an exponent or more than 16 digits before the point. The
// functions read 8 bytes at a time, so the text must be followed by at least 8 readable bytes; they never look past a
// non-digit for meaning.
#pragma once

#include <charconv>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <system_error>

namespace stepscope::formats {

inline std::uint64_t load8(const char* p) {
  std::uint64_t v;
  std::memcpy(&v, p, 8);
  return v;
}

inline bool is_digit(char c) { return static_cast<unsigned char>(c - '0') < 10; }

// Eight ASCII digits at once (little endian).
inline bool eight_digits(std::uint64_t v) {
  return ((v & 0xF0F0F0F0F0F0F0F0ull) | (((v + 0x0606060606060606ull) & 0xF0F0F0F0F0F0F0F0ull) >> 4)) ==
         0x3333333333333333ull;
}
inline std::uint64_t parse_eight(std::uint64_t v) {
  v -= 0x3030303030303030ull;
  v = v * 10 + (v >> 8);
  return (((v & 0x000000FF000000FFull) * 0x000F424000000064ull) +
          (((v >> 16) & 0x000000FF000000FFull) * 0x0000271000000001ull)) >>
         32;
}
inline const char* parse_digits(const char* p, std::uint64_t& value) {
  for (std::uint64_t word = load8(p); eight_digits(word); word = load8(p)) {
    value = value * 100000000 + parse_eight(word);
    p += 8;
  }
  for (; is_digit(*p); p++) value = value * 10 + static_cast<std::uint64_t>(*p - '0');
  return p;
}

// The whole of [begin, end) as an integer; false when it is anything else or does not fit.
inline bool parse_int(const char* begin, const char* end, std::int64_t& out) {
  const bool negative = *begin == '-';
  const char* digits = begin + negative;
  if (end - digits < 1 || end - digits > 19) return false;
  std::uint64_t value = 0;
  if (parse_digits(digits, value) != end) return false;
  if (end - digits == 19 && value > static_cast<std::uint64_t>(INT64_MAX)) return false;
  out = negative ? -static_cast<std::int64_t>(value) : static_cast<std::int64_t>(value);
  return true;
}

// "-inf" and "nan" are no numbers here.
inline bool starts_real(const char* begin, const char* end) {
  if (begin < end && *begin == '-') begin++;
  return begin < end && is_digit(*begin);
}

// Without the C library's strtod: that one reads what the program's locale says.
inline bool parse_real_slow(const char* begin, const char* end, double& out) {
  if (!starts_real(begin, end)) return false;
  const auto [stop, error] = std::from_chars(begin, end, out);
  return stop == end && error == std::errc() && std::isfinite(out);
}

// A number in any JSON notation; the whole of [begin, end) must be it. Up to 15 digits need no help from the C library:
// integer and power of ten are exact doubles then, so one division rounds correctly.
inline bool parse_real(const char* begin, const char* end, double& out) {
  static constexpr double kPowers[] = {1,   1e1, 1e2,  1e3,  1e4,  1e5,  1e6,  1e7,
                                       1e8, 1e9, 1e10, 1e11, 1e12, 1e13, 1e14, 1e15};
  const char* p = begin + (*begin == '-');
  if (end - p < 1 || end - p > 16 || !is_digit(*p)) return parse_real_slow(begin, end, out);
  std::uint64_t value = 0;
  p = parse_digits(p, value);
  std::ptrdiff_t fraction = 0;
  if (p < end && *p == '.') {
    const char* first = ++p;
    while (p < end && is_digit(*p)) value = value * 10 + static_cast<std::uint64_t>(*p++ - '0');
    fraction = p - first;
  }
  if (p != end || fraction > 15 || value > 999'999'999'999'999) return parse_real_slow(begin, end, out);
  const double magnitude = static_cast<double>(value) / kPowers[fraction];
  out = *begin == '-' ? -magnitude : magnitude;
  return true;
}

// As int64 nanoseconds; half of what fits, so that a start plus a duration fits too (146 years).
inline constexpr std::uint64_t kMaxMicroseconds = 4'611'686'018'427'386;

inline bool parse_us_slow(const char* begin, const char* end, std::int64_t& ns) {
  if (!starts_real(begin, end)) return false;
  long double us = 0;
  const auto [stop, error] = std::from_chars(begin, end, us);
  if (stop != end || error != std::errc() || !std::isfinite(us) || std::fabs(us) > kMaxMicroseconds) return false;
  ns = static_cast<std::int64_t>(std::llroundl(us * 1000.0L));
  return true;
}

// Microseconds with up to nanosecond fractions (more digits are rounded) → nanoseconds.
inline bool parse_us_as_ns(const char* begin, const char* end, std::int64_t& ns) {
  const char* p = begin;
  const bool negative = *p == '-';
  p += negative;
  const char* digits = p;
  std::uint64_t value = 0;
  p = parse_digits(p, value);
  if (p == digits || p - digits > 16 || value > kMaxMicroseconds || p > end) return parse_us_slow(begin, end, ns);
  value *= 1000;
  if (p < end && *p == '.') {
    const char* fraction = ++p;
    for (std::uint64_t unit = 100; p < end && unit > 0 && is_digit(*p); unit /= 10, p++) {
      value += unit * static_cast<std::uint64_t>(*p - '0');
    }
    if (p < end && p - fraction == 3 && is_digit(*p)) {
      value += *p >= '5';
      while (p < end && is_digit(*p)) p++;
    }
    if (p == fraction) return false;
  }
  if (p != end) return parse_us_slow(begin, end, ns);
  ns = negative ? -static_cast<std::int64_t>(value) : static_cast<std::int64_t>(value);
  return true;
}

}  // namespace stepscope::formats
