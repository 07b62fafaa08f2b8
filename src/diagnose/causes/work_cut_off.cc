// What is done to all of a tensor, of which a slice is all that is used behind it: pictures that are cropped last, odds
// of every word where the last one's are taken.
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "diagnose/cause.h"
#include "diagnose/gathered.h"
#include "diagnose/loops.h"
#include "diagnose/operators.h"
#include "diagnose/passes.h"

namespace stepscope::diagnose::causes {
namespace {

constexpr std::int64_t kTimesAsMany = 3;          // elements as are left, at least
constexpr std::int64_t kLeastElements = 1 << 14;  // of the whole: of fewer a call costs more than what it does
constexpr double kMostMore = 1.5;                 // a slice does not lie in one piece
constexpr std::size_t kLongestChain = 32;
constexpr std::int64_t kLongest = std::int64_t{1} << 40;  // of a dimension: more is no tensor

bool is_cut(std::string_view name) { return name == "aten::slice" || name == "aten::narrow" || name == "aten::select"; }

// What such an operator leaves of a tensor; nullopt: not known.
std::optional<Sizes> left_by(const Operator& cut) {
  if (cut.inputs->shapes.empty() || cut.inputs->shapes[0].sizes.empty()) return std::nullopt;
  Sizes sizes = cut.inputs->shapes[0].sizes;
  constexpr std::int64_t kNone = -1'000'000;
  const auto rank = static_cast<std::int64_t>(sizes.size());
  std::int64_t along = cut.inputs->number(1, kNone);
  if (along < 0) along += rank;
  if (along < 0 || along >= rank) return std::nullopt;
  const auto at = static_cast<std::size_t>(along);
  if (cut.name == "aten::select") {
    sizes.erase(sizes.begin() + along);
    return sizes;
  }
  const std::int64_t all = sizes[at];
  if (all <= 0 || all > kLongest) return std::nullopt;
  if (cut.name == "aten::narrow") {
    sizes[at] = cut.inputs->number(3, all);
    return sizes[at] >= 0 && sizes[at] <= all ? std::optional(sizes) : std::nullopt;
  }
  const auto bound = [&](std::size_t input, std::int64_t otherwise) {
    const std::int64_t said = cut.inputs->number(input, otherwise);
    return std::clamp<std::int64_t>(said < 0 ? said + all : said, 0, all);
  };
  const std::int64_t from = bound(2, 0), to = bound(3, all);
  const std::int64_t step = std::clamp<std::int64_t>(cut.inputs->number(4, 1), 1, all);
  sizes[at] = std::max<std::int64_t>(0, (to - from + step - 1) / step);
  return sizes;
}

// What is left of a tensor behind all cuts of it that come in a row.
struct Cut {
  Sizes whole;
  std::int64_t left = 0;  // elements
  bool in_rows = false;   // the last dimension stays as it is
  std::size_t last = 0;   // of the operators that cut
};

std::optional<Cut> cut_at(const std::vector<Operator>& all, std::size_t at) {
  if (!is_cut(all[at].name) || all[at].inputs->shapes.empty()) return std::nullopt;
  Cut out{.whole = all[at].inputs->shapes[0].sizes, .left = 0, .in_rows = true, .last = at};
  if (elements(out.whole) < kLeastElements) return std::nullopt;
  Sizes now = out.whole;
  for (std::size_t k = at; k < all.size() && is_cut(all[k].name); k++) {
    if (all[k].inputs->shapes.empty() || all[k].inputs->shapes[0].sizes != now) break;
    const std::optional<Sizes> left = left_by(all[k]);
    if (!left || left->empty()) return std::nullopt;
    now = *left;
    out.last = k;
  }
  out.in_rows = now.back() == out.whole.back();
  out.left = elements(now);
  return out.left > 0 && out.left <= elements(out.whole) / kTimesAsMany ? std::optional(out) : std::nullopt;
}

bool is_same_place(const Operator& a, const Operator& b) { return a.trace == b.trace && a.step == b.step; }

bool is_given(const Operator& one, const Sizes& sizes) {
  return std::any_of(one.inputs->shapes.begin(), one.inputs->shapes.end(),
                     [&](const Shape& shape) { return shape.sizes == sizes; });
}

// Is what it makes at a place made of what it is given at that place? Of a layer that means of each row. Not a sum of
// two that are both whole: what is learned beside the way past it is wanted everywhere.
bool is_in_place(const Operator& one, bool in_rows, const Sizes& whole) {
  const std::vector<Shape>& given = one.inputs->shapes;
  if (given.empty() || one.phase == Phase::optimizer || one.phase == Phase::zero_grad) return false;
  const bool casts = one.name == "aten::to" || one.name == "aten::_to_copy";
  if (is_elementwise(one.name) || casts) {
    return std::count_if(given.begin(), given.end(), [&](const Shape& shape) { return shape.sizes == whole; }) == 1;
  }
  const Sizes& first = given[0].sizes;
  if (!in_rows || whole.size() < 2) return false;
  if (one.name == "aten::layer_norm") {
    const std::vector<std::string>& values = one.inputs->values;
    return first == whole && values.size() > 1 && values[1] == "[" + std::to_string(whole.back()) + "]";
  }
  if (one.name != "aten::linear" || given.size() < 2 || given[1].sizes.size() != 2) return false;
  return first.size() == whole.size() && given[1].sizes.front() == whole.back() &&
         std::equal(first.begin(), first.end() - 1, whole.begin());
}

bool is_beside(const Operator& one) { return is_without_values(one.name) || (is_view(one.name) && !is_cut(one.name)); }

// What was done to all of it right before it is cut, last first.
std::vector<std::size_t> chain_before(const std::vector<Operator>& all, const Cut& cut, std::size_t at) {
  std::vector<std::size_t> chain;
  for (std::size_t k = at; k-- > 0 && at - k <= kLongestChain && is_same_place(all[k], all[at]);) {
    if (is_beside(all[k])) continue;
    if (!is_in_place(all[k], cut.in_rows, cut.whole)) break;
    chain.push_back(k);
    if (all[k].name == "aten::linear") break;  // before it another width is cut
  }
  // What is written into a tensor that was there before stays.
  while (!chain.empty() && all[chain.back()].name.ends_with('_')) chain.pop_back();
  return chain;
}

// Is anything else given what the chain made, or another slice of it? The next turn of a loop goes through all of it
// anew.
bool is_used_whole(const std::vector<Operator>& all, const Cut& cut, const std::vector<std::size_t>& chain) {
  for (std::size_t k = cut.last + 1; k < all.size() && is_same_place(all[k], all[cut.last]); k++) {
    if (!is_given(all[k], cut.whole)) continue;
    auto next = chain.rbegin();
    for (; next != chain.rend() && k < all.size(); k++) {
      if (is_beside(all[k])) continue;
      if (all[k].name != all[*next].name) return true;
      ++next;
    }
    return chain.size() < 2 || next != chain.rend();
  }
  return false;
}

}  // namespace

Cause work_cut_off_cause() {
  return {"work_cut_off", "Work that is cut off", [](const Case& about, std::vector<Diagnosis>& out) {
            const std::vector<Operator>& all = forward_operators(about);
            const Passes& pass = passes(about);
            Gathered needless(about);
            std::int64_t most = 0, left = 0;
            for (std::size_t i = 1; i < all.size(); i++) {
              const std::optional<Cut> cut = cut_at(all, i);
              if (!cut) continue;
              const std::vector<std::size_t> chain = chain_before(all, *cut, i);
              if (!chain.empty() && !is_used_whole(all, *cut, chain)) {
                const double part = static_cast<double>(cut->left) / static_cast<double>(elements(cut->whole));
                for (const std::size_t at : chain) {
                  const Operator& one = all[at];
                  const std::int64_t call_ns = usual_call_ns(about, *one.trace);
                  needless.add(pass.nodes(*one.trace, one.slice), one.name, part, kMostMore * part, call_ns);
                  needless.add(pass.backward_nodes(*one.trace, one.slice), one.name, part, kMostMore * part, call_ns);
                }
                if (elements(cut->whole) > most) most = elements(cut->whole), left = cut->left;
              }
              i = cut->last;
            }
            needless.add_outputs();
            if (!needless.worth_saying()) return;
            Diagnosis found = needless.diagnosis(
                {.cause = "model",
                 .sentence = "All of a tensor is worked on, and most of it is cut off right behind",
                 .next = "Cut first, and work on what is left: crop pictures before they are changed, take x[:, -1] "
                         "before the last layer",
                 .doubt = "that nothing else needs what is cut off is inferred from sizes"});
            found.finding.evidence.push_back({.text = "Elements worked on", .value = most, .unit = Unit::count});
            found.finding.evidence.push_back({.text = "Left", .value = left, .unit = Unit::count});
            out.push_back(std::move(found));
          }};
}

}  // namespace stepscope::diagnose::causes
