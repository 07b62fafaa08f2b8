#include "analyze/memory/categories.h"

#include <algorithm>
#include <map>

#include "model/answer_parts.h"

namespace stepscope::analyze::memory {
namespace {

constexpr auto kUnknown = static_cast<std::size_t>(MemoryCategory::unknown);

std::size_t category_at(const Held& held, std::size_t at) { return static_cast<std::size_t>(held.use[at].category); }

// What each event of the device does to the bytes of a category.
struct Change {
  std::size_t category = kUnknown;
  std::int64_t bytes = 0;
};

std::vector<Change> changes(const Held& held) {
  std::vector<Change> all(held.memory.events);
  for (std::size_t at = 0; at < held.memory.allocations.size(); at++) {
    const Allocation& one = held.memory.allocations[at];
    all[one.order] = {category_at(held, at), held.bytes(at)};
    if (one.freed != Allocation::never) all[one.freed] = {category_at(held, at), -held.bytes(at)};
  }
  return all;
}

struct AtPeak {
  std::array<std::int64_t, kMemoryCategories> bytes{}, allocations{};
};

AtPeak at_peak(const Held& held) {
  AtPeak out;
  std::int64_t known = 0;
  for (std::size_t at = 0; at < held.memory.allocations.size(); at++) {
    if (!held.memory.alive(held.memory.allocations[at], held.peak)) continue;
    out.bytes[category_at(held, at)] += held.bytes(at);
    out.allocations[category_at(held, at)]++;
    known += held.bytes(at);
  }
  for (const Told& one : held.before) {
    out.bytes[static_cast<std::size_t>(one.category)] += one.bytes;
    known += one.bytes;
  }
  out.bytes[kUnknown] += std::max<std::int64_t>(0, static_cast<std::int64_t>(held.stats.high) - known);
  return out;
}

Table by_category(const std::vector<Held>& all, const std::vector<CategoryCurves>& curves) {
  Table table{
      .name = "by_category",
      .columns = {{"rank", ValueType::integer, Unit::none, "Rank"},
                  {"device", ValueType::text, Unit::none, "Device of the allocator"},
                  {"category", ValueType::text, Unit::none,
                   "What it is used for; unknown: nothing says it, or it was there before the recording"},
                  {"at_peak_bytes", ValueType::integer, Unit::bytes, "Bytes alive at the peak of the device"},
                  {"share", ValueType::real, Unit::ratio, "Share of the peak"},
                  {"peak_bytes", ValueType::integer, Unit::bytes,
                   "Most of the category at once; not all at the same time, so the sum may be more than the peak of "
                   "the device"},
                  {"mean_bytes", ValueType::integer, Unit::bytes, "Mean over the recording, weighted by time"},
                  {"allocations", ValueType::integer, Unit::count, "Allocations in the recording"}}};
  for (std::size_t i = 0; i < all.size(); i++) {
    const Held& held = all[i];
    const AtPeak peak = at_peak(held);
    std::array<std::int64_t, kMemoryCategories> made{};
    for (std::size_t at = 0; at < held.use.size(); at++) made[category_at(held, at)]++;
    std::vector<std::size_t> order(kMemoryCategories);
    for (std::size_t c = 0; c < kMemoryCategories; c++) order[c] = c;
    std::stable_sort(order.begin(), order.end(), [&](auto a, auto b) { return peak.bytes[a] > peak.bytes[b]; });
    for (const std::size_t c : order) {
      if (made[c] == 0 && peak.bytes[c] == 0) continue;
      const CurveStats stats = stats_of(curves[i].of[c], held.memory.allocated.t_ns.back());
      table.rows.push_back({held.rank(), held.memory.name(), text(to_string(static_cast<MemoryCategory>(c))),
                            peak.bytes[c], share(peak.bytes[c], static_cast<std::int64_t>(held.stats.high)),
                            static_cast<std::int64_t>(stats.high), static_cast<std::int64_t>(stats.mean), made[c]});
    }
  }
  return table;
}

Table evidence_table(const std::vector<Held>& all) {
  Table table{
      .name = "evidence",
      .columns = {{"rank", ValueType::integer, Unit::none, "Rank"},
                  {"device", ValueType::text, Unit::none, "Device of the allocator"},
                  {"category", ValueType::text, Unit::none, "What the allocations are taken for"},
                  {"evidence", ValueType::text, Unit::none, "What says so"},
                  {"allocations", ValueType::integer, Unit::count, "Allocations; unknown: before the recording"},
                  {"bytes", ValueType::integer, Unit::bytes, "Their bytes, frees not subtracted"},
                  {"at_peak_bytes", ValueType::integer, Unit::bytes, "Of these, alive at the peak"}}};
  for (const Held& held : all) {
    std::map<std::pair<MemoryCategory, Evidence>, std::array<std::int64_t, 3>> sums;
    for (std::size_t at = 0; at < held.use.size(); at++) {
      auto& sum = sums[{held.use[at].category, held.use[at].evidence}];
      sum[0]++;
      sum[1] += held.bytes(at);
      if (held.memory.alive(held.memory.allocations[at], held.peak)) sum[2] += held.bytes(at);
    }
    for (const auto& [key, sum] : sums) {
      table.rows.push_back({held.rank(), held.memory.name(), text(to_string(key.first)), text(to_string(key.second)),
                            sum[0], sum[1], sum[2]});
    }
    const auto before = held.before_by_category();
    for (std::size_t c = 0; c < kMemoryCategories; c++) {
      if (before[c] == 0) continue;
      table.rows.push_back({held.rank(), held.memory.name(), text(to_string(static_cast<MemoryCategory>(c))),
                            text(to_string(Evidence::told)), Value(), before[c], before[c]});
    }
  }
  return table;
}

}  // namespace

std::string chart_of(const Held& held) { return "memory of " + held.memory.name(); }

CategoryCurves category_curves(const Held& held) {
  CategoryCurves out;
  std::array<double, kMemoryCategories> sums{};
  for (const Told& one : held.before) sums[static_cast<std::size_t>(one.category)] += static_cast<double>(one.bytes);
  const std::vector<Change> all = changes(held);
  for (std::size_t event = 0; event < all.size(); event++) {
    sums[all[event].category] += static_cast<double>(all[event].bytes);
    double known = 0;
    for (std::size_t c = 0; c < kMemoryCategories; c++) known += c == kUnknown ? 0 : sums[c];
    const std::int64_t t = held.memory.allocated.t_ns[event];
    for (std::size_t c = 0; c < kMemoryCategories; c++) {
      out.of[c].add(t, c == kUnknown ? std::max(0.0, held.memory.allocated.v[event] - known) : sums[c]);
    }
  }
  return out;
}

void add_categories(Answer& answer, const std::vector<Held>& all) {
  std::vector<CategoryCurves> curves;
  std::int64_t peak = 0, unknown = 0;
  for (const Held& held : all) {
    curves.push_back(category_curves(held));
    peak += static_cast<std::int64_t>(held.stats.high);
    unknown += at_peak(held).bytes[kUnknown];
    for (std::size_t c = 0; c < kMemoryCategories; c++) {
      const Curve& curve = curves.back().of[c];
      if (std::all_of(curve.v.begin(), curve.v.end(), [](double v) { return v == 0; })) continue;
      const std::string category(to_string(static_cast<MemoryCategory>(c)));
      Series series =
          thinned(category + "_rank" + std::to_string(held.rank()) + "_" + held.memory.name(), Unit::bytes, curve);
      series.metric = chart_of(held);
      series.target = category;
      series.ranks = {held.rank()};
      answer.series.push_back(std::move(series));
    }
  }
  answer.tables.push_back(by_category(all, curves));
  answer.tables.push_back(evidence_table(all));
  add_scalar(answer, "unknown_share", share(unknown, peak), Unit::ratio,
             peak > 0 ? "Share of the peaks of all devices of which nothing says what it is for: what was there before "
                        "the recording and the program did not tell, and what table evidence names"
                      : "No memory was recorded");
}

}  // namespace stepscope::analyze::memory
