#include "model/telemetry.h"

#include <algorithm>
#include <cmath>

#include "model/trace.h"

namespace stepscope {
namespace {

constexpr double kSure = 0.25;  // of itself or of the mean rate

// The value of a counter at a moment within its samples.
double value_at(CurveView counter, std::int64_t t) {
  const auto after = std::lower_bound(counter.t_ns.begin(), counter.t_ns.end(), t);
  const auto i = static_cast<std::size_t>(after - counter.t_ns.begin());
  if (counter.t_ns[i] == t) return counter.v[i];
  const double whole = static_cast<double>(counter.t_ns[i] - counter.t_ns[i - 1]);
  const double part = static_cast<double>(t - counter.t_ns[i - 1]) / whole;
  return counter.v[i - 1] + (counter.v[i] - counter.v[i - 1]) * part;
}

// Symmetric and positive; by Gauss and Jordan. Empty where a kind cannot be told from the others.
std::vector<std::vector<double>> inverse(std::vector<std::vector<double>> matrix) {
  constexpr double kSingular = 1e-9;  // of the largest number on the diagonal
  const std::size_t n = matrix.size();
  double largest = 0;
  for (std::size_t i = 0; i < n; i++) largest = std::max(largest, matrix[i][i]);
  std::vector<std::vector<double>> out(n, std::vector<double>(n, 0));
  for (std::size_t i = 0; i < n; i++) out[i][i] = 1;
  for (std::size_t column = 0; column < n; column++) {
    std::size_t pivot = column;
    for (std::size_t row = column; row < n; row++) {
      if (std::abs(matrix[row][column]) > std::abs(matrix[pivot][column])) pivot = row;
    }
    if (std::abs(matrix[pivot][column]) <= largest * kSingular) return {};
    std::swap(matrix[pivot], matrix[column]);
    std::swap(out[pivot], out[column]);
    const double scale = matrix[column][column];
    for (std::size_t i = 0; i < n; i++) matrix[column][i] /= scale, out[column][i] /= scale;
    for (std::size_t row = 0; row < n; row++) {
      if (row == column) continue;
      const double factor = matrix[row][column];
      for (std::size_t i = 0; i < n; i++) {
        matrix[row][i] -= factor * matrix[column][i];
        out[row][i] -= factor * out[column][i];
      }
    }
  }
  return out;
}

// What lies between two samples: how long each kind took, and what the counter grew by.
struct Mixture {
  std::vector<double> ns;
  double grown = 0;
};

std::vector<Mixture> mixtures(CurveView counter, std::span<const Intervals* const> kinds) {
  std::vector<Interval> between;
  for (std::size_t i = 1; i < counter.size(); i++) between.push_back({counter.t_ns[i - 1], counter.t_ns[i]});
  std::vector<Mixture> out(between.size());
  for (std::size_t i = 0; i < out.size(); i++) {
    out[i].ns.resize(kinds.size());
    out[i].grown = counter.v[i + 1] - counter.v[i];
  }
  for (std::size_t kind = 0; kind < kinds.size(); kind++) {
    const std::vector<std::int64_t> lengths = lengths_in(*kinds[kind], between);
    for (std::size_t i = 0; i < out.size(); i++) out[i].ns[kind] = static_cast<double>(lengths[i]);
  }
  // Time of no kind, as before the first step, says nothing about them.
  std::size_t at = 0;
  std::erase_if(out, [&](const Mixture& one) {
    const double length = static_cast<double>(between[at].end - between[at].start);
    at++;
    double known = 0;
    for (const double ns : one.ns) known += ns;
    return known < 0.99 * length;
  });
  return out;
}

struct Estimate {
  double rate, deviation;  // per ns; standard deviation
};
struct Estimates {
  std::vector<std::optional<Estimate>> of_kind;  // none: it cannot be told from the others
  double mean = 0;                               // of all kinds
};

// By least squares.
Estimates estimated_rates(CurveView counter, const Kinds& kinds) {
  Estimates out{std::vector<std::optional<Estimate>>(kinds.size())};
  std::vector<std::size_t> there;  // kinds that took any time
  std::vector<const Intervals*> sets;
  for (std::size_t kind = 0; kind < kinds.size(); kind++) {
    if (!kinds[kind].empty()) there.push_back(kind), sets.push_back(&kinds[kind]);
  }
  const std::vector<Mixture> rows = mixtures(counter, sets);
  const std::size_t n = sets.size();
  if (n == 0 || rows.size() <= n) return out;
  std::vector<std::vector<double>> normal(n, std::vector<double>(n, 0));
  std::vector<double> right(n, 0);
  double grown = 0, whole = 0;
  for (const Mixture& row : rows) {
    grown += row.grown;
    for (std::size_t i = 0; i < n; i++) {
      whole += row.ns[i];
      right[i] += row.ns[i] * row.grown;
      for (std::size_t j = 0; j < n; j++) normal[i][j] += row.ns[i] * row.ns[j];
    }
  }
  const auto inverted = inverse(normal);
  if (inverted.empty()) return out;
  std::vector<double> rate(n, 0);
  for (std::size_t i = 0; i < n; i++) {
    for (std::size_t j = 0; j < n; j++) rate[i] += inverted[i][j] * right[j];
  }
  double squares = 0;
  for (const Mixture& row : rows) {
    double left = row.grown;
    for (std::size_t i = 0; i < n; i++) left -= rate[i] * row.ns[i];
    squares += left * left;
  }
  const double variance = squares / static_cast<double>(rows.size() - n);
  out.mean = grown / whole;
  for (std::size_t i = 0; i < n; i++) {
    out.of_kind[there[i]] = {rate[i], std::sqrt(std::max(0.0, variance * inverted[i][i]))};
  }
  return out;
}

}  // namespace

std::vector<Sampled> sampled_series(const Run& run) {
  std::vector<Sampled> out;
  for (const Trace& trace : run.telemetry) {
    const Samples& samples = trace.samples;
    for (std::size_t first = 0, end = 0; first < samples.size(); first = end) {
      while (end < samples.size() && samples.series[end] == samples.series[first]) end++;
      const auto of_series = [&](const auto& column) { return column.span().subspan(first, end - first); };
      out.push_back({&trace.sampled[samples.series[first]],
                     {of_series(samples.time_ns), of_series(samples.value)},
                     of_series(samples.rate)});
    }
  }
  return out;
}

std::optional<double> idle_cores(const Run& run) {
  const std::vector<Sampled> all = sampled_series(run);
  std::optional<double> fewest;
  for (const Trace& history : run.history) {
    const auto of_rank =
        std::find_if(all.begin(), all.end(), [&](const Sampled& one) { return one.about->rank == history.rank.rank; });
    if (of_rank == all.end() || history.steps.empty()) continue;
    const auto idle = std::find_if(all.begin(), all.end(), [&](const Sampled& one) {
      return one.about->name == "cpu_idle" && one.about->target == "host" && one.about->host == of_rank->about->host;
    });
    if (idle == all.end()) continue;
    const Interval steps{std::max(history.steps.front().start_ns, idle->samples.t_ns.front()),
                         std::min(history.steps.back().end_ns, idle->samples.t_ns.back())};
    if (steps.end <= steps.start) continue;
    const double cores = *growth(idle->samples, steps) / static_cast<double>(steps.end - steps.start);
    fewest = std::min(fewest.value_or(INFINITY), cores);
  }
  return fewest;
}

std::optional<double> growth(CurveView counter, Interval during) {
  if (counter.size() == 0 || during.start < counter.t_ns.front() || during.end > counter.t_ns.back()) return {};
  return value_at(counter, during.end) - value_at(counter, during.start);
}

const Trace* marks_of_rank(const Run& run, std::int64_t rank) {
  const auto found =
      std::find_if(run.history.begin(), run.history.end(), [&](const Trace& one) { return one.rank.rank == rank; });
  return found == run.history.end() || found->steps.empty() ? nullptr : &*found;
}

std::string gpu_of_rank(std::span<const Sampled> all, std::int64_t rank) {
  for (const Sampled& one : all) {
    if (one.about->rank != rank || one.about->name != "gpu_index") continue;
    const double index = one.samples.v.back();
    if (!(index >= 0 && index < 1e6)) continue;
    const std::string number = std::to_string(static_cast<std::int64_t>(index));
    return (one.about->collector == "amd_gpu" ? "amd gpu " : "gpu ") + number;
  }
  return "";
}

std::optional<double> level(CurveView gauge, Interval during) {
  const auto first = std::lower_bound(gauge.t_ns.begin(), gauge.t_ns.end(), during.start);
  const auto last = std::lower_bound(first, gauge.t_ns.end(), during.end);
  if (first == last) return {};
  double sum = 0;
  for (auto at = first; at != last; ++at) sum += gauge.v[static_cast<std::size_t>(at - gauge.t_ns.begin())];
  return sum / static_cast<double>(last - first);
}

std::vector<std::optional<double>> rates_by_kind(CurveView counter, const Kinds& kinds, const RateBounds& bounds) {
  std::vector<std::optional<double>> out(kinds.size());
  std::vector<std::int64_t> earlier(counter.t_ns.begin(), counter.t_ns.end());
  for (std::int64_t& t : earlier) t -= bounds.late_ns;
  const Estimates found = estimated_rates(counter, kinds);
  const Estimates others = bounds.late_ns > 0 ? estimated_rates({earlier, counter.v}, kinds) : found;
  const auto possible = [&](double rate) { return std::clamp(rate, 0.0, bounds.most); };
  for (std::size_t i = 0; i < kinds.size(); i++) {
    const auto &one = found.of_kind[i], &other = others.of_kind[i];
    if (!one || !other) continue;
    const double near = std::max({bounds.small, kSure * found.mean, kSure * one->rate}),
                 reach = 2 * one->deviation + 1e-12;
    const bool sure = one->deviation <= near && one->rate > -reach && one->rate < bounds.most + reach;
    const bool alike = std::abs(possible(other->rate) - possible(one->rate)) <= near;
    if (sure && alike) out[i] = possible(one->rate);
  }
  return out;
}

std::vector<std::optional<double>> levels_by_kind(CurveView gauge, const Kinds& kinds) {
  std::vector<std::optional<double>> out;
  for (const Intervals& kind : kinds) {
    double sum = 0;
    std::size_t count = 0;
    std::size_t at = 0;
    for (std::size_t i = 0; i < gauge.size(); i++) {
      while (at < kind.size() && kind[at].end <= gauge.t_ns[i]) at++;
      if (at == kind.size()) break;
      if (gauge.t_ns[i] >= kind[at].start) sum += gauge.v[i], count++;
    }
    out.push_back(count > 0 ? std::optional(sum / static_cast<double>(count)) : std::nullopt);
  }
  return out;
}

}  // namespace stepscope
