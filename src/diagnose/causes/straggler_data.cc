// A rank that the others wait for since its batches are larger.
#include <algorithm>

#include "diagnose/gathered.h"
#include "diagnose/stragglers.h"

namespace stepscope::diagnose::causes {

namespace {

constexpr double kMoreData = 1.1;

void find_larger_batches(const Case& about, const Straggler& late, std::vector<Diagnosis>& out) {
  if (!late.steady || !late.more_data || *late.more_data < kMoreData) return;
  const std::int64_t operators_ns = late.own_ns - late.code_ns, others_ns = late.others_ns - late.others_code_ns;
  if (about.share(operators_ns - others_ns) < kWorthSaying) return;
  // Where batches are alike, each has the mean of both: of the time, or only of the elements, where the rank was as
  // fast as that since the others waited.
  const auto mean_with = [](double others) { return (1 + others) / 2; };
  const double mean = mean_with(static_cast<double>(others_ns) / static_cast<double>(operators_ns));
  const double mean_elements = std::max(mean, mean_with(1 / *late.more_data));
  Gathered work_of(about);
  for (const std::uint32_t node : late.operators) {
    const Work work = about.work(node);
    work_of.add(node, work, work.name(), mean, mean_elements);
  }
  if (!work_of.worth_saying()) return;
  out.push_back(work_of.diagnosis({.cause = "imbalance",
                                   .sentence = "The other ranks wait for this one, whose batches are larger",
                                   .next = "Give all ranks batches of about the same size: shuffle before sharding, or "
                                           "put samples of like length on all ranks in turn"}));
  out.back().finding.evidence.push_back(
      {.text = "Elements in its operators, over the others'", .value = *late.more_data});
}

}  // namespace

Cause straggler_data_cause() {
  return {"straggler_data", "A rank with larger batches", [](const Case& about, std::vector<Diagnosis>& out) {
            for (const Straggler& late : stragglers(about)) find_larger_batches(about, late, out);
          }};
}

}  // namespace stepscope::diagnose::causes
