#include "base/duration.h"

#include <doctest/doctest.h>

using namespace stepscope;

TEST_CASE("durations as people write them") {
  for (const char* same : {"5", "5s", "5.0", "5000ms", "0.5e1"}) {
    CAPTURE(same);
    CHECK(read_duration(same, BareNumber::seconds).value() == doctest::Approx(5));
  }
  CHECK(read_duration("500ms", BareNumber::refused).value() == doctest::Approx(0.5));
  CHECK(read_duration("120us", BareNumber::refused).value() == doctest::Approx(120e-6));
  CHECK(read_duration("2m", BareNumber::refused).value() == 120);
  CHECK(read_duration("1.5h", BareNumber::refused).value() == 5400);
  CHECK(read_duration("0s", BareNumber::refused).value() == 0);
}

TEST_CASE("what is no duration") {
  for (const char* bad :
       {"", "s", "-5", "-0s", "nan", "inf", "infs", "1e400", "1e308h", "5 s", " 5", "5sec", "5S", "5s5"}) {
    CAPTURE(bad);
    CHECK_FALSE(read_duration(bad, BareNumber::seconds).has_value());
  }
  CHECK_FALSE(read_duration("5", BareNumber::refused).has_value());
}
