// A rank that the others wait for since its own Python does more than theirs.
#include <algorithm>
#include <map>

#include "diagnose/code_between.h"
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
            // Functions that work longer there than on the others; else all code alike.
            std::map<std::pair<std::string, std::int64_t>, std::map<const Trace*, std::int64_t>> functions;
            std::map<std::uint32_t, std::pair<std::string, std::int64_t>> function_of;
            for (const BetweenOperators& one : about.shared<std::vector<BetweenOperators>>(code_between)) {
              const CodeFrame* own = one.code.own();
              if (own == nullptr) continue;
              const std::pair<std::string, std::int64_t> function(own->file, own->line);
              functions[function][about.work(one.node).trace] += about.cost_ns(one.node);
              function_of[one.node] = function;
            }
            const auto more_in = [&](const std::map<const Trace*, std::int64_t>& of) {
              std::int64_t here = 0, others = 0;
              for (const auto& [trace, ns] : of) (trace == late->trace ? here : others) += ns;
              others /= static_cast<std::int64_t>(about.predictor.windows().size()) - 1;
              return std::pair(here, std::min(here, others));
            };
            std::int64_t told_ns = 0;
            for (const auto& [function, of] : functions) told_ns += more_in(of).first - more_in(of).second;
            const bool by_function = 2 * told_ns > more_ns;
            const double left = static_cast<double>(late->others_code_ns) / static_cast<double>(late->code_ns);
            Gathered code(about);
            for (const std::uint32_t node : late->code) {
              if (!by_function) code.add(node, about.work(node), "code between operators", left, left);
              const auto function = function_of.find(node);
              if (!by_function || function == function_of.end()) continue;
              const auto [here, others] = more_in(functions[function->second]);
              if (here == others) continue;
              const double part = static_cast<double>(others) / static_cast<double>(here);
              code.add(node, about.work(node), function->second.first, part, part);
            }
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
