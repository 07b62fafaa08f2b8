#include "diff/noise.h"

#include <doctest/doctest.h>

#include <random>

namespace stepscope::diff {
namespace {

TEST_CASE("diff noise: Student's t as in its tables") {
  CHECK(student_p(2.776, 4) == doctest::Approx(0.05).epsilon(0.001));
  CHECK(student_p(12.706, 1) == doctest::Approx(0.05).epsilon(0.001));
  CHECK(student_p(2.042, 30) == doctest::Approx(0.05).epsilon(0.001));
  CHECK(student_p(0, 7) == doctest::Approx(1));
}

TEST_CASE("diff noise: Benjamini and Hochberg's example of adjusted p-values") {
  const std::vector<double> p{0.01, 0.04, 0.03, 0.005};
  const std::vector<double> adjusted = adjust(p);
  CHECK(adjusted[3] == doctest::Approx(0.02));
  CHECK(adjusted[0] == doctest::Approx(0.02));
  CHECK(adjusted[2] == doctest::Approx(0.04));
  CHECK(adjusted[1] == doctest::Approx(0.04));
  CHECK(adjust({}).empty());
}

TEST_CASE("diff noise: false alarms are as rare as they say, true changes are seen, outliers do not matter") {
  std::mt19937_64 random(7);
  std::normal_distribution<double> noise(0, 2);
  int alarms = 0, found = 0;
  for (int round = 0; round < 400; round++) {
    Values a, b, slower;
    for (int i = 0; i < 8; i++) {
      a.push_back(100 + noise(random));
      b.push_back(100 + noise(random));
      slower.push_back(108 + noise(random));
    }
    a[0] = 1000;  // the first step warms up
    alarms += compare(a, b, 0, round).p < 0.05 ? 1 : 0;
    const Change change = compare(a, slower, 0, round);
    found += change.p < 0.05 && change.low > 0 ? 1 : 0;
  }
  CHECK(alarms <= 400 * 0.08);
  CHECK(found >= 400 * 0.95);
}

TEST_CASE("diff noise: too few samples, none, and equal ones") {
  CHECK(compare({1, 1}, {2, 2}, 0, 1).p == 1);
  CHECK(compare({}, {}, 0, 1).p == 1);
  CHECK(compare({1, 1, 1}, {1, 1, 1}, 0, 1).p == 1);
  CHECK(compare({1, 1, 1}, {2, 2, 2}, 0, 1).p == 0);
  CHECK(compare({1, 2, 3, 4}, {1, 2, 3, 4}, 0, 1).noise == doctest::Approx(2));  // 1.5 and 3.5
  CHECK(median_of({}) == 0);
  CHECK(median_of({3, 1, 2, 4}) == doctest::Approx(2.5));
}

}  // namespace
}  // namespace stepscope::diff
