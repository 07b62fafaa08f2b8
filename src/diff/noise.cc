#include "diff/noise.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>
#include <random>

namespace stepscope::diff {
namespace {

constexpr int kResamples = 400;
constexpr std::size_t kMostSamples = 512;  // more steps are thinned out before resampling: the medians stay exact
constexpr double kMedianToMean = 1.2533;   // standard error of a median over that of a mean, for a normal spread

// Standard error of the median from the spread between the quartiles, which outliers do not move.
double error_of_median(Values values) {
  const std::size_t n = values.size();
  if (n < 2) return 0;
  std::sort(values.begin(), values.end());
  const auto at = [&](double part) {
    const double place = part * static_cast<double>(n - 1);
    const auto low = static_cast<std::size_t>(place);
    const std::size_t high = std::min(low + 1, n - 1);
    return values[low] + (values[high] - values[low]) * (place - static_cast<double>(low));
  };
  const double deviation = (at(0.75) - at(0.25)) / 1.349;
  return kMedianToMean * deviation / std::sqrt(static_cast<double>(n));
}

// What the medians of consecutive parts of a run differ by: quarters, halves of short runs.
double drift_of(const Values& values) {
  const std::size_t parts = std::clamp<std::size_t>(values.size() / 2, 1, 4);
  if (parts < 2) return 0;
  double low = std::numeric_limits<double>::max(), high = std::numeric_limits<double>::lowest();
  for (std::size_t i = 0; i < parts; i++) {
    const auto at = [&](std::size_t part) {
      return values.begin() + static_cast<std::ptrdiff_t>(values.size() * part / parts);
    };
    const double median = median_of(Values(at(i), at(i + 1)));
    low = std::min(low, median);
    high = std::max(high, median);
  }
  return high - low;
}

Values thinned(const Values& values) {
  if (values.size() <= kMostSamples) return values;
  Values out;
  for (std::size_t i = 0; i < kMostSamples; i++) out.push_back(values[i * values.size() / kMostSamples]);
  return out;
}

class Bootstrap {
 public:
  explicit Bootstrap(std::uint64_t seed) : random_(seed) {}
  double median(const Values& values) {
    drawn_.resize(values.size());
    for (double& value : drawn_) value = values[random_() % values.size()];
    const auto middle = drawn_.begin() + static_cast<std::ptrdiff_t>(drawn_.size() / 2);
    std::nth_element(drawn_.begin(), middle, drawn_.end());
    if (drawn_.size() % 2 == 1) return *middle;
    return (*middle + *std::max_element(drawn_.begin(), middle)) / 2;
  }

 private:
  std::mt19937_64 random_;
  Values drawn_;
};

// Continued fraction of the incomplete beta function (modified Lentz).
double beta_fraction(double a, double b, double x) {
  constexpr double kTiny = 1e-300;
  double c = 1, d = 1 - (a + b) * x / (a + 1);
  d = 1 / (std::abs(d) < kTiny ? kTiny : d);
  double value = d;
  for (int m = 1; m <= 300; m++) {
    const double even = m * (b - m) * x / ((a + 2 * m - 1) * (a + 2 * m));
    const double odd = -(a + m) * (a + b + m) * x / ((a + 2 * m) * (a + 2 * m + 1));
    for (const double step : {even, odd}) {
      d = 1 + step * d;
      c = 1 + step / c;
      d = 1 / (std::abs(d) < kTiny ? kTiny : d);
      if (std::abs(c) < kTiny) c = kTiny;
      value *= c * d;
    }
    if (std::abs(c * d - 1) < 1e-12) break;
  }
  return value;
}

double incomplete_beta(double a, double b, double x) {
  if (x <= 0) return 0;
  if (x >= 1) return 1;
  const double front =
      std::exp(std::lgamma(a + b) - std::lgamma(a) - std::lgamma(b) + a * std::log(x) + b * std::log1p(-x));
  if (x < (a + 1) / (a + b + 2)) return front * beta_fraction(a, b, x) / a;
  return 1 - front * beta_fraction(b, a, 1 - x) / b;
}

}  // namespace

double median_of(Values values) {
  if (values.empty()) return 0;
  const auto middle = values.begin() + static_cast<std::ptrdiff_t>(values.size() / 2);
  std::nth_element(values.begin(), middle, values.end());
  if (values.size() % 2 == 1) return *middle;
  return (*middle + *std::max_element(values.begin(), middle)) / 2;
}

double student_p(double t, double degrees) {
  if (std::isinf(t)) return 0;
  return incomplete_beta(degrees / 2, 0.5, degrees / (degrees + t * t));
}

Change compare(const Values& a, const Values& b, double small, std::uint64_t seed) {
  Change change{.a = median_of(a), .b = median_of(b)};
  change.noise = std::max(drift_of(a), drift_of(b));
  change.low = change.high = change.delta();
  if (a.size() < kFewestSamples || b.size() < kFewestSamples || std::abs(change.delta()) <= small) return change;
  const Values some_a = thinned(a), some_b = thinned(b);
  Bootstrap bootstrap(seed);
  Values deltas;
  for (int i = 0; i < kResamples; i++) deltas.push_back(bootstrap.median(some_b) - bootstrap.median(some_a));
  std::sort(deltas.begin(), deltas.end());
  change.low = deltas[kResamples * 25 / 1000];
  change.high = deltas[kResamples - 1 - kResamples * 25 / 1000];
  // The middle two thirds are two standard errors wide, and one slow step in a resample does not widen them.
  const double resampled = (deltas[kResamples * 84 / 100] - deltas[kResamples * 16 / 100]) / 2;
  const double error = std::max(resampled, std::hypot(error_of_median(a), error_of_median(b)));
  change.p = error > 0 ? student_p(std::abs(change.delta()) / error, static_cast<double>(a.size() + b.size() - 2)) : 0;
  return change;
}

std::vector<double> adjust(const std::vector<double>& p) {
  std::vector<std::size_t> order(p.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::sort(order.begin(), order.end(), [&](std::size_t x, std::size_t y) { return p[x] > p[y]; });
  std::vector<double> out(p.size());
  double least = 1;
  for (std::size_t i = 0; i < order.size(); i++) {
    const double rank = static_cast<double>(p.size() - i);
    least = std::min(least, p[order[i]] * static_cast<double>(p.size()) / rank);
    out[order[i]] = least;
  }
  return out;
}

}  // namespace stepscope::diff
