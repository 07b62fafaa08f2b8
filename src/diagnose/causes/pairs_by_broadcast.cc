// Differences or products of all pairs, each kept element by element: rows times columns times features, where a
// product of the two matrices gives the same distances.
#include <algorithm>
#include <array>
#include <cstdint>
#include <string_view>
#include <vector>

#include "diagnose/cause.h"
#include "diagnose/gathered.h"
#include "diagnose/operators.h"
#include "diagnose/passes.h"

namespace stepscope::diagnose::causes {
namespace {

constexpr std::int64_t kLeastElements = 1 << 18;  // of the differences: fewer stay in a cache
constexpr std::int64_t kTimesLarger = 4;          // they are, than what they were made of
constexpr std::size_t kFarApart = 6;              // operators between the differences and their sum
// Of the operators: a product goes through memory once for rows and columns, and multiplies as often.
constexpr double kLeast = 0.03, kMost = 0.3;

constexpr std::string_view kCosine = "aten::cosine_similarity";  // multiplies, sums up and divides itself

bool is_product_of_elements(std::string_view name) { return name == "aten::mul" || name == kCosine; }

// Elements of two tensors that each are spread over the other; 0: they are not.
std::int64_t pairs_of(const Operator& one) {
  if (one.name != "aten::sub" && one.name != "aten::rsub" && !is_product_of_elements(one.name)) return 0;
  const std::vector<Shape>& given = one.inputs->shapes;
  if (given.size() < 2 || given[0].sizes.size() < 2 || given[0].sizes.size() != given[1].sizes.size()) return 0;
  Sizes both;
  bool features = false;  // that both have, of which differences are summed up
  for (std::size_t d = 0; d < given[0].sizes.size(); d++) {
    const std::int64_t a = given[0].sizes[d], b = given[1].sizes[d];
    if (a != b && a != 1 && b != 1) return 0;
    both.push_back(std::max(a, b));
    features = features || (a == b && a > 1);
  }
  if (!features) return 0;
  const std::int64_t all = elements(both);
  const std::int64_t larger = std::max(elements(given[0].sizes), elements(given[1].sizes));
  return all >= kLeastElements && all / kTimesLarger >= larger ? all : 0;
}

// Is what it makes of differences part of a distance?
bool is_of_distance(std::string_view name) {
  constexpr std::array<std::string_view, 6> kParts{"aten::pow", "aten::square", "aten::abs",
                                                   "aten::mul", "aten::pow_",   "aten::abs_"};
  return std::find(kParts.begin(), kParts.end(), name) != kParts.end();
}

// The operator that sums up what was made of the pairs, of products right behind them; where it is none, `from` itself.
std::size_t sum_of(const std::vector<Operator>& all, std::size_t from, std::int64_t pairs) {
  const bool products = is_product_of_elements(all[from].name);
  for (std::size_t i = from + 1; i < all.size() && i - from <= kFarApart; i++) {
    if (all[i].trace != all[from].trace || all[i].step != all[from].step) break;
    if (is_view(all[i].name)) continue;
    if (all[i].inputs->elements() != pairs) break;
    if (products ? all[i].name == "aten::sum" : is_reduction(all[i].name)) return i;
    if (products || !is_of_distance(all[i].name)) break;
  }
  return from;
}

Words words_for(std::string_view largest) {
  if (largest == kCosine) {
    return {.cause = "kernels",
            .sentence = "Cosines of all pairs are made of products that are kept element by element",
            .next = "Use a product of matrices: F.normalize(a, dim=-1) @ F.normalize(b, dim=-1).T"};
  }
  if (is_product_of_elements(largest)) {
    return {.cause = "kernels",
            .sentence = "The products of all pairs are written to memory, to be summed up right behind",
            .next = "Use a product of matrices, a @ b.T, or torch.einsum"};
  }
  return {.cause = "kernels",
          .sentence = "The differences of all pairs are written to memory, to be summed up right behind",
          .next =
              "Use torch.cdist(a, b), or a product: a.square().sum(1, keepdim=True) + b.square().sum(1) - "
              "2 * a @ b.T"};
}

}  // namespace

Cause pairs_by_broadcast_cause() {
  return {"pairs_by_broadcast", "Pairs, element by element", [](const Case& about, std::vector<Diagnosis>& out) {
            const std::vector<Operator>& all = forward_operators(about);
            const Passes& pass = passes(about);
            Gathered work_of(about);
            std::int64_t most = 0;
            std::string_view largest;         // the operator that makes the most pairs
            std::vector<std::uint32_t> sums;  // what they give is made as well
            for (std::size_t i = 0; i < all.size(); i++) {
              const std::int64_t pairs = pairs_of(all[i]);
              if (pairs == 0) continue;
              const std::size_t sum = sum_of(all, i, pairs);
              if (sum == i && all[i].name != kCosine) continue;
              if (pairs > most) most = pairs, largest = all[i].name;
              const std::vector<std::uint32_t>& last = pass.nodes(*all[sum].trace, all[sum].slice);
              sums.insert(sums.end(), last.begin(), last.end());
              for (std::size_t k = i; k <= sum; k++) {
                const Operator& one = all[k];
                work_of.add(pass.nodes(*one.trace, one.slice), one.name, kLeast, kMost);
                work_of.add(pass.backward_nodes(*one.trace, one.slice), one.name, kLeast, kMost);
              }
            }
            work_of.add_outputs(sums);
            if (!work_of.worth_saying()) return;
            Diagnosis found = work_of.diagnosis(words_for(largest));
            found.finding.evidence.push_back({.text = "Elements at once", .value = most, .unit = Unit::count});
            out.push_back(std::move(found));
          }};
}

}  // namespace stepscope::diagnose::causes
