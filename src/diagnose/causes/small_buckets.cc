// Many small collectives where few large ones would do: each costs its latency.
#include <algorithm>
#include <cmath>

#include "diagnose/communicating.h"
#include "diagnose/gathered.h"
#include "diagnose/queries.h"

namespace stepscope::diagnose::causes {

Cause small_buckets_cause() {
  return {"small_buckets", "Many small collectives", [](const Case& about, std::vector<Diagnosis>& out) {
            constexpr std::int64_t kFewest = 8, kSmallBytes = 1 << 20;
            constexpr double kBucketBytes = 25 << 20;  // DistributedDataParallel's own size of a bucket
            const Communicating& all = communicating(about);
            if (all.steps == 0) return;
            std::int64_t count = 0, bytes = 0;
            const auto is_small = [&](const Collective& one) {
              return one.kind == CollectiveKind::all_reduce && one.step != StepId::none && one.bytes >= 0 &&
                     one.bytes < kSmallBytes;
            };
            for (const Collective& one : all.collectives) {
              if (is_small(one)) count++, bytes += one.bytes;
            }
            if (count / all.steps < kFewest) return;
            const double per_step = static_cast<double>(count) / static_cast<double>(all.steps);
            const double buckets =
                std::max(1.0, std::ceil(static_cast<double>(bytes) / static_cast<double>(all.steps) / kBucketBytes));
            // The bytes still travel, on which a part of each is spent.
            const double least = buckets / per_step, most = std::min(1.0, 3 * least + 0.1);
            Gathered small(about);
            for (const Collective& one : all.collectives) {
              if (!is_small(one)) continue;
              small.add(one.nodes, to_string(one.kind), least, most);
            }
            if (!small.worth_saying()) return;
            Diagnosis found = small.diagnosis(
                {.cause = "communication",
                 .sentence = "Many small collectives, each of which costs its latency",
                 .next = "Let gradients travel in larger buckets: DistributedDataParallel(bucket_cap_mb=25) is the "
                         "default; join small tensors before all_reduce"});
            put_call(about, *std::find_if(all.collectives.begin(), all.collectives.end(), is_small),
                     found.finding.where);
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
