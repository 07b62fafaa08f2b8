// Products in float32 on processors that multiply bfloat16 in hardware. What that gives on this very machine was
// measured before the recording began (hooks: torch_settings.py), since libraries differ more than processors do.
#include <algorithm>

#include "costs/traffic.h"
#include "diagnose/cause.h"
#include "diagnose/gathered.h"
#include "diagnose/inputs.h"
#include "diagnose/queries.h"
#include "model/settings.h"

namespace stepscope::diagnose::causes {

Cause float32_matmul_cause() {
  return {
      "float32_matmul", "Products in single precision", [](const Case& about, std::vector<Diagnosis>& out) {
        if (!is_set(about.trace, "cpu_bfloat16")) return;
        constexpr double kGains = 1.2;  // below it is within what was measured by chance
        const auto faster = ratio_set(about.trace, "bfloat16_speed_permille");
        if (!faster || *faster < kGains) return;
        constexpr double kCasts = 1.3;  // what is multiplied is cast, there and back
        // Smaller products gain little beside their casts.
        constexpr std::int64_t kLargeNs = 300'000;
        Gathered products(about);
        bool lower_elsewhere = false;  // the job means to use it
        for_each_work(about, [&](std::uint32_t node, const Work& work) {
          if (work.device || work.operation == SliceId::none) return;
          const costs::TrafficModel* model = costs::traffic_of(work.name());
          if (model == nullptr || model->family != costs::Family::matrices) return;
          const OperatorInputs& given = inputs(about).of(*work.trace, work.slice);
          lower_elsewhere |= given.has_type("c10::BFloat16") || given.has_type("c10::Half");
          if (work.cost_ns < kLargeNs || !given.has_type("float")) return;
          products.add(node, work, work.name(), 1 / *faster, std::min(1.0, kCasts / *faster));
        });
        if (!products.worth_saying()) return;
        Diagnosis found = products.diagnosis(
            {.cause = "precision",
             .sentence =
                 lower_elsewhere
                     ? "Products of matrices run in float32 beside others in lower precision, and this "
                       "processor multiplies bfloat16 in hardware"
                     : "Products of matrices run in float32, and this processor multiplies bfloat16 in hardware",
             .next =
                 "Run the forward pass under torch.autocast(\"cpu\", dtype=torch.bfloat16), and watch that the loss "
                 "falls as before"});
        found.is_offer = !lower_elsewhere;
        found.finding.evidence.push_back({.text = "Times as fast a product is in bfloat16 here",
                                          .value = *faster,
                                          .query = setting_of("bfloat16_speed_permille")});
        out.push_back(std::move(found));
      }};
}

}  // namespace stepscope::diagnose::causes
