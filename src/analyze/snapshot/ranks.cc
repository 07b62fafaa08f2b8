#include <algorithm>
#include <map>
#include <string>

#include "analyze/snapshot/parts.h"
#include "model/answer_parts.h"
#include "snapshot/byte_sums.h"
#include "snapshot/compare.h"

namespace stepscope::analyze::device_memory {

using namespace snapshot;

namespace {

constexpr std::size_t kDifferences = 20;  // of classes, and of stacks

struct RankPeak {
  const View* view = nullptr;  // of its snapshots and devices the one with the highest peak
  std::int64_t bytes = 0;      // with static blocks: ranks may have been recorded from different moments on
};

std::vector<RankPeak> peaks_of(const std::vector<View>& views) {
  std::map<std::int64_t, RankPeak> by_rank;
  for (const View& view : views) {
    if (view.device->events.count == 0) continue;  // its peak is unknown
    const std::int64_t bytes = plus(view.device->peak_bytes, view.device->static_bytes);
    RankPeak& known = by_rank[view.trace->rank.rank];
    if (known.view == nullptr || bytes > known.bytes) known = {&view, bytes};
  }
  std::vector<RankPeak> peaks;
  for (const auto& [rank, peak] : by_rank) peaks.push_back(peak);
  return peaks;
}

// The other rank that is nearest to the median stands for all that are as usual.
const RankPeak& usual_of(const std::vector<RankPeak>& peaks, const Outlier& outlier) {
  const auto away = [&](const RankPeak& peak) {
    if (&peak == &peaks[outlier.index]) return std::numeric_limits<std::int64_t>::max();
    return std::abs(peak.bytes - outlier.median);
  };
  return *std::min_element(peaks.begin(), peaks.end(),
                           [&](const RankPeak& a, const RankPeak& b) { return away(a) < away(b); });
}

Table ranks_table(const std::vector<RankPeak>& peaks, const std::optional<Outlier>& outlier, std::int64_t middle) {
  Table table = table_of(
      "ranks", {{"peak_bytes", ValueType::integer, Unit::bytes, "Peak of the rank, static blocks included"},
                {"beside_median_bytes", ValueType::integer, Unit::bytes, "What it is above the median of all ranks"},
                {"stands_out", ValueType::boolean, Unit::none,
                 "Is it more than five usual distances (median absolute deviation) and a fiftieth away?"},
                {"ooms", ValueType::integer, Unit::count, "Times when memory ran out in that snapshot"}});
  for (std::size_t i = 0; i < peaks.size(); i++) {
    table.rows.push_back(
        row_of(*peaks[i].view, {peaks[i].bytes, peaks[i].bytes - middle, outlier && outlier->index == i,
                                count(peaks[i].view->device->ooms.size())}));
  }
  return table;
}

std::vector<Group> groups_at_peak(const View& view, GroupBy by) {
  const State state = state_at(view.history(), *view.device, view.device->peak);
  return grouped(view.snapshot(), view.history(), *view.device, state, by);
}

Table differences_table() {
  return table_of(
      "rank_differences",
      {{"by", ValueType::text, Unit::none, "class or stack"},
       {"what", ValueType::text, Unit::none, "The class, or who allocated it"},
       {"more_bytes", ValueType::integer, Unit::bytes, "What the rank that stands out holds more at its peak"},
       {"bytes", ValueType::integer, Unit::bytes, "It holds"},
       {"usual_bytes", ValueType::integer, Unit::bytes, "The rank nearest to the median holds"},
       {"usual_rank", ValueType::integer, Unit::none, "Which rank that is"}});
}

void add_class_differences(Table& table, const View& odd, const View& usual) {
  std::map<std::string, std::pair<std::int64_t, std::int64_t>> classes;
  for (const Group& group : groups_at_peak(odd, GroupBy::of_class)) classes[group.name].first = group.bytes;
  for (const Group& group : groups_at_peak(usual, GroupBy::of_class)) classes[group.name].second = group.bytes;
  std::vector<std::pair<std::string, std::pair<std::int64_t, std::int64_t>>> sorted(classes.begin(), classes.end());
  const auto change = [](const auto& one) { return std::abs(one.second.first - one.second.second); };
  std::stable_sort(sorted.begin(), sorted.end(), [&](const auto& a, const auto& b) { return change(a) > change(b); });
  for (std::size_t i = 0; i < std::min(sorted.size(), kDifferences); i++) {
    const auto& [name, bytes] = sorted[i];
    if (bytes.first == bytes.second) continue;
    table.rows.push_back(row_of(odd, {std::string("class"), name, bytes.first - bytes.second, bytes.first, bytes.second,
                                      usual.trace->rank.rank}));
  }
}

void add_stack_differences(Table& table, const View& odd, const View& usual) {
  const std::vector<Group> more = groups_at_peak(odd, GroupBy::stack), normal = groups_at_peak(usual, GroupBy::stack);
  const std::vector<Pair> pairs = paired(usual, normal, odd, more);
  for (std::size_t i = 0; i < std::min(pairs.size(), kDifferences); i++) {
    const Pair& pair = pairs[i];
    if (pair.change() == 0) continue;
    const std::string name = (pair.second != nullptr ? pair.second : pair.first)->name;
    table.rows.push_back(
        row_of(odd, {std::string("stack"), name, pair.change(), pair.second != nullptr ? pair.second->bytes : 0,
                     pair.first != nullptr ? pair.first->bytes : 0, usual.trace->rank.rank}));
  }
}

void add_finding(Parts& parts, const Table& differences, const RankPeak& odd, const Outlier& outlier) {
  const std::int64_t more = odd.bytes - outlier.median;
  Finding finding{.id = "memory_outlier",
                  .cause = "memory",
                  .sentence = "One rank holds " + std::string(more > 0 ? "more" : "less") + " memory than the others",
                  .where = {.rank = odd.view->trace->rank.rank},
                  .evidence = {{.text = "Its peak", .value = odd.bytes, .unit = Unit::bytes},
                               {.text = "Median of all ranks", .value = outlier.median, .unit = Unit::bytes},
                               {.text = "Usual distances away", .value = outlier.distances, .unit = Unit::none}},
                  .gain_reason = "It is about memory, not time.",
                  .confidence = "high",
                  .next = "See snapshot.rank_differences for what it holds that the others do not"};
  for (const char* by : {"class", "stack"}) {
    const auto first = std::find_if(differences.rows.begin(), differences.rows.end(),
                                    [&](const auto& row) { return std::get<std::string>(row[3]) == by; });
    if (first == differences.rows.end()) continue;
    finding.evidence.push_back(
        {.text = "Differs most in " + std::get<std::string>((*first)[4]), .value = (*first)[5], .unit = Unit::bytes});
  }
  parts.answer.findings.push_back(std::move(finding));
}

}  // namespace

void add_ranks(Parts& parts) {
  const std::vector<RankPeak> peaks = peaks_of(parts.views);
  if (peaks.size() < 2) return;
  std::vector<std::int64_t> bytes;
  for (const RankPeak& peak : peaks) bytes.push_back(peak.bytes);
  const std::optional<Outlier> outlier = outlier_of(bytes);
  parts.answer.tables.push_back(ranks_table(peaks, outlier, *median(bytes)));
  if (peaks.size() == 2) parts.answer.notes.push_back("Of two ranks it cannot be told which one stands out.");
  if (!outlier) return;
  const RankPeak& odd = peaks[outlier->index];
  const RankPeak& usual = usual_of(peaks, *outlier);
  Table differences = differences_table();
  add_class_differences(differences, *odd.view, *usual.view);
  add_stack_differences(differences, *odd.view, *usual.view);
  add_finding(parts, differences, odd, *outlier);
  parts.answer.tables.push_back(std::move(differences));
}

}  // namespace stepscope::analyze::device_memory
