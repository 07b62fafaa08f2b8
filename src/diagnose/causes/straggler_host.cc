// A rank that the others wait for since its own Python does more than theirs.
#include <algorithm>

#include "diagnose/gathered.h"
#include "diagnose/stragglers.h"

namespace stepscope::diagnose::causes {

Cause straggler_host_cause() {
  return {"straggler_host", "A rank with more to do on its host", [](const Case& about, std::vector<Diagnosis>& out) {
            const std::optional<Straggler>& late = straggler(about);
            if (!late) return;
            const std::int64_t more_ns = late->code_ns - late->others_code_ns;
            // Most of what it has more is code between operators.
            if (2 * more_ns < late->own_ns - late->others_ns || about.share(more_ns) < kWorthSaying) return;
            const double left = static_cast<double>(late->others_code_ns) / static_cast<double>(late->code_ns);
            Gathered code(about);
            for (const std::uint32_t node : late->code)
              code.add(node, about.work(node), "code between operators", left, left);
            if (!code.worth_saying()) return;
            Diagnosis found =
                code.diagnosis({.cause = "imbalance",
                                .sentence = "The other ranks wait for this one, which does more in Python",
                                .next = "Let all ranks share it, do it less often, or in another thread or "
                                        "process"});
            found.finding.evidence.push_back({.text = "Code between operators, more than on the others, per step",
                                              .value = more_ns / about.steps,
                                              .unit = Unit::ns});
            out.push_back(std::move(found));
          }};
}

}  // namespace stepscope::diagnose::causes
