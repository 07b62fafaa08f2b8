// Chains of elementwise operators on tensors of one size: each of them goes through memory again, where one operator,
// or a compiler, goes through it once.
#include <algorithm>

#include "diagnose/cause.h"
#include "diagnose/gathered.h"
#include "diagnose/operators.h"
#include "diagnose/passes.h"

namespace stepscope::diagnose::causes {
namespace {

constexpr std::size_t kShortestChain = 4;
constexpr std::int64_t kSmallestChain = 1 << 12;  // elements: less is all call
constexpr std::int64_t kChainCallNs = 3'000;

using Chain = std::vector<const Operator*>;

std::vector<Chain> chains(const Case& about) {
  std::vector<Chain> out;
  Chain chain;
  const auto close = [&] {
    if (chain.size() >= kShortestChain) out.push_back(chain);
    chain.clear();
  };
  for (const Operator& one : forward_operators(about)) {
    if (is_view(one.name)) continue;
    const std::int64_t elements = one.inputs->elements();
    const bool fits = is_elementwise(one.name) && one.phase != Phase::optimizer && elements >= kSmallestChain;
    if (!fits) {
      close();
      continue;
    }
    if (!chain.empty() && (chain.back()->inputs->elements() != elements || chain.back()->trace != one.trace)) close();
    chain.push_back(&one);
  }
  close();
  return out;
}

}  // namespace

Cause elementwise_chain_cause() {
  return {
      "elementwise_chain", "A chain of elementwise operators", [](const Case& about, std::vector<Diagnosis>& out) {
        Gathered work_of(about);
        std::size_t longest = 0;
        const Passes& pass = passes(about);
        for (const Chain& chain : chains(about)) {
          longest = std::max(longest, chain.size());
          // Each reads one tensor at least and writes one; all together read one or two and write one.
          const double least = 1.0 / static_cast<double>(chain.size()), most = std::min(1.0, 3 * least);
          for (const Operator* one : chain) {
            const bool hard = is_transcendental(one->name);
            work_of.add(pass.nodes(*one->trace, one->slice), one->name, hard ? 0.6 : 0, hard ? 1 : most);
            work_of.add(pass.backward_nodes(*one->trace, one->slice), one->name, least, most, hard ? 0 : kChainCallNs);
          }
        }
        if (!work_of.worth_saying()) return;
        Diagnosis found = work_of.diagnosis(
            {.cause = "kernels",
             .sentence = "A chain of elementwise operators goes through the same memory again and again",
             .next = "Use the one operator that torch has for it (F.gelu, F.silu, F.layer_norm, torch.addcmul …), or "
                     "torch.compile the function"});
        found.finding.evidence.push_back({.text = "Operators in the longest chain",
                                          .value = static_cast<std::int64_t>(longest),
                                          .unit = Unit::count});
        out.push_back(std::move(found));
      }};
}

}  // namespace stepscope::diagnose::causes
