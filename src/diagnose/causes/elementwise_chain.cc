// Chains of elementwise operators on tensors of one size: each of them goes through memory again, where one operator,
// or a compiler, goes through it once.
#include <algorithm>
#include <utility>
#include <vector>

#include "diagnose/cause.h"
#include "diagnose/gathered.h"
#include "diagnose/operators.h"
#include "diagnose/passes.h"

namespace stepscope::diagnose::causes {
namespace {

constexpr std::size_t kShortestChain = 4;
constexpr std::int64_t kSmallestChain = 1 << 12;  // elements: less is all call
constexpr std::int64_t kChainCallNs = 3'000;

struct Chain {
  std::vector<const Operator*> operators;  // on tensors of one size
  std::vector<const Operator*> small;      // between them, on what one of them summed up
};

// What is summed up over a dimension is gone through again by what comes next, as in a normalization by hand: part of
// the chain where more of it follows.
std::vector<Chain> chains(const Case& about) {
  constexpr std::int64_t kSummedUp = 16;  // times as many elements as what is left of them, at least
  std::vector<Chain> out;
  Chain chain;
  const auto close = [&] {
    while (!chain.operators.empty() && is_reduction(chain.operators.back()->name)) chain.operators.pop_back();
    if (chain.operators.size() >= kShortestChain) {
      std::erase_if(chain.small, [&](const Operator* one) { return one > chain.operators.back(); });
      out.push_back(std::move(chain));
    }
    chain = {};
  };
  for (const Operator& one : forward_operators(about)) {
    if (is_view(one.name)) continue;
    const std::int64_t elements = one.inputs->elements();
    const bool goes_along = (is_elementwise(one.name) || is_reduction(one.name)) && one.phase != Phase::optimizer;
    if (goes_along && !chain.operators.empty() && chain.operators.back()->trace == one.trace) {
      const std::int64_t size = chain.operators.back()->inputs->elements();
      // Two sums in a row are of two tensors.
      if (elements == size && !(is_reduction(one.name) && is_reduction(chain.operators.back()->name))) {
        chain.operators.push_back(&one);
        continue;
      }
      if (elements * kSummedUp <= size && is_reduction(chain.operators.back()->name)) {
        chain.small.push_back(&one);
        continue;
      }
    }
    close();
    if (goes_along && elements >= kSmallestChain) chain.operators.push_back(&one);
  }
  close();
  return out;
}

// Share of its work that is left of an operator when one takes the place of the whole chain.
struct Left {
  double least = 0, most = 0;
  std::int64_t call_ns = 0;
};

// `host`: of an operator that computes there. Of one that launches, `bytes` is what the device keeps, and the host
// keeps the time of one of all `operators` in the chain.
void add(const Case& about, const std::vector<std::uint32_t>& nodes, const Operator& one, std::size_t operators,
         const Left& host, const Left& bytes, Gathered& to) {
  const auto is_of_device = [&](std::uint32_t node) { return about.work(node).device; };
  if (std::none_of(nodes.begin(), nodes.end(), is_of_device)) {
    to.add(nodes, one.name, host.least, host.most, host.call_ns);
    return;
  }
  const double launching = 1 / static_cast<double>(operators);
  for (const std::uint32_t node : nodes) {
    const Work work = about.work(node);
    to.add(node, work, one.name, work.device ? bytes.least : launching, work.device ? bytes.most : launching);
  }
}

}  // namespace

Cause elementwise_chain_cause() {
  return {
      "elementwise_chain", "A chain of elementwise operators", [](const Case& about, std::vector<Diagnosis>& out) {
        Gathered work_of(about);
        std::size_t longest = 0;
        std::vector<std::uint32_t> last;  // what chains give is made as well
        const Passes& pass = passes(about);
        for (const Chain& chain : chains(about)) {
          longest = std::max(longest, chain.operators.size());
          const Operator& end = *chain.operators.back();
          const std::vector<std::uint32_t>& nodes = pass.nodes(*end.trace, end.slice);
          last.insert(last.end(), nodes.begin(), nodes.end());
          // Each reads one tensor at least and writes one; all together read one or two and write one, and go through
          // them again behind each sum.
          const auto count = static_cast<double>(chain.operators.size());
          const auto sums = static_cast<double>(std::count_if(chain.operators.begin(), chain.operators.end(),
                                                              [](const auto* one) { return is_reduction(one->name); }));
          const Left bytes{(1 + sums) / count, std::min(1.0, (3 + sums) / count)};
          const auto add_both = [&](const Operator& one, const Left& forward, const Left& backward) {
            const auto all = chain.operators.size() + chain.small.size();
            add(about, pass.nodes(*one.trace, one.slice), one, all, forward, bytes, work_of);
            add(about, pass.backward_nodes(*one.trace, one.slice), one, all, backward, bytes, work_of);
          };
          for (const Operator* one : chain.operators) {
            const bool hard = is_transcendental(one->name);
            add_both(*one, {hard ? 0.6 : sums / count, hard ? 1 : bytes.most},
                     {bytes.least, bytes.most, hard ? 0 : kChainCallNs});
          }
          for (const Operator* one : chain.small) add_both(*one, {0, bytes.most}, {0, bytes.most});
        }
        work_of.add_outputs(last);
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
