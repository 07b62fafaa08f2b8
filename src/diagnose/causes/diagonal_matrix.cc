// A diagonal that is spread out to a full matrix, which is then multiplied, factorized or solved as any other: n times
// as many numbers, nearly all of them zeros, and n times as much arithmetic or more.
#include <algorithm>
#include <cstdint>
#include <set>
#include <string_view>
#include <vector>

#include "diagnose/cause.h"
#include "diagnose/gathered.h"
#include "diagnose/loops.h"
#include "diagnose/operators.h"
#include "diagnose/passes.h"

namespace stepscope::diagnose::causes {
namespace {

constexpr std::int64_t kLeastRows = 8;  // of a matrix: of fewer a call costs more than what it does
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

bool is_given(const Operator& one, const Sizes& sizes) {
  return std::any_of(one.inputs->shapes.begin(), one.inputs->shapes.end(),
                     [&](const Shape& shape) { return shape.sizes == sizes; });
}

}  // namespace

Cause diagonal_matrix_cause() {
  return {
      "diagonal_matrix", "Diagonals as full matrices", [](const Case& about, std::vector<Diagnosis>& out) {
        const std::vector<Operator>& all = forward_operators(about);
        const Passes& pass = passes(about);
        Gathered full(about);
        std::set<Sizes> spread;  // in this step so far
        std::int64_t rows = 0;
        bool any = false;
        for (std::size_t i = 0; i < all.size(); i++) {
          const Operator& one = all[i];
          if (i > 0 && (one.trace != all[i - 1].trace || one.step != all[i - 1].step)) spread.clear();
          if (const Sizes made = spread_by(one); !made.empty()) spread.insert(made);
          if (spread.empty() || one.phase == Phase::optimizer || is_view(one.name)) continue;
          const auto given =
              std::find_if(spread.begin(), spread.end(), [&](const Sizes& sizes) { return is_given(one, sizes); });
          if (given == spread.end()) continue;
          // What is told of is what a matrix is needed for; the rest goes along.
          if (is_of_matrices(one.name)) any = true, rows = std::max(rows, given->back());
          const std::int64_t call_ns = usual_call_ns(about, *one.trace);
          full.add(pass.nodes(*one.trace, one.slice), one.name, 0, kMost, call_ns);
          full.add(pass.backward_nodes(*one.trace, one.slice), one.name, 0, kMost, call_ns);
        }
        full.add_outputs();
        if (!any || !full.worth_saying()) return;
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
