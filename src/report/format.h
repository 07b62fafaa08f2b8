// The one place where numbers become text for people.
//
// A single value picks its own unit ("113.4 ms"). The values of a table column share one, picked for the largest, so
// that they can be compared by eye; the unit then stands in the column's head. Unknown is "–", never 0, and a value
// that would round to 0 is shown as "<" the smallest that can be shown.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "model/answer.h"

namespace stepscope::report {

inline constexpr std::string_view kUnknown = "–";

std::string format_time(double ns);               // "840 ns", "12.3 µs", "113.4 ms", "4.20 s"
std::string format_bytes(double bytes);           // "512 B", "71.2 GiB"
std::string format_percent(double ratio);         // "96.3 %" for 0.963
std::string format_count(std::int64_t count);     // "14,240"
std::string format_real(double value);            // about four digits
std::string format_rate(double gb_per_s);         // "212 GB/s"
std::string format_moment(std::int64_t unix_ns);  // "2026-11-23 12:34:56.789 UTC"
std::string format_flop(double flop);             // "950 FLOP", "44.0 GFLOP"
std::string format_flop_rate(double flop_per_s);  // "312 TFLOP/s"
std::string format_value(const Value& value, Unit unit);

// "1 rank", "3 ranks".
std::string format_plural(std::uint64_t count, std::string_view singular);

// The number of `value`, if it is one; booleans and text are none.
std::optional<double> number_of(const Value& value);

// How the numbers of one column are shown.
struct ColumnFormat {
  Unit unit = Unit::none;
  double divide_by = 1;
  int decimals = 0;
  std::string suffix;  // for the column's head: "ms", "%", "GiB", "UTC"; empty where there is none
  bool dated = false;  // of moments: they are of several days

  // The text of a cell, without the unit.
  std::string cell(const Value& value) const;
};
// Times that are all behind kUnixFromNs are shown as moments, whatever the column says: a query's columns have no units
// but those in their names, and a folder without traces is opened on the clock of its marks.
ColumnFormat column_format(Unit unit, std::span<const double> values);

}  // namespace stepscope::report
