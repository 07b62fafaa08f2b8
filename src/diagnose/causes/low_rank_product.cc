// Factors of low rank that are multiplied out to a weight as large as any, by which what the model works on is then
// multiplied: through the factors one after the other it takes less, and no gradient of that weight is made.
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <string_view>
#include <vector>

#include "diagnose/cause.h"
#include "diagnose/gathered.h"
#include "diagnose/operators.h"
#include "diagnose/passes.h"
#include "model/windows.h"

namespace stepscope::diagnose::causes {
namespace {

constexpr std::int64_t kTimesRank = 4;   // the sides of the weight are as long as its rank, at least
constexpr std::size_t kMostBetween = 6;  // operators on the weight until it is used
constexpr double kLeastOfBackward = 0.5, kMostOfBackward = 0.65;  // of a product whose weight needs no gradient

struct Made {
  const Operator* factors = nullptr;
  std::vector<const Operator*> between;  // on the whole weight
  const Operator* used = nullptr;
  std::int64_t rows = 0, columns = 0, rank = 0, given = 0;  // of the weight; `given`: rows that it is multiplied with
};

// Can it be done to what a factor makes as well: a scale, a cast, the sum with a weight?
bool is_linear(const Operator& one) {
  const std::string_view name = one.name;
  if (name == "aten::add" || name == "aten::sub" || name == "aten::to" || name == "aten::_to_copy") return true;
  const std::vector<Shape>& given = one.inputs->shapes;
  return (name == "aten::mul" || name == "aten::div") && (given.size() < 2 || elements(given[1].sizes) <= 1);
}

bool is_of(const Sizes& sizes, const Made& made) {
  return sizes.size() == 2 &&
         ((sizes[0] == made.rows && sizes[1] == made.columns) || (sizes[0] == made.columns && sizes[1] == made.rows));
}

// The product of the factors at `at`, and what becomes of it; without `used`: it is something else.
Made made_at(const std::vector<Operator>& all, std::size_t at) {
  Made out;
  const std::vector<Shape>& given = all[at].inputs->shapes;
  const bool is_plain = all[at].name == "aten::mm" || all[at].name == "aten::matmul";
  if (!is_plain || given.size() < 2 || given[0].sizes.size() != 2 || given[1].sizes.size() != 2) return {};
  out.factors = &all[at];
  out.rows = given[0].sizes[0], out.rank = given[0].sizes[1], out.columns = given[1].sizes[1];
  if (out.rank < 1 || given[1].sizes[0] != out.rank || std::min(out.rows, out.columns) / kTimesRank < out.rank)
    return {};
  bool has_weight = false;
  for (std::size_t k = at + 1; k < all.size() && k <= at + kMostBetween; k++) {
    const Operator& one = all[k];
    if (one.trace != all[at].trace || one.step != all[at].step || one.inputs->shapes.empty()) return {};
    if (is_view(one.name)) continue;
    const std::vector<Shape>& operands = one.inputs->shapes;
    if (is_product(one.name)) {
      const std::size_t weight = one.name.find("addmm") == std::string_view::npos ? 1 : 2;
      if (operands.size() <= weight || !is_of(operands[weight].sizes, out)) return {};
      const Sizes& with = operands[weight - 1].sizes;
      // What is given may be the product itself, on its way through a wide layer.
      if (with.empty() || with.back() < 1 || elements(with) == elements({out.rows, out.columns})) return {};
      if (!has_weight && one.name != "aten::linear") return {};  // the product of a graph and what its nodes have
      out.given = elements(with) / with.back();
      out.used = &one;
      return out;
    }
    if (!is_linear(one) || !is_of(operands[0].sizes, out)) return {};
    has_weight = has_weight || (one.name == "aten::add" && operands.size() > 1 && is_of(operands[1].sizes, out));
    out.between.push_back(&one);
  }
  return {};
}

// Is most of what the models have not learned?
bool is_frozen(const Trace& trace) {
  double parameters = 0, learned = 0;
  for (const ModuleSize& one : trace.module_sizes) {
    if (one.beside != 0) continue;
    parameters += static_cast<double>(one.parameters);
    learned += static_cast<double>(one.learned);
  }
  return learned > 0 && learned < parameters / 2;
}

}  // namespace

Cause low_rank_product_cause() {
  return {"low_rank_product", "Factors multiplied out to a whole weight",
          [](const Case& about, std::vector<Diagnosis>& out) {
            const std::vector<Operator>& all = forward_operators(about);
            const Passes& pass = passes(about);
            Gathered work(about);
            std::int64_t rank = 0, calls = 0;
            for (std::size_t at = 0; at < all.size(); at++) {
              const Made made = made_at(all, at);
              if (made.used == nullptr) continue;
              // Elements that are gone through, and products: with what is given in place of the weight.
              const auto given = static_cast<double>(made.given), rows = static_cast<double>(made.rows),
                         columns = static_cast<double>(made.columns);
              const double through = std::min(1.0, given / columns);
              const double products = std::min(1.0, given * (rows + columns) / (rows * columns));
              const auto add = [&](const Operator& one, double part) {
                work.add(pass.nodes(*one.trace, one.slice), one.name, part / 2, part);
                work.add(pass.backward_nodes(*one.trace, one.slice), one.name, part / 2, part);
              };
              add(*made.factors, products);
              for (const Operator* one : made.between) add(*one, through);
              if (is_frozen(*made.used->trace)) {
                work.add(pass.backward_nodes(*made.used->trace, made.used->slice), made.used->name, kLeastOfBackward,
                         kMostOfBackward);
              }
              rank = std::max(rank, made.rank);
              calls++;
            }
            if (!work.worth_saying()) return;
            Diagnosis found = work.diagnosis(
                {.cause = "model",
                 .sentence = "Factors of low rank are multiplied out to a weight of full size for each use of it",
                 .next = "Multiply with one factor after the other: F.linear(x, weight) + F.linear(F.linear(x, A), B) "
                         "in place of F.linear(x, weight + B @ A); where nothing is learned, multiply them out once"});
            found.finding.evidence.push_back({.text = "Rank", .value = rank, .unit = Unit::count});
            found.finding.evidence.push_back({.text = "In all recorded steps", .value = calls, .unit = Unit::count});
            out.push_back(std::move(found));
          }};
}

}  // namespace stepscope::diagnose::causes
