// Rows of a matrix that are picked by multiplying it with ones and zeros: all of it is read, to get what a look-up
// reads a few rows for.
#include <algorithm>
#include <cstdint>
#include <set>
#include <string_view>
#include <vector>

#include "diagnose/cause.h"
#include "diagnose/gathered.h"
#include "diagnose/operators.h"
#include "diagnose/passes.h"
#include "model/input_text.h"

namespace stepscope::diagnose::causes {
namespace {

// Operators between the one that makes the ones and zeros and the product, such as a change of type.
constexpr std::size_t kMostBetween = 4;
constexpr std::int64_t kLeastColumns = 32;  // fewer are no table
// A look-up reads these rows alone; its gradient is cleared as a whole and has these rows added.
constexpr double kMostOfProduct = 0.1, kLeastOfBackward = 0.05, kMostOfBackward = 0.3;

// The sizes of the ones and zeros that it makes; empty: it makes none.
Sizes ones_of(const Operator& one) {
  const OperatorInputs& given = *one.inputs;
  const auto sizes = [&](std::size_t k) { return k < given.shapes.size() ? given.shapes[k].sizes : Sizes(); };
  if (one.name == "aten::one_hot") {
    Sizes out = sizes(0);
    out.push_back(given.number(1, 0));
    return out;
  }
  // Of a number that is put in one place of each row.
  const bool one_place = !sizes(2).empty() && sizes(2).back() == 1;
  if (one.name == "aten::scatter_" && sizes(0).size() == sizes(2).size() && one_place && sizes(3).empty())
    return sizes(0);
  return {};
}

bool is_cast(std::string_view name) { return name == "aten::to" || name == "aten::_to_copy" || name == "aten::copy_"; }

// Is it part of making these, or of counting them up right behind? All but the product is one look at the indices then.
bool goes_along(const Operator& one, const Sizes& ones) {
  const OperatorInputs& given = *one.inputs;
  if (one.name == "aten::zeros") return !given.values.empty() && parse_sizes(given.values[0]) == ones;
  const bool is_of_ones = !given.shapes.empty() && given.shapes[0].sizes == ones;
  return is_of_ones && (is_reduction(one.name) || one.name == "aten::zeros_like" || one.name == "aten::zero_");
}

// The product of these with a matrix; nullptr: there is none right behind.
const Operator* product_of(const std::vector<Operator>& all, std::size_t maker, const Sizes& ones) {
  for (std::size_t k = maker + 1; k < all.size() && k <= maker + 1 + kMostBetween; k++) {
    const Operator& one = all[k];
    if (one.trace != all[maker].trace || one.step != all[maker].step) return nullptr;
    if (!is_product(one.name) || one.inputs->shapes.empty()) {
      if (is_view(one.name) || is_cast(one.name)) continue;
      return nullptr;
    }
    const Sizes& first = one.inputs->shapes[0].sizes;
    const bool of_ones = !first.empty() && first.back() == ones.back() && elements(first) == elements(ones);
    return of_ones ? &one : nullptr;
  }
  return nullptr;
}

}  // namespace

Cause one_hot_product_cause() {
  return {"one_hot_product", "Rows picked by a product", [](const Case& about, std::vector<Diagnosis>& out) {
            const std::vector<Operator>& all = forward_operators(about);
            const Passes& pass = passes(about);
            Gathered picked(about);
            std::int64_t columns = 0;
            std::set<std::size_t> along;  // with one of two products next to each other
            for (std::size_t i = 0; i < all.size(); i++) {
              const Sizes ones = ones_of(all[i]);
              if (ones.empty() || ones.back() < kLeastColumns) continue;
              const Operator* product = product_of(all, i, ones);
              if (product == nullptr) continue;
              columns = std::max(columns, ones.back());
              const std::string_view name = product->name;
              for (const Operator* one = &all[i]; one != product; one++) {
                picked.add(pass.nodes(*one->trace, one->slice), one->name, 0, 0.05);
                for (const std::uint32_t node : one->after) picked.add(node, about.work(node), one->name, 0, 0.2);
              }
              const auto last = static_cast<std::size_t>(product - all.data());
              for (std::size_t k = i - std::min(i, kMostBetween); k < all.size() && k <= last + kMostBetween; k++) {
                if (k >= i && k <= last) continue;
                const Operator& one = all[k];
                const bool is_near = is_same_place(one, *product);
                if (!is_near || !goes_along(one, ones) || !along.insert(k).second) continue;
                picked.add(pass.nodes(*one.trace, one.slice), one.name, 0, 0.1);
                picked.add(pass.backward_nodes(*one.trace, one.slice), one.name, 0, 0.1);
              }
              picked.add(pass.nodes(*product->trace, product->slice), name, 0, kMostOfProduct);
              picked.add(pass.backward_nodes(*product->trace, product->slice), name, kLeastOfBackward, kMostOfBackward);
            }
            picked.add_outputs();
            if (!picked.worth_saying()) return;
            Diagnosis found = picked.diagnosis(
                {.cause = "model",
                 .sentence = "Rows of a matrix are picked by multiplying it with ones and zeros",
                 .next = "Look them up: torch.nn.functional.embedding(indices, weight) or weight[indices], which read "
                         "these rows alone"});
            found.finding.evidence.push_back({.text = "Rows of the matrix", .value = columns, .unit = Unit::count});
            out.push_back(std::move(found));
          }};
}

}  // namespace stepscope::diagnose::causes
