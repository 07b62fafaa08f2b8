#include "analyze/system/series.h"

#include <algorithm>
#include <cmath>

#include "model/answer_parts.h"

namespace stepscope::analyze::telemetry {
namespace {

constexpr std::size_t kMostSeries = 1000;                     // drawn
constexpr std::size_t kMostPoints = 80'000;                   // of all curves: a page of some MB
constexpr std::size_t kPiecePoints = 4;                       // that thinning keeps of a piece of time, at most
constexpr std::size_t kFewestPieces = 20, kMostPieces = 200;  // of a curve

// A series as it is looked at: gauges as they are, counters as rates, each holding until the next sample.
Curve shown(const Sampled& series) {
  Curve out;
  const CurveView& samples = series.samples;
  for (std::size_t i = 0; i < samples.size(); i++) {
    if (!series.about->is_counter) {
      out.add(samples.t_ns[i], samples.v[i]);
    } else if (i > 0) {
      out.add(samples.t_ns[i - 1], series.rate[i]);
    }
  }
  return out;
}

const std::string& unit_of(const SampledSeries& about) { return about.is_counter ? about.rate_unit : about.unit; }

// How numbers in a unit of the table are drawn.
struct Drawn {
  Unit unit = Unit::none;
  std::string suffix;
  double scale = 1;
};

Drawn drawn_as(const std::string& unit) {
  if (unit == "bytes") return {Unit::bytes, ""};
  if (unit == "bytes/s") return {Unit::bytes, "/s"};
  if (unit == "ratio") return {Unit::ratio, ""};
  if (unit == "ns") return {Unit::ns, ""};
  if (unit == "uJ/s") return {Unit::none, " W", 1e-6};
  if (unit == "celsius") return {Unit::none, " °C"};
  if (unit == "count") return {Unit::count, ""};
  if (unit == "count/s") return {Unit::count, "/s"};
  return {Unit::none, unit.empty() ? "" : " " + unit};
}

bool is_process(std::string_view target) { return target.starts_with("pid "); }
bool is_gpu(std::string_view target) { return target.starts_with("gpu ") || target.starts_with("amd gpu "); }

bool tells_about(const SampledSeries& about, const RankSystem& rank) {
  if (about.rank) return *about.rank == rank.rank;
  if (about.host != rank.host || is_process(about.target)) return false;
  if (!is_gpu(about.target) || rank.gpu.empty()) return true;
  return about.target == rank.gpu || about.target.starts_with(rank.gpu + " ");  // a part of it: "gpu 0 mig 1"
}

// A value holds until the next one, so that one like that before it says nothing. The last stays: it says how far
// the samples reach.
Curve without_repeats(const Curve& curve) {
  Curve out;
  for (std::size_t i = 0; i < curve.size(); i++) {
    const bool repeats = i > 0 && i + 1 < curve.size() && curve.v[i] == curve.v[i - 1];
    if (!repeats) out.add(curve.t_ns[i], curve.v[i]);
  }
  return out;
}

// To the digits that a curve shows: the others would be half of its text. The table has the exact figures.
double rounded(double value) {
  constexpr int kDigits = 5;
  if (value == 0 || !std::isfinite(value)) return value;
  const int places = kDigits - 1 - static_cast<int>(std::floor(std::log10(std::abs(value))));
  const double unit = std::pow(10, std::abs(places));
  return places < 0 ? std::round(value / unit) * unit : std::round(value * unit) / unit;
}

// `curve`: without repeats.
Series drawn(const SampledSeries& about, const Curve& curve, const std::string& where, std::int64_t end_ns,
             std::size_t pieces) {
  const Drawn as = drawn_as(unit_of(about));
  Series out = thinned(where + about.target + " " + about.name, as.unit, curve, pieces);
  for (double& v : out.v) v = rounded(v * as.scale);
  out.t_ns.push_back(end_ns);  // of what has ended nothing is drawn: a rate holds until the sample that ended it
  out.v.push_back(NAN);
  out.metric = about.name;
  out.target = where + about.target;
  out.suffix = as.suffix;
  return out;
}

Table empty_table() {
  return {.name = "series",
          .columns = {{"host", ValueType::text, Unit::none, "Machine"},
                      {"target", ValueType::text, Unit::none, "Of what: a rank, the host, a device"},
                      {"collector", ValueType::text, Unit::none, "Source of the samples"},
                      {"name", ValueType::text, Unit::none, "What was sampled"},
                      {"unit", ValueType::text, Unit::none, "Of mean, low and high; of a counter its rate"},
                      {"samples", ValueType::integer, Unit::count, "How often it was sampled"},
                      {"mean", ValueType::real, Unit::none, "Weighted by time"},
                      {"low", ValueType::real, Unit::none, "Lowest"},
                      {"high", ValueType::real, Unit::none, "Highest"},
                      {"meaning", ValueType::text, Unit::none, "What it is"}},
          .rows = {}};
}

// Pieces of time of each curve, so that all have no more than kMostPoints. Curves that are short or do not change leave
// theirs to the others.
std::size_t pieces_of(const std::vector<Sampled>& all) {
  std::size_t changing = 0;
  for (const Sampled& series : all) {
    const auto& v = series.samples.v;
    if (std::any_of(v.begin(), v.end(), [&](double one) { return one != v.front(); })) changing++;
  }
  const std::size_t each = kMostPoints / kPiecePoints / std::max<std::size_t>(1, changing);
  return std::clamp(each, kFewestPieces, kMostPieces);
}

std::vector<Value> row_of(const Sampled& series) {
  const SampledSeries& about = *series.about;
  const Curve curve = shown(series);
  std::vector<Value> row{text(about.host), text(about.target),   text(about.collector),
                         text(about.name), text(unit_of(about)), count(series.samples.size())};
  if (curve.size() > 0) {
    const CurveStats stats = stats_of(curve, series.samples.t_ns.back());
    row.insert(row.end(), {stats.mean, stats.low, stats.high});
  } else {
    row.insert(row.end(), 3, Value());
  }
  row.push_back(text(about.meaning));
  return row;
}

// As they are looked at: what is of a rank, then GPUs, then the rest.
std::vector<Sampled> in_order(std::vector<Sampled> all) {
  const auto place = [](const Sampled& series) {
    return series.about->rank ? 0 : is_gpu(series.about->target) ? 1 : 2;
  };
  std::stable_sort(all.begin(), all.end(), [&](const auto& a, const auto& b) { return place(a) < place(b); });
  return all;
}

void add_curves(const std::vector<Sampled>& all, const std::vector<RankSystem>& ranks, Answer& answer) {
  const bool one_host = std::all_of(
      all.begin(), all.end(), [&](const Sampled& series) { return series.about->host == all.front().about->host; });
  const std::size_t pieces = pieces_of(all);
  bool any_thinned = false;
  for (const Sampled& series : all) {
    if (answer.series.size() == kMostSeries) break;
    const SampledSeries& about = *series.about;
    const Curve curve = without_repeats(shown(series));
    if (curve.size() == 0) continue;
    const std::string where = one_host ? "" : about.host + " ";
    Series& added = answer.series.emplace_back(drawn(about, curve, where, series.samples.t_ns.back(), pieces));
    any_thinned |= added.t_ns.size() < curve.size();
    for (const RankSystem& rank : ranks) {
      if (tells_about(about, rank)) added.ranks.push_back(rank.rank);
    }
  }
  if (any_thinned) {
    answer.notes.push_back("Long series are drawn thinned: of each of " + std::to_string(pieces) +
                           " pieces of their time the first, lowest, highest and last value. The table samples of "
                           "`stepscope query` has all.");
  }
  if (all.size() > kMostSeries) {
    answer.notes.push_back("Only the first " + std::to_string(kMostSeries) + " of " + std::to_string(all.size()) +
                           " series are drawn; the table series has all.");
  }
}

}  // namespace

void add_series(const std::vector<Sampled>& all, const std::vector<RankSystem>& ranks, Answer& answer) {
  Table table = empty_table();
  for (const Sampled& series : all) table.rows.push_back(row_of(series));
  answer.tables.push_back(std::move(table));
  add_curves(in_order(all), ranks, answer);
}

}  // namespace stepscope::analyze::telemetry
