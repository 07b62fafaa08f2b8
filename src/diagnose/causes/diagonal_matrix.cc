// A diagonal that is spread out to a full matrix, which is then multiplied, factorized or solved as any other: n times
// as many numbers, nearly all of them zeros, and n times as much arithmetic or more.
#include <algorithm>
#include <cstdint>
#include <map>
#include <string_view>
#include <utility>
#include <vector>

#include "diagnose/cause.h"
#include "diagnose/gathered.h"
#include "diagnose/loops.h"
#include "diagnose/operators.h"
#include "diagnose/passes.h"

namespace stepscope::diagnose::causes {
namespace {

constexpr std::int64_t kLeastRows = 10;  // of a matrix: of fewer more than kMost would be left
constexpr std::size_t kNear = 8;         // operators from the diagonal to a product with it
// Of an operator on the matrix: on the diagonal alone it has an n-th of the numbers.
constexpr double kMost = 0.1;

// The sizes of the matrices that it makes of diagonals; empty: it makes none.
Sizes spread_by(const Operator& one) {
  if (one.name != "aten::diag_embed" && one.name != "aten::diag") return {};
  if (one.inputs->shapes.empty() || one.inputs->shapes[0].sizes.empty()) return {};
  Sizes sizes = one.inputs->shapes[0].sizes;
  if (one.name == "aten::diag" && sizes.size() != 1) return {};  // takes the diagonal of a matrix
  if (one.inputs->number(1, 0) != 0 || sizes.back() < kLeastRows) return {};
  sizes.push_back(sizes.back());
  return sizes;
}

// Does it work on matrices as such, whatever lies in them?
bool is_of_matrices(std::string_view name) {
  const auto begins = [&](std::string_view how) { return name.starts_with(how); };
  return is_product(name) || begins("aten::linalg_") || begins("aten::cholesky") || begins("aten::inverse") ||
         begins("aten::triangular_solve") || begins("aten::logdet") || begins("aten::det");
}

// The matrices that were spread out in a step so far, by their sizes, and with which operator.
using Spread = std::map<Sizes, std::size_t>;

// Which of what an operator is given is such, by its sizes, and how many are matrices as large, of whatever batch.
std::pair<std::int64_t, Spread::const_iterator> given_of(const Operator& one, const Spread& spread) {
  const std::vector<Shape>& shapes = one.inputs->shapes;
  auto found = spread.end();
  for (std::size_t k = 0; k < shapes.size() && found == spread.end(); k++) found = spread.find(shapes[k].sizes);
  if (found == spread.end()) return {0, found};
  const Sizes& made = found->first;  // of two dimensions or more
  const auto is_as_large = [&](const Shape& shape) {
    return shape.sizes.size() > 1 && std::equal(shape.sizes.end() - 2, shape.sizes.end(), made.end() - 2);
  };
  return {std::count_if(shapes.begin(), shapes.end(), is_as_large), found};
}

// With another matrix of these sizes it gives a full one, which others then have as well.
bool gives_full(std::string_view name) {
  return name.starts_with("aten::add") || name.starts_with("aten::sub") || is_product(name);
}

}  // namespace

Cause diagonal_matrix_cause() {
  return {
      "diagonal_matrix", "Diagonals as full matrices", [](const Case& about, std::vector<Diagnosis>& out) {
        const std::vector<Operator>& all = forward_operators(about);
        const Passes& pass = passes(about);
        Gathered full(about);
        Spread spread;
        std::int64_t rows = 0;
        for (std::size_t i = 0; i < all.size(); i++) {
          const Operator& one = all[i];
          if (i > 0 && !is_same_place(one, all[i - 1])) spread.clear();
          if (const Sizes made = spread_by(one); !made.empty()) spread[made] = i;
          // A layer has a weight, which may be as large.
          const bool is_other = one.phase == Phase::optimizer || is_view(one.name) || one.name == "aten::linear";
          if (spread.empty() || is_other) continue;
          const auto [count, given] = given_of(one, spread);
          if (given == spread.end()) continue;
          const bool too_far = is_product(one.name) && i - given->second > kNear;
          const bool is_full = count > 1 && gives_full(one.name);
          if (!too_far && (!is_full || is_product(one.name))) {
            // What is told of is what a matrix is needed for; the rest goes along.
            if (is_of_matrices(one.name)) rows = std::max(rows, given->first.back());
            const std::int64_t call_ns = usual_call_ns(about, *one.trace);
            full.add(pass.nodes(*one.trace, one.slice), one.name, 0, kMost, call_ns);
            full.add(pass.backward_nodes(*one.trace, one.slice), one.name, 0, kMost, call_ns);
          }
          if (is_full) spread.erase(given);
        }
        full.add_outputs();
        if (rows == 0 || !full.worth_saying()) return;
        Diagnosis found = full.diagnosis(
            {.cause = "model",
             .sentence = "Diagonals are spread out to full matrices, which are multiplied, factorized or solved",
             .next = "Work with the diagonal alone: x * d in place of x @ torch.diag(d), and "
                     "Independent(Normal(mean, std), 1) in place of MultivariateNormal(mean, torch.diag_embed(var))",
             .doubt = "that these are the matrices that were spread out is inferred from their sizes"});
        found.finding.evidence.push_back({.text = "Rows of a matrix", .value = rows, .unit = Unit::count});
        out.push_back(std::move(found));
      }};
}

}  // namespace stepscope::diagnose::causes
