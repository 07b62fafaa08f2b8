// What is done to all rows of a table, of which a few are looked up right behind: each row is done for itself, so the
// few could be looked up first.
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "diagnose/cause.h"
#include "diagnose/gathered.h"
#include "diagnose/look_ups.h"
#include "diagnose/loops.h"
#include "diagnose/operators.h"
#include "diagnose/passes.h"

namespace stepscope::diagnose::causes {
namespace {

constexpr std::int64_t kTimesAsMany = 3;  // rows as are looked up, at least
constexpr double kMostMore = 3;           // rows looked up one here, one there take longer than as many in a row
constexpr std::size_t kLongestChain = 32;

// Does it go along the last dimension alone?
bool along_rows(const Operator& one) {
  const Sizes& sizes = one.inputs->shapes[0].sizes;
  const bool has_order = one.name == "aten::norm" || one.name == "aten::linalg_vector_norm";
  const std::size_t input = has_order ? 2 : 1;  // that says along which
  if (input >= one.inputs->values.size()) return false;
  const std::string& said = one.inputs->values[input];
  if (one.name == "aten::layer_norm") return said == "[" + std::to_string(sizes.back()) + "]";
  const std::string last = std::to_string(sizes.size() - 1);
  return said == "-1" || said == "[-1]" || said == last || said == "[" + last + "]";
}

// Does it write to what is there, as an optimizer does?
bool writes(const Operator& one) {
  return one.phase == Phase::optimizer || one.phase == Phase::zero_grad || one.name.ends_with('_');
}

// Does it make of each row of `table` one of its own? A product then has its first operand for a table.
bool is_row_by_row(const Operator& one, Sizes& table) {
  const std::vector<Shape>& given = one.inputs->shapes;
  if (given.empty() || given[0].sizes.empty() || given[0].sizes.front() != table.front()) return false;
  const Sizes& first = given[0].sizes;
  if (is_product(one.name)) {
    if (first.size() != 2 || table.size() != 2 || given.size() < 2 || given[1].sizes.size() != 2) return false;
    const Sizes& weight = given[1].sizes;
    if (weight[0] != table[1] && weight[1] != table[1]) return false;
    table = first;
    return true;
  }
  const bool of_row = one.name == "aten::layer_norm" || one.name == "aten::softmax" || one.name == "aten::log_softmax";
  if (is_reduction(one.name) || of_row) return first == table && along_rows(one);
  return is_elementwise(one.name) && (first == table || elements(first) == table.front());
}

using Looks = std::map<std::size_t, const LookUp*>;  // by their place among all operators

struct Chain {
  std::vector<std::size_t> operators;  // last first
  std::int64_t rows = 0, looked_up = 0;
};

// What was done to the table right before its rows are looked up.
Chain chain_before(const std::vector<Operator>& all, const Looks& looks, const LookUp& look_up) {
  Chain out{.rows = look_up.table.front()};
  Sizes table = look_up.table;
  for (std::size_t k = look_up.at; k-- > 0 && look_up.at - k <= kLongestChain;) {
    const Operator& one = all[k];
    if (!is_same_place(one, all[look_up.at])) break;
    if (is_view(one.name) || is_without_values(one.name)) continue;
    const auto another = out.operators.empty() ? looks.find(k) : looks.end();
    if (another != looks.end() && another->second->table == table) continue;
    if (writes(one) || !is_row_by_row(one, table)) break;
    out.operators.push_back(k);
  }
  return out;
}

// Does anything but look-ups take all rows of what the chain made?
bool is_taken_whole(const std::vector<Operator>& all, const Looks& looks, const LookUp& look_up, std::size_t last) {
  Sizes turned = look_up.table;
  std::reverse(turned.begin(), turned.end());
  for (std::size_t k = last + 1; k < all.size() && is_same_place(all[k], all[last]); k++) {
    if (looks.contains(k) || all[k].phase == Phase::optimizer || is_view(all[k].name)) continue;
    for (const Shape& given : all[k].inputs->shapes) {
      if (given.sizes == look_up.table || given.sizes == turned) return true;
    }
  }
  return false;
}

}  // namespace

Cause whole_table_cause() {
  return {"whole_table", "All rows worked on for a few", [](const Case& about, std::vector<Diagnosis>& out) {
            const std::vector<Operator>& all = forward_operators(about);
            const Passes& pass = passes(about);
            Looks looks;
            for (const LookUp& one : look_ups(about)) looks.emplace(one.at, &one);
            std::map<std::size_t, Chain> chains;  // by their last operator
            for (const auto& [at, look_up] : looks) {
              Chain chain = chain_before(all, looks, *look_up);
              if (chain.operators.empty()) continue;
              const std::size_t last = chain.operators.front();
              const auto [known, fresh] = chains.try_emplace(last, std::move(chain));
              if (fresh && is_taken_whole(all, looks, *look_up, last)) known->second.operators.clear();
              const std::int64_t left = known->second.rows - known->second.looked_up;  // more than all are all
              known->second.looked_up += std::min(look_up->rows, left);
            }
            Gathered needless(about);
            std::int64_t rows = 0, looked_up = 0;
            for (const auto& [last, chain] : chains) {
              if (chain.looked_up > chain.rows / kTimesAsMany) continue;
              const double part = static_cast<double>(chain.looked_up) / static_cast<double>(chain.rows);
              for (const std::size_t at : chain.operators) {
                const Operator& one = all[at];
                const std::int64_t call_ns = usual_call_ns(about, *one.trace);
                needless.add(pass.nodes(*one.trace, one.slice), one.name, part, std::min(1.0, kMostMore * part),
                             call_ns);
                needless.add(pass.backward_nodes(*one.trace, one.slice), one.name, part,
                             std::min(1.0, kMostMore * part), call_ns);
              }
              if (!chain.operators.empty() && chain.rows > rows) rows = chain.rows, looked_up = chain.looked_up;
            }
            needless.add_outputs();
            if (!needless.worth_saying()) return;
            Diagnosis found = needless.diagnosis(
                {.cause = "model",
                 .sentence = "All rows of a table are worked on, of which a few are looked up right behind",
                 .next = "Look the rows up first, and do the same to these alone: F.normalize(table[indices]) in place "
                         "of F.normalize(table)[indices]",
                 .doubt = "that the rows come of what was done right before is inferred from their sizes"});
            found.finding.evidence.push_back({.text = "Rows of the table", .value = rows, .unit = Unit::count});
            found.finding.evidence.push_back({.text = "Looked up", .value = looked_up, .unit = Unit::count});
            out.push_back(std::move(found));
          }};
}

}  // namespace stepscope::diagnose::causes
