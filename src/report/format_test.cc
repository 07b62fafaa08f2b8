#include "report/format.h"

#include <doctest/doctest.h>

#include <cmath>
#include <limits>
#include <vector>

using namespace stepscope;
using namespace stepscope::report;

TEST_CASE("a time picks its own unit") {
  CHECK(format_time(0) == "0 ns");
  CHECK(format_time(840) == "840 ns");
  CHECK(format_time(12'345) == "12.3 µs");
  CHECK(format_time(113'400'000) == "113.4 ms");
  CHECK(format_time(4'200'000'000) == "4.20 s");
  CHECK(format_time(999'999) == "1.00 ms");  // never "1000.0 µs"
  CHECK(format_time(-2'500'000) == "-2.50 ms");
  CHECK(format_time(std::nan("")) == kUnknown);
}

TEST_CASE("bytes, shares, counts and rates") {
  CHECK(format_bytes(512) == "512 B");
  CHECK(format_bytes(71.2 * 0x1p30) == "71.2 GiB");
  CHECK(format_percent(0.963) == "96.3 %");
  CHECK(format_percent(0) == "0 %");
  CHECK(format_percent(1) == "100 %");
  CHECK(format_percent(0.99999) == ">99.9 %");  // not yet everything
  CHECK(format_percent(0.00001) == "<0.1 %");   // not nothing
  CHECK(format_count(14'240) == "14,240");
  CHECK(format_count(-1'234'567) == "-1,234,567");
  CHECK(format_count(std::numeric_limits<std::int64_t>::min()) == "-9,223,372,036,854,775,808");
  CHECK(format_rate(212.04) == "212.0 GB/s");
  CHECK(format_value(std::int64_t{44'020'000'000}, Unit::flop) == "44.0 GFLOP");
  CHECK(format_value(std::int64_t{950}, Unit::flop) == "950 FLOP");
  CHECK(format_value(3.125e14, Unit::flop_per_s) == "312.5 TFLOP/s");
  CHECK(format_real(0.5) == "0.5000");
  CHECK(format_real(1e-9) == "1e-09");
}

TEST_CASE("unknown is never shown as a number") {
  CHECK(format_value(Value{}, Unit::ns) == kUnknown);
  CHECK(format_value(Value{}, Unit::count) == kUnknown);
  CHECK(format_value(std::nan(""), Unit::ratio) == kUnknown);
  CHECK(format_value(std::numeric_limits<double>::infinity(), Unit::bytes) == kUnknown);
  CHECK(format_value(true, Unit::none) == "yes");
  CHECK(format_value(std::int64_t{12345}, Unit::none) == "12345");  // could be an id
}

TEST_CASE("a column has one unit, and what is not 0 does not look like 0") {
  const std::vector<double> values{113'400'000, 42, 0};
  const ColumnFormat format = column_format(Unit::ns, values);
  CHECK(format.suffix == "ms");
  CHECK(format.cell(std::int64_t{113'400'000}) == "113.400");
  CHECK(format.cell(std::int64_t{42}) == "<0.001");
  CHECK(format.cell(std::int64_t{0}) == "0.000");
  CHECK(format.cell(Value{}) == kUnknown);
  CHECK(format.cell(std::nan("")) == kUnknown);
  CHECK(column_format(Unit::bytes, {}).cell(std::int64_t{0}) == "0");
}

TEST_CASE("a moment is a time of day, with the day where there are several") {
  constexpr std::int64_t kMoment = 1'795'437'296'789'123'456, kHour = 3'600'000'000'000;
  CHECK(format_value(kMoment, Unit::unix_ns) == "2026-11-23 12:34:56.789 UTC");
  CHECK(format_value(std::int64_t{-1}, Unit::unix_ns) == "1969-12-31 23:59:59.999 UTC");
  const auto shown = [](Unit unit, std::vector<std::int64_t> moments) {
    return column_format(unit, std::vector<double>(moments.begin(), moments.end())).cell(moments.front());
  };
  CHECK(column_format(Unit::unix_ns, {}).suffix == "UTC");
  CHECK(shown(Unit::unix_ns, {kMoment, kMoment + kHour}) == "12:34:56.789");
  CHECK(shown(Unit::unix_ns, {kMoment, kMoment + 12 * kHour}) == "2026-11-23 12:34:56.789");
  CHECK(shown(Unit::unix_ns, {kMoment, kMoment + 20'000}) == "12:34:56.789123");  // ms would not tell them apart
  CHECK(column_format(Unit::unix_ns, {}).cell(Value{}) == kUnknown);
  CHECK(column_format(Unit::unix_ns, {}).cell(std::nan("")) == kUnknown);
}

TEST_CASE("times in ns that can be no durations are moments") {
  constexpr std::int64_t kMoment = 1'795'437'296'789'000'000;
  const std::vector<double> moments{static_cast<double>(kMoment)}, mixed{static_cast<double>(kMoment), 5e9};
  CHECK(format_value(kMoment, Unit::ns) == "2026-11-23 12:34:56.789 UTC");
  CHECK(column_format(Unit::ns, moments).cell(kMoment) == "12:34:56.789");
  CHECK(column_format(Unit::ns, mixed).suffix == "s");
}
