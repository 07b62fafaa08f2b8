// Many small collectives where few large ones would do: each costs its latency.
#include <algorithm>
#include <cmath>
#include <map>
#include <utility>
#include <vector>

#include "base/intervals.h"
#include "diagnose/communicating.h"
#include "diagnose/gathered.h"
#include "diagnose/queries.h"

namespace stepscope::diagnose::causes {
namespace {

// Time of one of them on a rank where none runs beside another: that of all, over how many there are.
double alone_ns(const Case& about, const std::vector<const Collective*>& all) {
  std::map<const Trace*, std::vector<Interval>> times;
  double nodes = 0, time_ns = 0;
  for (const Collective* one : all) {
    for (const std::uint32_t node : one->nodes) {
      const Work work = about.work(node);
      times[work.trace].push_back({work.start_ns, work.start_ns + work.cost_ns});
      nodes++;
    }
  }
  for (auto& [trace, any] : times) time_ns += static_cast<double>(length(make_intervals(std::move(any))));
  return nodes > 0 ? time_ns / nodes : 0;
}

}  // namespace

Cause small_buckets_cause() {
  return {"small_buckets", "Many small collectives", [](const Case& about, std::vector<Diagnosis>& out) {
            constexpr std::int64_t kFewest = 8, kSmallBytes = 1 << 20;
            constexpr double kBucketBytes = 25 << 20;  // DistributedDataParallel's own size of a bucket
            const Communicating& all = communicating(about);
            if (all.steps == 0) return;
            std::int64_t count = 0, bytes = 0;
            const auto is_small = [&](const Collective& one) {
              return one.kind == CollectiveKind::all_reduce && one.step != StepId::none && one.bytes >= 0 &&
                     one.bytes < kSmallBytes && !about.trace.steps[static_cast<std::size_t>(one.step)].partial;
            };
            std::vector<const Collective*> together;
            for (const Collective& one : all.collectives) {
              if (is_small(one)) together.push_back(&one), count++, bytes += one.bytes;
            }
            if (count / all.steps < kFewest) return;
            const double per_step = static_cast<double>(count) / static_cast<double>(all.steps);
            const double buckets =
                std::max(1.0, std::ceil(static_cast<double>(bytes) / static_cast<double>(all.steps) / kBucketBytes));
            // The bytes still travel, on which a part of each is spent.
            const double least = buckets / per_step, most = std::min(1.0, 3 * least + 0.1);
            Gathered small(about);
            std::vector<std::uint32_t> gone;
            // Of those that go in one bucket the last is left, which takes as long as the bytes of all; for the others
            // ranks need not meet.
            const auto in_bucket = static_cast<std::size_t>(per_step / buckets);
            const double all_ns = static_cast<double>(in_bucket) * alone_ns(about, together);
            std::size_t in_this = 0;
            StepId step = StepId::none;
            for (std::size_t i = 0; i < together.size(); i++) {
              const Collective* one = together[i];
              in_this = one->step == step && in_this < in_bucket ? in_this + 1 : 1;
              step = one->step;
              const bool last_of_step = i + 1 == together.size() || together[i + 1]->step != step;
              if (in_this < in_bucket && !last_of_step) {
                small.add(one->nodes, to_string(one->kind), 0, 0);
                gone.insert(gone.end(), one->nodes.begin(), one->nodes.end());
                continue;
              }
              for (const std::uint32_t node : one->nodes) {
                small.add_ns(node, about.work(node), to_string(one->kind), std::llround(least * all_ns),
                             std::llround(most * all_ns));
              }
            }
            for_each_work(about, [&](std::uint32_t node, const Work& work) {
              if (asks_to_reduce(work)) small.add_along(node, least, least);
            });
            small.add_relieved(gone);
            if (!small.worth_saying()) return;
            Diagnosis found = small.diagnosis(
                {.cause = "communication",
                 .sentence = "Many small collectives, each of which costs its latency",
                 .next = "Let gradients travel in larger buckets: DistributedDataParallel(bucket_cap_mb=25) is the "
                         "default; join small tensors before all_reduce"});
            put_call(about, *together.front(), found.finding.where);
            found.finding.evidence.push_back({.text = "Collectives per step",
                                              .value = count / all.steps,
                                              .unit = Unit::count,
                                              .query = collectives_of()});
            found.finding.evidence.push_back(
                {.text = "Bytes of one, on average", .value = bytes / count, .unit = Unit::bytes});
            out.push_back(std::move(found));
          }};
}

}  // namespace stepscope::diagnose::causes
