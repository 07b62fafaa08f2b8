// Is a change between two sets of samples more than noise?
//
// A change is the difference of the medians over steps. Its interval comes from a bootstrap over the steps (seeded by
// the row, so that a result never depends on the order of rows or on the machine); its p-value from Student's t with
// the bootstrap's deviation, and at least the one that the samples themselves have: the bootstrap of few steps alone
// is too sure. Noise between runs is what the medians of the quarters of each run differ by.
#pragma once

#include <cstdint>
#include <vector>

namespace stepscope::diff {

using Values = std::vector<double>;

struct Change {
  double a = 0, b = 0;       // medians
  double low = 0, high = 0;  // 95 % interval of b − a
  double noise = 0;          // between runs
  double p = 1;              // that a change of this size comes about by chance

  double delta() const { return b - a; }
};

inline constexpr std::size_t kFewestSamples = 3;

double median_of(Values values);  // 0 of none
// With `small` or less change nothing is tested: p is 1 and the interval is the change itself.
Change compare(const Values& a, const Values& b, double small, std::uint64_t seed);

// Benjamini–Hochberg: p-values as they are to be compared with the false-discovery rate.
std::vector<double> adjust(const std::vector<double>& p);

// Two-sided p-value of Student's t.
double student_p(double t, double degrees);

}  // namespace stepscope::diff
