// roofline: how near operators and kernels come to what the device can do with their work, most time lost first.
//
// Bytes are the least that an operator moves (costs/traffic.h). Operands that still lie in a cache come faster: such
// rows say so instead of a share above 100 %.
#include <algorithm>
#include <cmath>

#include "analyze/analysis.h"
#include "analyze/roofline/tables.h"
#include "model/answer_parts.h"

namespace stepscope::analyze {
namespace {

using roofline::Judged;

std::string why_not_judged(const std::vector<roofline::Rank>& ranks) {
  for (const roofline::Rank& rank : ranks) {
    if (rank.work.all.empty()) continue;
    if (rank.peaks() == nullptr) return no_peaks(rank.costs.peaks);
  }
  return "No operator with a model was recorded with sizes and types of its inputs: record with record_shapes=True";
}

void add_roofline_scalars(Answer& answer, const std::vector<roofline::Rank>& ranks) {
  std::int64_t known = 0, all = 0, judged = 0;
  double least = 0, lost = 0;
  for (const roofline::Rank& rank : ranks) {
    known += rank.work.known_ns();
    all += rank.work.all_ns();
    for (const Judged& one : rank.judged) {
      if (!one.knows_least) continue;
      judged += one.time_ns;
      lost += one.lost_ns;
      least += std::min(one.least_ns, static_cast<double>(one.time_ns));
    }
  }
  const auto of_time = [&](std::string_view name, std::int64_t part, std::string_view meaning) {
    add_scalar(answer, name, share(part, all), Unit::ratio,
               all > 0 ? meaning : "No time of kernels or operators was recorded");
  };
  of_time("known_share", known,
          "Share of the time of kernels that compute, on a CPU of operators, in calls whose FLOP or bytes are known");
  of_time("judged_share", judged,
          "The same where the peaks of the device are known too: what the figures below are of");
  const std::string reason = judged > 0 ? "" : why_not_judged(ranks);
  add_scalar(answer, "attained_share", judged > 0 ? Value(least / static_cast<double>(judged)) : Value(), Unit::ratio,
             judged > 0 ? "Time that this work takes at least on these devices, over the time it had" : reason);
  add_scalar(answer, "lost_ns", value_if(judged > 0, std::llround(lost)), Unit::ns,
             judged > 0 ? "Time beyond that least, over all calls and ranks" : reason);
}

void note_above_peak(Answer& answer, const std::vector<roofline::Rank>& ranks) {
  std::size_t above = 0;
  std::string_view op;
  for (const roofline::Rank& rank : ranks) {
    for (std::size_t i = 0; i < rank.judged.size(); i++) {
      if (!rank.judged[i].too_fast() || rank.judged[i].compute_ns < rank.judged[i].memory_ns) continue;
      above++;
      op = rank.work.all[i].op;
    }
  }
  if (above == 0) return;
  answer.notes.push_back(
      "In " + std::to_string(above) + (above == 1 ? " call" : " calls") + ", such as of " + std::string(op) +
      ", the arithmetic would take longer at the peak of the device than it took: no share is given there. The line of "
      "peaks is of another device, or not all was computed that the sizes say (a causal mask, groups that end early).");
}

Result<Answer> run_roofline(const Run& run, const AnalyzeOptions& options) {
  if (auto derived = require_derived(run); !derived) return fail(derived.error());
  const auto tables = costs::cost_tables(run);
  if (!tables) return fail(tables.error());
  Answer answer;
  std::vector<roofline::Rank> ranks;
  for (const Trace& trace : timelines(run)) ranks.emplace_back(trace, *tables);
  add_roofline_scalars(answer, ranks);
  answer.tables = {families_table(ranks), ops_table(ranks), kernels_table(ranks), unmodelled_table(ranks),
                   devices_table(ranks)};
  for (Table& table : answer.tables) {
    limit_rows(answer, table, options.max_rows, table.name == "unmodelled" ? "less time" : "less time lost");
  }
  note_above_peak(answer, ranks);
  return answer;
}

}  // namespace

Analysis roofline_analysis() {
  return {"roofline", "How near do operators and kernels come to what the device can do?", run_roofline};
}

}  // namespace stepscope::analyze
